/** Creates the parents of znodes. Other clients may create or delete them at the same time. */
import { KeeperError } from '../keeper-error.ts';
import type { CreateSettings } from '../operations/create.ts';
import type { Bounds } from './bounds.ts';
import { refusalOfStep, type Retries } from './retries.ts';
import type { Created, Znodes } from './znodes.ts';

/** The mode of parents: servers delete a `container` after its last child is deleted. */
export type ParentMode = 'persistent' | 'container';

export interface ParentSettings extends Pick<CreateSettings, 'acl'> {
  readonly mode: ParentMode;
}

export interface Parents {
  /** The whole tree: the ancestors of a chroot may be missing too. */
  readonly znodes: Znodes;
  /** Maps a path of that tree to the path that the program uses. */
  readonly inner: (path: string) => string;
  /** From the top downwards. */
  readonly paths: readonly string[];
  readonly settings: ParentSettings;
  readonly bounds: Bounds;
  /** Only the existence of the parents matters, so requests without an answer may be repeated. */
  readonly retries: Retries | undefined;
}

/**
 * The missing paths, in order. Reads are cheap and rejected writes are not, so creates are sent
 * only for missing paths.
 */
async function missingOf({ znodes, paths, bounds }: Parents): Promise<readonly string[]> {
  const { left } = bounds;
  const stats = await Promise.all(paths.map((path) => znodes.exists(path, { ...left, retry: false })));
  const first = stats.indexOf(null);
  return first === -1 ? [] : paths.slice(first);
}

/**
 * Sends all creates without waiting in between: a server executes the requests of a session in
 * order.
 */
function sendCreates({ znodes, settings, bounds }: Parents, missing: readonly string[]): Promise<PromiseSettledResult<Created>[]> {
  const { left } = bounds;
  return Promise.allSettled(missing.map((path) => znodes.create(path, null, { ...settings, ...left, retry: false })));
}

/**
 * Ignores NodeExists (another client was faster) and NoNode (another client has deleted an
 * ancestor, which the next check shows).
 */
function throwFailure(made: readonly PromiseSettledResult<Created>[]): void {
  for (const each of made) {
    if (each.status === 'rejected' && !KeeperError.is(each.reason, 'NodeExists', 'NoNode')) throw each.reason;
  }
}

/** Creates the missing paths. */
export async function ensurePaths(parents: Parents): Promise<void> {
  for (;;) {
    try {
      const made = await sendCreates(parents, await missingOf(parents));
      throwFailure(made);
      const last = made.at(-1);
      if (last === undefined || last.status === 'fulfilled' || KeeperError.is(last.reason, 'NodeExists')) return;
    } catch (error) {
      await againOrThrow(parents, error);
    }
  }
}

/**
 * Creates a znode by `create`. If its parent is missing, sends `create` again directly after the
 * creates of its parents, so that a client that deletes childless znodes can hardly interfere. If a
 * container is swept in between, it is created again.
 */
export async function createBelow<Result>(parents: Parents, create: () => Promise<Result>): Promise<Result> {
  try {
    return await create();
  } catch (error) {
    if (!KeeperError.is(error, 'NoNode')) throw error;
  }
  for (;;) {
    let missing: readonly string[];
    try {
      missing = await missingOf(parents);
    } catch (error) {
      await againOrThrow(parents, error);
      continue;
    }
    const sent = sendCreates(parents, missing);
    const [[own], made] = await Promise.all([Promise.allSettled([create()]), sent]);
    if (own.status === 'fulfilled') return own.value;
    // The caller decides about every other failure; do not repeat the create without its knowledge.
    if (!KeeperError.is(own.reason, 'NoNode')) throw own.reason;
    try {
      throwFailure(made);
    } catch (error) {
      await againOrThrow(parents, error);
    }
  }
}

async function againOrThrow({ retries, inner }: Parents, error: unknown): Promise<void> {
  const step = KeeperError.is(error) && error.path !== undefined ? refusalOfStep(error, inner(error.path)) : error;
  if (retries === undefined) throw step;
  if (!(await retries.again(step, true))) throw retries.summed(step, false);
}
