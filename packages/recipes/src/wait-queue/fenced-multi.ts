/** Writes that are applied only while certain znodes exist. */
import { type CallOptions, type ClientView, KeeperError, op, type WriteOp, type WriteResults } from '@tskeeper/client';
import { checkMulti } from '../validation.ts';
import { RecipeError } from '../recipe-error.ts';

/**
 * Writes `ops` if each of `paths` exists: all of them or none. Rejects as `Client.multi` does, and
 * with a RecipeError, Lost, when one of `paths` is gone.
 */
export async function fencedMulti<const Ops extends readonly WriteOp[]>(
  zk: ClientView,
  ops: Ops,
  paths: readonly string[],
  options: CallOptions,
): Promise<WriteResults<Ops>> {
  try {
    // The checks come last, so that `failedIndex` and `results` are those of `ops`.
    const results = await zk.multi([...ops, ...paths.map((path) => op.check(path))], options);
    return results.slice(0, ops.length) as unknown as WriteResults<Ops>;
  } catch (error) {
    const gone = KeeperError.is(error, 'NoNode') && error.failedIndex !== undefined ? paths[error.failedIndex - ops.length] : undefined;
    if (gone === undefined) throw error;
    throw new RecipeError('Lost', `${gone} is gone, so nothing was written`, { cause: error });
  }
}

/**
 * The same for holds, if none of them is over: the znode of a lost or released hold may still
 * exist, until a server is reached that deletes it.
 */
export async function multiWhileHeld<const Ops extends readonly WriteOp[]>(
  zk: ClientView,
  ops: Ops,
  holds: readonly { readonly path: string; readonly state: string }[],
  options: CallOptions,
): Promise<WriteResults<Ops>> {
  checkMulti(ops, options);
  const over = holds.find(({ state }) => state === 'lost' || state === 'released');
  if (over !== undefined) throw new RecipeError('Lost', `${over.path} is ${over.state}, so nothing was written`);
  const paths = holds.map(({ path }) => path);
  return await fencedMulti(zk, ops, paths, options);
}
