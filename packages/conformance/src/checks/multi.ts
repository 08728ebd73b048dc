/** multi: several writes, all or none. */
import { type Client, digestId, type KeeperErrorCode, op, openAcl, Perms, readOnlyAcl, type WriteOp } from '@tskeeper/client';
import { ErrorCode, OpCode, operations, writeMultiEnd, writeMultiHeader } from '@tskeeper/protocol';
import type { RunnableCheck } from '../check.ts';
import { equal, holds, refused, show, textOf } from '../expect.ts';
import { type Ground, identities, underWay } from '../ground.ts';

const docs = 'ZooKeeper.multi; ZOOKEEPER-965';

/** Another client, perhaps at another server, sees each multi of one client as a whole. */
export async function expectSeenAtOnce(ground: Ground, zk: Client, other: Client): Promise<void> {
  const [a, b] = [`${ground.root}/a`, `${ground.root}/b`];
  await zk.multi([op.create(a, '0'), op.create(b, '0')]);
  await ground.caughtUp(other);
  /** The zxid of each value: the parts of a multi share one. */
  const zxids = new Map<string, bigint>();
  for (let round = 0; round < 50; round++) {
    const values = [`${round} first`, `${round} second`];
    const writing = underWay(values.map((value) => zk.multi([op.setData(b, value), op.setData(a, value)])));
    // A server that shows one of the values late is only detected if that one is read directly
    // after the other: in every second round.
    const paths = round % 2 === 0 ? [b, a, b] : [a, b, a];
    const reads = await Promise.all(paths.map((path) => other.getData(path)));
    for (const [at, { data, stat }] of reads.entries()) {
      const before = reads[at - 1]?.stat.mzxid ?? stat.mzxid;
      holds('mzxid of one value, read after the other', stat.mzxid >= before, `at least ${show(before)}`, stat.mzxid);
      const value = String(textOf(data));
      if (!zxids.has(value)) zxids.set(value, stat.mzxid);
      equal(`mzxid of the value ${value}, in either znode`, stat.mzxid, zxids.get(value)!);
    }
    await writing;
  }
}

export const multiChecks: readonly RunnableCheck[] = [
  {
    name: 'multi.results',
    title: 'a multi executes its operations in order, each seeing the earlier ones, and returns a result of the right type for each',
    rows: ['A12', 'B47'],
    docs,
    async run(ground) {
      const zk = await ground.open();
      const path = `${ground.root}/a`;
      const [created, changed, checked, deleted, again] = await zk.multi([
        op.create(path, 'x'),
        op.setData(path, 'yy', { version: 0 }),
        op.check(path, { version: 1 }),
        op.delete(path, { version: 1 }),
        op.create(path, 'z'),
      ]);
      equal('the path', created.path, path);
      equal('version and dataLength of the setData', [changed.stat.version, changed.stat.dataLength], [1, 2]);
      equal('the types', [checked.op, deleted.op, again.op], ['check', 'delete', 'create']);
      const { data, stat } = await zk.getData(path);
      equal('data and version at the end', [textOf(data), stat.version], ['z', 0]);
    },
  },
  {
    name: 'multi.create-stat',
    title: 'a create2 inside a multi returns the Stat',
    rows: ['A11', 'A12'],
    docs: 'ZOOKEEPER-4026',
    since: [3, 8, 2],
    async run(ground) {
      const zk = await ground.open();
      const [created] = await zk.multi([op.create(`${ground.root}/a`, 'x')]);
      equal('the Stat', created.stat, (await zk.getData(`${ground.root}/a`)).stat);
    },
  },
  {
    name: 'multi.modes',
    title: 'a multi can create in every mode',
    rows: ['A12', 'B46', 'B47'],
    docs: `${docs}; Op.create`,
    needs: ['extendedTypes'],
    async run(ground) {
      const zk = await ground.open();
      const { root } = ground;
      const results = await zk.multi([
        op.create(`${root}/p`),
        op.create(`${root}/e`, null, { mode: 'ephemeral' }),
        op.create(`${root}/s-`, null, { mode: 'persistentSequential' }),
        op.create(`${root}/s-`, null, { mode: 'ephemeralSequential' }),
        op.create(`${root}/c`, null, { mode: 'container' }),
        op.create(`${root}/t`, null, { mode: 'persistentWithTtl', ttlMs: 3_600_000 }),
        op.create(`${root}/t-`, null, { mode: 'persistentSequentialWithTtl', ttlMs: 3_600_000 }),
      ]);
      equal(
        'the paths',
        results.map(({ path }) => path.slice(root.length + 1)),
        ['p', 'e', 's-0000000002', 's-0000000003', 'c', 't', 't-0000000006'],
      );
      const owners = await Promise.all(results.map(async ({ path }) => (await zk.exists(path))?.ephemeralOwner));
      const { sessionId } = zk;
      equal('ephemeralOwner of each', owners, [0n, sessionId, 0n, sessionId, 0n, 0n, 0n]);
    },
  },
  {
    name: 'multi.all-or-nothing',
    title:
      'a multi that fails changes nothing: its error names the operation, the results before it are Ok and those after it RuntimeInconsistency',
    rows: ['A12', 'B47'],
    docs: `${docs}; OpResult.ErrorResult`,
    async run(ground) {
      const zk = await ground.open();
      const { root } = ground;
      await zk.create(`${root}/a`, 'old');
      const before = await zk.exists(root);
      const failed = await refused(
        'the multi',
        zk.multi([
          op.create(`${root}/b`),
          op.setData(`${root}/a`, 'new'),
          op.delete(`${root}/missing`),
          op.create(`${root}/c`),
          op.check(root),
        ]),
        'NoNode',
      );
      equal('which failed', failed.failedIndex, 2);
      equal(
        'the result of each',
        failed.results?.map(({ errno }) => errno),
        [0, 0, ErrorCode.NoNode, ErrorCode.RuntimeInconsistency, ErrorCode.RuntimeInconsistency],
      );
      equal('the data', textOf((await zk.getData(`${root}/a`)).data), 'old');
      equal('the Stat of the parent', await zk.exists(root), before);
    },
  },
  {
    name: 'multi.failures',
    title: 'each operation fails in a multi as it does alone',
    rows: ['A12', 'A17', 'B47'],
    docs,
    async run(ground) {
      const zk = await ground.open();
      const owner = await ground.open({ auth: [{ scheme: 'digest', auth: identities.keeper }] });
      const { root } = ground;
      const keeper = { perms: Perms.all, id: { scheme: 'digest', id: digestId(identities.keeper) } };
      await zk.create(`${root}/a`);
      await zk.create(`${root}/a/b`);
      await zk.create(`${root}/e`, null, { mode: 'ephemeral' });
      await owner.create(`${root}/locked`, null, { acl: [keeper, ...readOnlyAcl] });
      await owner.create(`${root}/hidden`, null, { acl: [keeper] });
      const failures: readonly (readonly [KeeperErrorCode, WriteOp])[] = [
        ['NodeExists', op.create(`${root}/a`)],
        ['NoNode', op.create(`${root}/x/y`)],
        ['NoChildrenForEphemerals', op.create(`${root}/e/x`)],
        ['InvalidACL', op.create(`${root}/x`, null, { acl: [] })],
        ['NoAuth', op.create(`${root}/locked/x`)],
        ['NoNode', op.delete(`${root}/x`)],
        ['NotEmpty', op.delete(`${root}/a`)],
        ['BadVersion', op.delete(`${root}/a/b`, { version: 3 })],
        ['BadArguments', op.delete('/zookeeper', { version: 1_234_567 })],
        ['NoNode', op.setData(`${root}/x`, null)],
        ['BadVersion', op.setData(`${root}/a`, null, { version: 3 })],
        ['NoAuth', op.setData(`${root}/locked`, null)],
        ['NoNode', op.check(`${root}/x`)],
        ['BadVersion', op.check(`${root}/a`, { version: 3 })],
        ['NoAuth', op.check(`${root}/hidden`)],
      ];
      await ground.caughtUp(zk);
      for (const [code, each] of failures) {
        const failed = await refused(`${each.op} ${each.path}`, zk.multi([op.check(root), each, op.create(`${root}/z`)]), code);
        equal(`the failed operation, of ${each.op} ${each.path}`, failed.failedIndex, 1);
      }
      equal('the znodes that the multis would have created', await zk.exists(`${root}/z`), null);
    },
  },
  {
    name: 'multi.undone-parts',
    title: 'znodes that a failed multi created on the way can be created by the next multi',
    rows: ['A12'],
    docs: `${docs}; PrepRequestProcessor.rollbackPendingChanges`,
    async run(ground) {
      const zk = await ground.open();
      const { root } = ground;
      await zk.create(`${root}/a`, '0');
      const failing = zk.multi([op.delete(`${root}/a`), op.create(`${root}/b`), op.check(`${root}/missing`)]).catch(() => undefined);
      const next = zk.multi([
        op.check(`${root}/a`, { version: 0 }),
        op.create(`${root}/b`, 'x'),
        op.setData(`${root}/a`, '1', { version: 0 }),
      ]);
      await failing;
      equal('the version in the next multi', (await next)[2].stat.version, 1);
      equal('the children', (await zk.getChildren(root)).children.toSorted(), ['a', 'b']);
    },
  },
  {
    name: 'multi.seen-at-once',
    title: 'other clients see all of a multi or nothing of it',
    rows: ['A12', 'A18'],
    docs: "Programmer's Guide, Consistency Guarantees, Atomicity",
    async run(ground) {
      await expectSeenAtOnce(ground, await ground.open(), await ground.open());
    },
  },
  {
    name: 'multi.empty',
    title: 'an empty multi returns an empty list',
    rows: ['A12'],
    docs: 'zookeeper.jute, MultiHeader; MultiResponse',
    async run(ground) {
      const cnxn = await ground.openRawSession();
      const reply = await cnxn.call(OpCode.multi, writeMultiEnd);
      equal('the error', reply?.err, 0);
      equal('the results', operations.multi.reply.read(reply!.body).results, []);
    },
  },
  {
    name: 'multi.illegal-part',
    title: 'a multi with an operation that a multi cannot contain is rejected as a whole (MarshallingError)',
    rows: ['A12'],
    docs: 'MultiOperationRecord.deserialize',
    since: [3, 6, 0],
    async run(ground) {
      const cnxn = await ground.openRawSession();
      const reply = await cnxn.call(OpCode.multi, (writer) => {
        const request = { path: `${ground.root}/a`, data: null, acl: openAcl, flags: 0 };
        writeMultiHeader(writer, { type: OpCode.create2, done: false, err: -1 });
        operations.create2.request.write(writer, request);
        writeMultiHeader(writer, { type: OpCode.getData, done: false, err: -1 });
        operations.getData.request.write(writer, { path: ground.root, watch: false });
        writeMultiEnd(writer);
      });
      equal('the error', reply?.err, ErrorCode.MarshallingError);
      equal('the znode that it would have created', await (await ground.open()).exists(`${ground.root}/a`), null);
    },
  },
];
