/**
 * Deletes a subtree while other clients may change it. A znode that is already gone counts as
 * deleted, and where a znode was added, the call lists the subtree again.
 *
 * It sends deletes without waiting in between, children first: a server executes the requests of a
 * session in order, so each delete finds its children gone. The deletes are independent: one znode
 * that another client has deleted would fail a multi as a whole.
 */
import { KeeperError } from '../keeper-error.ts';
import type { CallDeadline } from './call-deadline.ts';
import { failureOf, hasUnknownOutcome, withOutcome, type Retries } from './retries.ts';
import { walk } from './walk.ts';
import type { PageCalls } from './children.ts';

/** The result of `deleteRecursive`. */
export interface DeleteRecursiveResult {
  /** Znodes that this call has certainly deleted. */
  readonly deleted: number;
  /**
   * Znodes that were deleted by this call or by another client: a connection was lost, and `retry`
   * continued. 0 otherwise.
   */
  readonly unknown: number;
}

/** Maximum number of pending requests. */
const concurrentDeletes = 64;

interface Tally {
  deleted: number;
  /**
   * Deletes without an answer whose result is still unknown. A later listing that shows the znode
   * decides nothing: the lost delete may be committed after it.
   */
  readonly unanswered: Set<string>;
}

/** `retries`: how long to continue after lost answers; undefined: not at all. */
export async function deleteRecursive(
  znodes: PageCalls,
  root: string,
  deadline: CallDeadline,
  retries: Retries | undefined,
): Promise<DeleteRecursiveResult> {
  const tally: Tally = { deleted: 0, unanswered: new Set() };
  for (;;) {
    try {
      const paths = await pathsBelow(znodes, root, deadline);
      if (paths.length === 0 || (await deleteAll(znodes, paths, tally, deadline)))
        return { deleted: tally.deleted, unknown: tally.unanswered.size };
    } catch (error) {
      if (retries !== undefined && (await retries.waitToRetry(error, true))) continue;
      throw withTally(retries === undefined ? error : retries.finalError(error, false), tally);
    }
  }
}

async function pathsBelow(znodes: PageCalls, root: string, deadline: CallDeadline): Promise<string[]> {
  const paths: string[] = [];
  try {
    for await (const { path } of walk(znodes, root, { concurrency: concurrentDeletes, data: false, retry: false }, deadline))
      paths.push(path);
  } catch (error) {
    if (!KeeperError.is(error, 'NoNode')) throw error;
  }
  return paths;
}

/** Deletes from the last path to the first; returns whether the subtree is gone. */
async function deleteAll(znodes: PageCalls, paths: readonly string[], tally: Tally, deadline: CallDeadline): Promise<boolean> {
  let at = paths.length;
  let failure: { readonly error: unknown } | undefined;
  let isClean = true;
  const worker = async () => {
    while (at > 0 && failure === undefined) {
      const path = paths[--at]!;
      try {
        await znodes.delete(path, { ...deadline.requestLimits, retry: false });
        tally.deleted++;
        tally.unanswered.delete(path);
      } catch (error) {
        if (KeeperError.is(error, 'NotEmpty')) {
          isClean = false;
          tally.unanswered.delete(path);
        } else if (!KeeperError.is(error, 'NoNode')) {
          if (hasUnknownOutcome(error)) tally.unanswered.add(path);
          failure ??= { error };
        }
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrentDeletes, paths.length) }, worker));
  if (failure !== undefined) throw failure.error;
  return isClean;
}

/** Adds to an error how much of the subtree was deleted. */
function withTally(error: unknown, { deleted, unanswered }: Tally): unknown {
  const failure = failureOf(error);
  if (failure === undefined) return error;
  const note = `${deleted} znodes were deleted${unanswered.size === 0 ? '' : `, and perhaps ${unanswered.size} more`}`;
  return withOutcome(
    failure,
    unanswered.size > 0 ? 'unknown' : failure.outcome,
    failure.reason === undefined ? note : `${failure.reason}; ${note}`,
  );
}
