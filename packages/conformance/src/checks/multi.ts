/** multi: several writes, all or none. */
import { type Client, digestId, type KeeperErrorCode, op, openAcl, Perms, readOnlyAcl, type WriteOp } from '@tskeeper/client';
import { ErrorCode, OpCode, operations, writeMultiEnd, writeMultiHeader } from '@tskeeper/protocol';
import type { RunnableCheck } from '../check.ts';
import { expectEqual, expectThat, expectError, describe, textOf } from '../expect.ts';
import { type CheckContext, identities, inFlight } from '../check-context.ts';

const docs = 'ZooKeeper.multi; ZOOKEEPER-965';

/** Another client, perhaps at another server, sees each multi of one client as a whole. */
export async function expectSeenAtOnce(context: CheckContext, zk: Client, other: Client): Promise<void> {
  const [a, b] = [`${context.rootPath}/a`, `${context.rootPath}/b`];
  await zk.multi([op.create(a, '0'), op.create(b, '0')]);
  await context.catchUp(other);
  /** The zxid of each value: the parts of a multi share one. */
  const zxids = new Map<string, bigint>();
  for (let round = 0; round < 50; round++) {
    const values = [`${round} first`, `${round} second`];
    const writing = inFlight(values.map((value) => zk.multi([op.setData(b, value), op.setData(a, value)])));
    // A server that shows one of the values late is only detected if that one is read directly
    // after the other: in every second round.
    const paths = round % 2 === 0 ? [b, a, b] : [a, b, a];
    const reads = await Promise.all(paths.map((path) => other.getData(path)));
    for (const [at, { data, stat }] of reads.entries()) {
      const before = reads[at - 1]?.stat.mzxid ?? stat.mzxid;
      expectThat('mzxid of one value, read after the other', stat.mzxid >= before, `at least ${describe(before)}`, stat.mzxid);
      const value = String(textOf(data));
      if (!zxids.has(value)) zxids.set(value, stat.mzxid);
      expectEqual(`mzxid of the value ${value}, in either znode`, stat.mzxid, zxids.get(value)!);
    }
    await writing;
  }
}

export const multiChecks: readonly RunnableCheck[] = [
  {
    name: 'multi.results',
    title: 'a multi executes its operations in order, each seeing the earlier ones, and returns a result of the right type for each',
    behaviourIds: ['A12', 'B47'],
    docs,
    async run(context) {
      const zk = await context.openClient();
      const path = `${context.rootPath}/a`;
      const [created, changed, checked, deleted, again] = await zk.multi([
        op.create(path, 'x'),
        op.setData(path, 'yy', { version: 0 }),
        op.check(path, { version: 1 }),
        op.delete(path, { version: 1 }),
        op.create(path, 'z'),
      ]);
      expectEqual('the path', created.path, path);
      expectEqual('version and dataLength of the setData', [changed.stat.version, changed.stat.dataLength], [1, 2]);
      expectEqual('the types', [checked.op, deleted.op, again.op], ['check', 'delete', 'create']);
      const { data, stat } = await zk.getData(path);
      expectEqual('data and version at the end', [textOf(data), stat.version], ['z', 0]);
    },
  },
  {
    name: 'multi.create-stat',
    title: 'a create2 inside a multi returns the Stat',
    behaviourIds: ['A11', 'A12'],
    docs: 'ZOOKEEPER-4026',
    since: [3, 8, 2],
    async run(context) {
      const zk = await context.openClient();
      const [created] = await zk.multi([op.create(`${context.rootPath}/a`, 'x')]);
      expectEqual('the Stat', created.stat, (await zk.getData(`${context.rootPath}/a`)).stat);
    },
  },
  {
    name: 'multi.modes',
    title: 'a multi can create in every mode',
    behaviourIds: ['A12', 'B46', 'B47'],
    docs: `${docs}; Op.create`,
    needs: ['extendedTypes'],
    async run(context) {
      const zk = await context.openClient();
      const { rootPath } = context;
      const results = await zk.multi([
        op.create(`${rootPath}/p`),
        op.create(`${rootPath}/e`, null, { mode: 'ephemeral' }),
        op.create(`${rootPath}/s-`, null, { mode: 'persistentSequential' }),
        op.create(`${rootPath}/s-`, null, { mode: 'ephemeralSequential' }),
        op.create(`${rootPath}/c`, null, { mode: 'container' }),
        op.create(`${rootPath}/t`, null, { mode: 'persistentWithTtl', ttlMs: 3_600_000 }),
        op.create(`${rootPath}/t-`, null, { mode: 'persistentSequentialWithTtl', ttlMs: 3_600_000 }),
      ]);
      expectEqual(
        'the paths',
        results.map(({ path }) => path.slice(rootPath.length + 1)),
        ['p', 'e', 's-0000000002', 's-0000000003', 'c', 't', 't-0000000006'],
      );
      const owners = await Promise.all(results.map(async ({ path }) => (await zk.exists(path))?.ephemeralOwner));
      const { sessionId } = zk;
      expectEqual('ephemeralOwner of each', owners, [0n, sessionId, 0n, sessionId, 0n, 0n, 0n]);
    },
  },
  {
    name: 'multi.all-or-nothing',
    title:
      'a multi that fails changes nothing: its error names the operation, the results before it are Ok and those after it RuntimeInconsistency',
    behaviourIds: ['A12', 'B47'],
    docs: `${docs}; OpResult.ErrorResult`,
    async run(context) {
      const zk = await context.openClient();
      const { rootPath } = context;
      await zk.create(`${rootPath}/a`, 'old');
      const before = await zk.exists(rootPath);
      const failed = await expectError(
        'the multi',
        zk.multi([
          op.create(`${rootPath}/b`),
          op.setData(`${rootPath}/a`, 'new'),
          op.delete(`${rootPath}/missing`),
          op.create(`${rootPath}/c`),
          op.check(rootPath),
        ]),
        'NoNode',
      );
      expectEqual('which failed', failed.failedIndex, 2);
      expectEqual(
        'the result of each',
        failed.results?.map(({ errno }) => errno),
        [0, 0, ErrorCode.NoNode, ErrorCode.RuntimeInconsistency, ErrorCode.RuntimeInconsistency],
      );
      expectEqual('the data', textOf((await zk.getData(`${rootPath}/a`)).data), 'old');
      expectEqual('the Stat of the parent', await zk.exists(rootPath), before);
    },
  },
  {
    name: 'multi.failures',
    title: 'each operation fails in a multi as it does alone',
    behaviourIds: ['A12', 'A17', 'B47'],
    docs,
    async run(context) {
      const zk = await context.openClient();
      const owner = await context.openClient({ auth: [{ scheme: 'digest', auth: identities.keeper }] });
      const { rootPath } = context;
      const keeper = { perms: Perms.all, id: { scheme: 'digest', id: digestId(identities.keeper) } };
      await zk.create(`${rootPath}/a`);
      await zk.create(`${rootPath}/a/b`);
      await zk.create(`${rootPath}/e`, null, { mode: 'ephemeral' });
      await owner.create(`${rootPath}/locked`, null, { acl: [keeper, ...readOnlyAcl] });
      await owner.create(`${rootPath}/hidden`, null, { acl: [keeper] });
      const failures: readonly (readonly [KeeperErrorCode, WriteOp])[] = [
        ['NodeExists', op.create(`${rootPath}/a`)],
        ['NoNode', op.create(`${rootPath}/x/y`)],
        ['NoChildrenForEphemerals', op.create(`${rootPath}/e/x`)],
        ['InvalidACL', op.create(`${rootPath}/x`, null, { acl: [] })],
        ['NoAuth', op.create(`${rootPath}/locked/x`)],
        ['NoNode', op.delete(`${rootPath}/x`)],
        ['NotEmpty', op.delete(`${rootPath}/a`)],
        ['BadVersion', op.delete(`${rootPath}/a/b`, { version: 3 })],
        ['BadArguments', op.delete('/zookeeper', { version: 1_234_567 })],
        ['NoNode', op.setData(`${rootPath}/x`, null)],
        ['BadVersion', op.setData(`${rootPath}/a`, null, { version: 3 })],
        ['NoAuth', op.setData(`${rootPath}/locked`, null)],
        ['NoNode', op.check(`${rootPath}/x`)],
        ['BadVersion', op.check(`${rootPath}/a`, { version: 3 })],
        ['NoAuth', op.check(`${rootPath}/hidden`)],
      ];
      await context.catchUp(zk);
      for (const [code, each] of failures) {
        const failed = await expectError(`${each.op} ${each.path}`, zk.multi([op.check(rootPath), each, op.create(`${rootPath}/z`)]), code);
        expectEqual(`the failed operation, of ${each.op} ${each.path}`, failed.failedIndex, 1);
      }
      expectEqual('the znodes that the multis would have created', await zk.exists(`${rootPath}/z`), null);
    },
  },
  {
    name: 'multi.undone-parts',
    title: 'znodes that a failed multi created on the way can be created by the next multi',
    behaviourIds: ['A12'],
    docs: `${docs}; PrepRequestProcessor.rollbackPendingChanges`,
    async run(context) {
      const zk = await context.openClient();
      const { rootPath } = context;
      await zk.create(`${rootPath}/a`, '0');
      const failing = zk
        .multi([op.delete(`${rootPath}/a`), op.create(`${rootPath}/b`), op.check(`${rootPath}/missing`)])
        .catch(() => undefined);
      const next = zk.multi([
        op.check(`${rootPath}/a`, { version: 0 }),
        op.create(`${rootPath}/b`, 'x'),
        op.setData(`${rootPath}/a`, '1', { version: 0 }),
      ]);
      await failing;
      expectEqual('the version in the next multi', (await next)[2].stat.version, 1);
      expectEqual('the children', (await zk.getChildren(rootPath)).children.toSorted(), ['a', 'b']);
    },
  },
  {
    name: 'multi.seen-at-once',
    title: 'other clients see all of a multi or nothing of it',
    behaviourIds: ['A12', 'A18'],
    docs: "Programmer's Guide, Consistency Guarantees, Atomicity",
    async run(context) {
      await expectSeenAtOnce(context, await context.openClient(), await context.openClient());
    },
  },
  {
    name: 'multi.empty',
    title: 'an empty multi returns an empty list',
    behaviourIds: ['A12'],
    docs: 'zookeeper.jute, MultiHeader; MultiResponse',
    async run(context) {
      const cnxn = await context.openRawCnxnWithSession();
      const reply = await cnxn.call(OpCode.multi, writeMultiEnd);
      expectEqual('the error', reply?.err, 0);
      expectEqual('the results', operations.multi.reply.read(reply!.body).results, []);
    },
  },
  {
    name: 'multi.illegal-part',
    title: 'a multi with an operation that a multi cannot contain is rejected as a whole (MarshallingError)',
    behaviourIds: ['A12'],
    docs: 'MultiOperationRecord.deserialize',
    since: [3, 6, 0],
    async run(context) {
      const cnxn = await context.openRawCnxnWithSession();
      const reply = await cnxn.call(OpCode.multi, (writer) => {
        const request = { path: `${context.rootPath}/a`, data: null, acl: openAcl, flags: 0 };
        writeMultiHeader(writer, { type: OpCode.create2, done: false, err: -1 });
        operations.create2.request.write(writer, request);
        writeMultiHeader(writer, { type: OpCode.getData, done: false, err: -1 });
        operations.getData.request.write(writer, { path: context.rootPath, watch: false });
        writeMultiEnd(writer);
      });
      expectEqual('the error', reply?.err, ErrorCode.MarshallingError);
      expectEqual('the znode that it would have created', await (await context.openClient()).exists(`${context.rootPath}/a`), null);
    },
  },
];
