/**
 * Deletes a subtree while others may go on working in it. What has gone already is fine; where something has come, it is looked again.
 *
 * Deletes are sent one behind the other without waiting, children first: a session's requests are carried out in order, so each finds
 * its children gone. Each stands for itself. A multi would be undone as a whole by one znode that somebody else has deleted.
 */
import { KeeperError } from '../keeper-error.ts';
import type { Bounds } from './bounds.ts';
import { failureOf, isUnanswered, reworded, type Retries } from './retries.ts';
import { walk } from './walk.ts';
import type { Znodes } from './znodes.ts';

/** How much a `deleteRecursive` has deleted. */
export interface DeleteRecursiveResult {
  /** Znodes that this call has certainly deleted. */
  readonly deleted: number;
  /** Znodes that are gone, by this call or by another: a connection was lost, and `retry` went on. 0 otherwise. */
  readonly unknown: number;
}

/** Requests under way at once. */
const ahead = 64;

interface Tally {
  deleted: number;
  /** Not answered, and not found since. A look does not count as finding: the lost delete may still be on its way to being committed. */
  readonly open: Set<string>;
}

/** `retries`: how long to go on when answers are lost; undefined: not at all. */
export async function deleteRecursive(
  znodes: Znodes,
  top: string,
  bounds: Bounds,
  retries: Retries | undefined,
): Promise<DeleteRecursiveResult> {
  const tally: Tally = { deleted: 0, open: new Set() };
  for (;;) {
    try {
      const paths = await pathsBelow(znodes, top, bounds);
      if (paths.length === 0 || (await deleteAll(znodes, paths, tally, bounds)))
        return { deleted: tally.deleted, unknown: tally.open.size };
    } catch (error) {
      if (retries !== undefined && (await retries.again(error, true))) continue;
      throw withTally(retries === undefined ? error : retries.summed(error, false), tally);
    }
  }
}

async function pathsBelow(znodes: Znodes, top: string, bounds: Bounds): Promise<string[]> {
  const paths: string[] = [];
  try {
    for await (const { path } of walk(znodes, top, { concurrency: ahead, data: false, retry: false }, bounds)) paths.push(path);
  } catch (error) {
    if (!KeeperError.is(error, 'NoNode')) throw error;
  }
  return paths;
}

/** Deletes from the last to the first; returns whether nothing is left of it. */
async function deleteAll(znodes: Znodes, paths: readonly string[], tally: Tally, bounds: Bounds): Promise<boolean> {
  let at = paths.length;
  let failure: { readonly error: unknown } | undefined;
  let isClean = true;
  const worker = async () => {
    while (at > 0 && failure === undefined) {
      const path = paths[--at]!;
      try {
        await znodes.delete(path, { ...bounds.left, retry: false });
        tally.deleted++;
        tally.open.delete(path);
      } catch (error) {
        if (KeeperError.is(error, 'NotEmpty')) {
          isClean = false;
          tally.open.delete(path);
        } else if (!KeeperError.is(error, 'NoNode')) {
          if (isUnanswered(error)) tally.open.add(path);
          failure ??= { error };
        }
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(ahead, paths.length) }, worker));
  if (failure !== undefined) throw failure.error;
  return isClean;
}

/** A subtree that is half gone is worth a word. */
function withTally(error: unknown, { deleted, open }: Tally): unknown {
  const failure = failureOf(error);
  if (failure === undefined) return error;
  const note = `${deleted} znodes were deleted${open.size === 0 ? '' : `, and perhaps ${open.size} more`}`;
  return reworded(failure, open.size > 0 ? 'unknown' : failure.outcome, failure.reason === undefined ? note : `${failure.reason}; ${note}`);
}
