/** Creates the parents of znodes. Other clients may create or delete them at the same time. */
import { KeeperError } from '../keeper-error.ts';
import type { CreateSettings } from '../operations/create.ts';
import type { CallDeadline } from './call-deadline.ts';
import { stepFailure, type Retries } from './retries.ts';
import type { CreatedZnode, ZnodeCalls } from './znode-calls.ts';

/** The mode of parents: servers delete a `container` after its last child is deleted. */
export type ParentMode = 'persistent' | 'container';

export interface ParentSettings extends Pick<CreateSettings, 'acl'> {
  readonly mode: ParentMode;
}

export interface ParentsToCreate {
  /** The whole tree: the ancestors of a chroot may be missing too. */
  readonly znodes: ZnodeCalls;
  /** Maps a path of that tree to the path that the program uses. */
  readonly stripChroot: (path: string) => string;
  /** From the top downwards. */
  readonly paths: readonly string[];
  readonly settings: ParentSettings;
  readonly deadline: CallDeadline;
  /** Only the existence of the parents matters, so requests without an answer may be repeated. */
  readonly retries: Retries | undefined;
}

/**
 * The missing paths, in order. Reads are cheap and rejected writes are not, so creates are sent
 * only for missing paths.
 */
async function missingPaths({ znodes, paths, deadline }: ParentsToCreate): Promise<readonly string[]> {
  const { requestLimits } = deadline;
  const stats = await Promise.all(paths.map((path) => znodes.exists(path, { ...requestLimits, retry: false })));
  const first = stats.indexOf(null);
  return first === -1 ? [] : paths.slice(first);
}

/**
 * Sends all creates without waiting in between: a server executes the requests of a session in
 * order.
 */
function sendCreates(
  { znodes, settings, deadline }: ParentsToCreate,
  missing: readonly string[],
): Promise<PromiseSettledResult<CreatedZnode>[]> {
  const { requestLimits } = deadline;
  return Promise.allSettled(missing.map((path) => znodes.create(path, null, { ...settings, ...requestLimits, retry: false })));
}

/**
 * Ignores NodeExists (another client was faster) and NoNode (another client has deleted an
 * ancestor, which the next check shows).
 */
function throwUnexpectedFailure(made: readonly PromiseSettledResult<CreatedZnode>[]): void {
  for (const each of made) {
    if (each.status === 'rejected' && !KeeperError.is(each.reason, 'NodeExists', 'NoNode')) throw each.reason;
  }
}

/** Creates the missing paths. */
export async function ensurePaths(parents: ParentsToCreate): Promise<void> {
  for (;;) {
    try {
      const made = await sendCreates(parents, await missingPaths(parents));
      throwUnexpectedFailure(made);
      const last = made.at(-1);
      if (last === undefined || last.status === 'fulfilled' || KeeperError.is(last.reason, 'NodeExists')) return;
    } catch (error) {
      await retryOrThrow(parents, error);
    }
  }
}

/**
 * Creates a znode by `create`. If its parent is missing, sends `create` again directly after the
 * creates of its parents, so that a client that deletes childless znodes can hardly interfere. If a
 * container is swept in between, it is created again.
 */
export async function createWithParents<Result>(parents: ParentsToCreate, create: () => Promise<Result>): Promise<Result> {
  try {
    return await create();
  } catch (error) {
    if (!KeeperError.is(error, 'NoNode')) throw error;
  }
  for (;;) {
    let missing: readonly string[];
    try {
      missing = await missingPaths(parents);
    } catch (error) {
      await retryOrThrow(parents, error);
      continue;
    }
    const sent = sendCreates(parents, missing);
    const [[own], made] = await Promise.all([Promise.allSettled([create()]), sent]);
    if (own.status === 'fulfilled') return own.value;
    // The caller decides about every other failure; do not repeat the create without its knowledge.
    if (!KeeperError.is(own.reason, 'NoNode')) throw own.reason;
    try {
      throwUnexpectedFailure(made);
    } catch (error) {
      await retryOrThrow(parents, error);
    }
  }
}

async function retryOrThrow({ retries, stripChroot }: ParentsToCreate, error: unknown): Promise<void> {
  const step = KeeperError.is(error) && error.path !== undefined ? stepFailure(error, stripChroot(error.path)) : error;
  if (retries === undefined) throw step;
  if (!(await retries.waitToRetry(step, true))) throw retries.finalError(step, false);
}
