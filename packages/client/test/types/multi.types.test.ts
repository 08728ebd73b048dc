/**
 * Transactions, with a typed result per operation. The compiler checks the assertions
 * (`npm run check`); nothing of this runs.
 */
import { expectTypeOf, it } from 'vitest';
import {
  type CheckOp,
  type Client,
  type CreateOp,
  type DeleteOp,
  type GetChildrenOp,
  type GetDataOp,
  KeeperError,
  op,
  type ReadResult,
  type SetDataOp,
  type Stat,
  type WriteOp,
  type WriteResult,
} from '../../src/index.ts';

declare const zk: Client;
declare const someOps: readonly WriteOp[];

export function operations(): void {
  expectTypeOf(op.create('/a', 'x', { mode: 'ephemeral' })).toEqualTypeOf<CreateOp>();
  expectTypeOf(op.setData('/a', 'x', { version: 1 })).toEqualTypeOf<SetDataOp>();
  expectTypeOf(op.delete('/a')).toEqualTypeOf<DeleteOp>();
  expectTypeOf(op.check('/a', { version: 1 })).toEqualTypeOf<CheckOp>();
  expectTypeOf(op.getData('/a')).toEqualTypeOf<GetDataOp>();
  expectTypeOf(op.getChildren('/a')).toEqualTypeOf<GetChildrenOp>();
  // @ts-expect-error a TTL needs its mode
  op.create('/a', 'x', { ttlMs: 5 });
  // @ts-expect-error parents are not part of a transaction
  op.create('/a', 'x', { parents: true });
  // @ts-expect-error a version is a number
  op.check('/a', { version: 1n });
  // @ts-expect-error data are required
  op.setData('/a');
  // @ts-expect-error a multiRead sets no watches
  op.getData('/a', { watch: true });
  // @ts-expect-error exists is not part of either
  op.exists('/a');
}

export async function writing(): Promise<void> {
  const [made, set, gone, checked] = await zk.multi([op.create('/a'), op.setData('/b', 'x'), op.delete('/c'), op.check('/d')]);
  expectTypeOf(made).toEqualTypeOf<WriteResult<CreateOp>>();
  expectTypeOf(made.path).toEqualTypeOf<string>();
  expectTypeOf(made.stat).toEqualTypeOf<Stat | undefined>();
  expectTypeOf(set.stat).toEqualTypeOf<Stat>();
  expectTypeOf(gone.op).toEqualTypeOf<'delete'>();
  expectTypeOf(checked.op).toEqualTypeOf<'check'>();
  // @ts-expect-error a delete has no Stat
  void gone.stat;
  // @ts-expect-error nor has a setData a path
  void set.path;
  // @ts-expect-error there are as many results as operations
  const [, , , , fifth] = await zk.multi([op.create('/a'), op.setData('/b', 'x'), op.delete('/c'), op.check('/d')]);
  expectTypeOf(fifth).toEqualTypeOf<undefined>();

  for (const result of await zk.multi(someOps)) {
    switch (result.op) {
      case 'create':
        expectTypeOf(result.path).toEqualTypeOf<string>();
        break;
      case 'setData':
        expectTypeOf(result.stat).toEqualTypeOf<Stat>();
        break;
      case 'delete':
      case 'check':
        break;
      default:
        result satisfies never;
    }
  }
  // @ts-expect-error a multi does not read
  await zk.multi([op.getData('/a')]);
  // @ts-expect-error it takes a list
  await zk.multi(op.delete('/a'));
  // @ts-expect-error an operation names what it does
  await zk.multi([{ path: '/a' }]);
}

export async function reading(): Promise<void> {
  const [data, children] = await zk.multiRead([op.getData('/a'), op.getChildren('/b')]);
  expectTypeOf(data).toEqualTypeOf<ReadResult<GetDataOp>>();
  if (data.op === 'getData') expectTypeOf(data.data).toEqualTypeOf<Uint8Array | null>();
  else expectTypeOf(data.error).toEqualTypeOf<KeeperError>();
  if (children.error === undefined) expectTypeOf(children.children).toEqualTypeOf<readonly string[]>();
  // @ts-expect-error a result may be an error, so check first
  void data.stat;
  // @ts-expect-error a list of children is not data
  if (children.op === 'getData') void children.data;
  // @ts-expect-error a multiRead does not write
  await zk.multiRead([op.delete('/a')]);
  // @ts-expect-error and sets no watch
  await zk.multiRead([op.getData('/a')], { watch: true });
}

it('B32: transactions have the asserted types', () => {
  expectTypeOf(writing).returns.resolves.toEqualTypeOf<void>();
});
