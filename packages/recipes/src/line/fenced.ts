/** Writes that count only while certain znodes are there. */
import { type CallOptions, type ClientView, KeeperError, op, type WriteOp, type WriteResults } from '@tskeeper/client';
import { checkMulti } from '../given.ts';
import { RecipeError } from '../recipe-error.ts';

/** `ops`, if each of `paths` is there: all of it, or nothing. Rejects as `Client.multi` does, and with a RecipeError, Lost, when one of `paths` is gone. */
export async function fenced<const Ops extends readonly WriteOp[]>(
  zk: ClientView,
  ops: Ops,
  paths: readonly string[],
  options: CallOptions,
): Promise<WriteResults<Ops>> {
  try {
    // Behind the others, so that `failedIndex` and `results` are as for the operations alone.
    const results = await zk.multi([...ops, ...paths.map((path) => op.check(path))], options);
    return results.slice(0, ops.length) as unknown as WriteResults<Ops>;
  } catch (error) {
    const gone = KeeperError.is(error, 'NoNode') && error.failedIndex !== undefined ? paths[error.failedIndex - ops.length] : undefined;
    if (gone === undefined) throw error;
    throw new RecipeError('Lost', `${gone} is gone, so nothing was written`, { cause: error });
  }
}

/** The same of holds, and only if none of them is over: the znode of one that is may be there still, until a server is reached that deletes it. */
export async function fencedBy<const Ops extends readonly WriteOp[]>(
  zk: ClientView,
  ops: Ops,
  holds: readonly { readonly path: string; readonly state: string }[],
  options: CallOptions,
): Promise<WriteResults<Ops>> {
  checkMulti(ops, options);
  const over = holds.find(({ state }) => state === 'lost' || state === 'released');
  if (over !== undefined) throw new RecipeError('Lost', `${over.path} is ${over.state}, so nothing was written`);
  const paths = holds.map(({ path }) => path);
  return await fenced(zk, ops, paths, options);
}
