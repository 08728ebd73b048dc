/** Znodes that are made because something shall stand below them. Others may make them at the same time, and others may take them away. */
import { KeeperError } from '../keeper-error.ts';
import type { CreateSettings } from '../operations/create.ts';
import type { Bounds } from './bounds.ts';
import { refusalOfStep, type Retries } from './retries.ts';
import type { Created, Znodes } from './znodes.ts';

/** What parents are: `container`s go again by themselves when the last child has gone. */
export type ParentMode = 'persistent' | 'container';

export interface ParentSettings extends Pick<CreateSettings, 'acl'> {
  readonly mode: ParentMode;
}

export interface Parents {
  /** The whole tree: what stands above a chroot may be missing too. */
  readonly znodes: Znodes;
  /** What the program calls a path of that tree. */
  readonly inner: (path: string) => string;
  /** From the top downwards. */
  readonly paths: readonly string[];
  readonly settings: ParentSettings;
  readonly bounds: Bounds;
  /** That parents are there is all that is asked for, so what was not answered may be asked again. */
  readonly retries: Retries | undefined;
}

/** Of what is missing, in order. Reads are cheap and refused writes are not, so creates are sent for what is missing only. */
async function missingOf({ znodes, paths, bounds }: Parents): Promise<readonly string[]> {
  const { left } = bounds;
  const stats = await Promise.all(paths.map((path) => znodes.exists(path, { ...left, retry: false })));
  const first = stats.indexOf(null);
  return first === -1 ? [] : paths.slice(first);
}

/** Sends a create for each, all on their way together: those of one session are carried out in order. */
function sendCreates({ znodes, settings, bounds }: Parents, missing: readonly string[]): Promise<PromiseSettledResult<Created>[]> {
  const { left } = bounds;
  return Promise.allSettled(missing.map((path) => znodes.create(path, null, { ...settings, ...left, retry: false })));
}

/** NodeExists: somebody else was faster. NoNode: somebody has taken away what stands above, and the next look will show it. */
function throwFailure(made: readonly PromiseSettledResult<Created>[]): void {
  for (const each of made) {
    if (each.status === 'rejected' && !KeeperError.is(each.reason, 'NodeExists', 'NoNode')) throw each.reason;
  }
}

/** Makes what is missing of the paths. */
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
 * Makes a znode by `create`; when its parent is missing, once more, close behind the creates of its parents: so close that those who delete
 * childless znodes seldom come between. A container that is swept in between is made anew.
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
    // Whatever else became of it is the caller's to judge: it must not be made again behind his back.
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
