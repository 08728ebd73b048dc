/** create, in each of its modes. */
import { KeeperError } from '@tskeeper/client';
import { OpCode, operations, Perms, readCreateReply } from '@tskeeper/protocol';
import { NotApplicable, type RunnableCheck } from '../check.ts';
import { expectEqual, expectThat, expectError, textOf } from '../expect.ts';

const createModesDocs = "Programmer's Guide, ZooKeeper Data Model, Nodes";

export const createChecks: readonly RunnableCheck[] = [
  {
    name: 'create.persistent',
    title: 'create returns the path and the Stat of the new znode',
    behaviourIds: ['B46', 'A11', 'C3-1', 'C3-29'],
    docs: `${createModesDocs}; ZooKeeper.create`,
    async run(context) {
      const zk = await context.openClient();
      const { path, stat } = await zk.create(`${context.rootPath}/a`, 'one');
      expectEqual('the path', path, `${context.rootPath}/a`);
      const { czxid, mzxid, pzxid, ctime, mtime, ...rest } = stat;
      expectEqual('mzxid and pzxid, equal to czxid', [mzxid, pzxid], [czxid, czxid]);
      expectThat('ctime', ctime > 0 && ctime === mtime, 'a time, equal to mtime', { ctime, mtime });
      expectEqual('the rest of the Stat', rest, {
        version: 0,
        cversion: 0,
        aversion: 0,
        ephemeralOwner: 0n,
        dataLength: 3,
        numChildren: 0,
      });
      expectEqual('the Stat from getData', (await zk.getData(path)).stat, stat);
    },
  },
  {
    name: 'create.outlives-its-session',
    title: 'a persistent znode outlives the session that created it',
    behaviourIds: ['B46'],
    docs: `${createModesDocs}; CreateMode.PERSISTENT`,
    async run(context) {
      const maker = await context.openClient();
      await maker.create(`${context.rootPath}/a`, 'x');
      await maker.close();
      expectEqual('its data', textOf((await (await context.openClient()).getData(`${context.rootPath}/a`)).data), 'x');
    },
  },
  {
    name: 'create.without-stat',
    title: 'the first version of create returns the path alone',
    behaviourIds: ['A10'],
    docs: 'zookeeper.jute, CreateResponse',
    async run(context) {
      const cnxn = await context.openRawCnxnWithSession();
      const path = `${context.rootPath}/a`;
      const acl = [{ perms: Perms.all, id: { scheme: 'world', id: 'anyone' } }];
      const reply = await cnxn.call(OpCode.create, (writer) =>
        operations.create.request.write(writer, { path, data: null, acl, flags: 0 }),
      );
      expectEqual('the error', reply?.err, 0);
      expectEqual('the path', readCreateReply(reply!.body).path, path);
      expectEqual('bytes after the path', reply!.body.remaining, 0);
    },
  },
  {
    name: 'create.ephemeral',
    title: 'an ephemeral znode belongs to its session and has no children',
    behaviourIds: ['A7', 'B46', 'C3-15'],
    docs: `${createModesDocs}, Ephemeral Nodes`,
    async run(context) {
      const zk = await context.openClient();
      const { path, stat } = await zk.create(`${context.rootPath}/e`, null, { mode: 'ephemeral' });
      expectEqual('ephemeralOwner', stat.ephemeralOwner, zk.sessionId);
      for (const mode of ['persistent', 'ephemeral', 'persistentSequential', 'container'] as const) {
        await expectError(`a ${mode} child`, zk.create(`${path}/x`, null, { mode }), 'NoChildrenForEphemerals');
      }
      expectEqual('numChildren', (await zk.exists(path))?.numChildren, 0);
    },
  },
  {
    name: 'create.container',
    title:
      'a container is not ephemeral and may have children; a create below a deleted container fails with NoNode until it is created again',
    behaviourIds: ['A8', 'B46', 'C3-22'],
    docs: `${createModesDocs}, Container Nodes`,
    async run(context) {
      const zk = await context.openClient();
      const { path, stat } = await zk.create(`${context.rootPath}/c`, null, { mode: 'container' });
      expectEqual('ephemeralOwner', stat.ephemeralOwner, 0n);
      await zk.create(`${path}/x`, null, { mode: 'ephemeral' });
      expectEqual('ephemeralOwner, read', (await zk.exists(path))?.ephemeralOwner, 0n);
      expectEqual('children', (await zk.getChildren(path)).children, ['x']);
      // A server deletes containers at times of its own choice; for clients that create below it,
      // this delete has the same effect.
      await zk.delete(`${path}/x`);
      await zk.delete(path);
      const child = () => zk.create(`${path}/y`, null, { mode: 'ephemeral' });
      await expectError('a create below a deleted container', child(), 'NoNode');
      await zk.create(path, null, { mode: 'container' });
      expectEqual('the path after the container was created again', (await child()).path, `${path}/y`);
    },
  },
  {
    name: 'create.ttl',
    title: 'a znode with a TTL is not ephemeral, may have children, and exists until the TTL has passed',
    behaviourIds: ['A9', 'B46', 'C3-23'],
    docs: `${createModesDocs}, TTL Nodes`,
    needs: ['extendedTypes'],
    async run(context) {
      const zk = await context.openClient();
      const ttlMs = 3_600_000;
      const { path, stat } = await zk.create(`${context.rootPath}/t`, 'x', { mode: 'persistentWithTtl', ttlMs });
      expectEqual('ephemeralOwner', stat.ephemeralOwner, 0n);
      await zk.create(`${path}/x`);
      expectEqual('children', (await zk.getChildren(path)).children, ['x']);
      const sequential = await zk.create(`${context.rootPath}/t-`, null, { mode: 'persistentSequentialWithTtl', ttlMs });
      expectEqual('the path of a sequential one', sequential.path, `${context.rootPath}/t-0000000001`);
      await zk.create(`${context.rootPath}/longest`, null, { mode: 'persistentWithTtl', ttlMs: 2 ** 40 - 1 });
    },
  },
  {
    name: 'create.ttl-switched-off',
    title: 'with extended types off, a create with a TTL fails with Unimplemented, and the connection stays open',
    behaviourIds: ['A9', 'C3-24'],
    docs: `${createModesDocs}, TTL Nodes`,
    async run(context) {
      if (context.facts.hasExtendedTypes) throw new NotApplicable('extended types are on');
      const zk = await context.openClient();
      const states: string[] = [];
      zk.on('state', ({ state }) => void states.push(state));
      await expectError('a TTL', zk.create(`${context.rootPath}/t`, null, { mode: 'persistentWithTtl', ttlMs: 1000 }), 'Unimplemented');
      expectEqual('the znode', await zk.exists(`${context.rootPath}/t`), null);
      expectEqual('changes of the session', states, []);
    },
  },
  {
    name: 'create.flags',
    title: 'invalid flags, and the flags of a TTL on a create without one, fail with BadArguments',
    behaviourIds: ['A10', 'A9'],
    docs: 'CreateMode.fromFlag; PrepRequestProcessor',
    needs: ['extendedTypes'],
    async run(context) {
      const cnxn = await context.openRawCnxnWithSession();
      const acl = [{ perms: Perms.all, id: { scheme: 'world', id: 'anyone' } }];
      for (const flags of [7, -1, 5, 6]) {
        const request = { path: `${context.rootPath}/a`, data: null, acl, flags };
        const reply = await cnxn.call(OpCode.create2, (writer) => operations.create2.request.write(writer, request));
        expectEqual(`the error of flags ${flags}`, reply?.err, -8);
      }
      for (const ttl of [0, 2 ** 40]) {
        const request = { path: `${context.rootPath}/a`, data: null, acl, flags: 5, ttl };
        const reply = await cnxn.call(OpCode.createTTL, (writer) => operations.createTTL.request.write(writer, request));
        expectEqual(`the error of a TTL of ${ttl}`, reply?.err, -8);
      }
      expectEqual('the znode', await (await context.openClient()).exists(`${context.rootPath}/a`), null);
    },
  },
  {
    name: 'create.refusals',
    title: 'create fails on an existing path, below a missing or an ephemeral parent, and without an ACL',
    behaviourIds: ['A17', 'B46'],
    docs: 'ZooKeeper.create, KeeperException',
    async run(context) {
      const zk = await context.openClient();
      await zk.create(`${context.rootPath}/a`, 'old');
      await expectError('an existing znode', zk.create(`${context.rootPath}/a`, 'new'), 'NodeExists');
      expectEqual('its data', textOf((await zk.getData(`${context.rootPath}/a`)).data), 'old');
      await expectError('the root', zk.create('/'), 'NodeExists');
      await expectError('no parent', zk.create(`${context.rootPath}/x/y`), 'NoNode');
      await expectError('no ACL', zk.create(`${context.rootPath}/b`, null, { acl: [] }), 'InvalidACL');
      expectEqual('the existing znodes', (await zk.getChildren(context.rootPath)).children, ['a']);
    },
  },
  {
    name: 'create.race',
    title: 'when many sessions create one znode, one succeeds and the others fail with NodeExists',
    behaviourIds: ['A18'],
    docs: "Programmer's Guide, Consistency Guarantees, Atomicity",
    async run(context) {
      const clients = await Promise.all(Array.from({ length: 5 }, () => context.openClient()));
      const codes = await Promise.all(
        clients.map(async (zk, at) => {
          try {
            await zk.create(`${context.rootPath}/a`, String(at));
            return 'Ok';
          } catch (error) {
            return KeeperError.is(error) ? error.code : String(error);
          }
        }),
      );
      expectEqual('their errors', codes.toSorted(), ['NodeExists', 'NodeExists', 'NodeExists', 'NodeExists', 'Ok']);
      const { data } = await clients[0]!.getData(`${context.rootPath}/a`);
      expectEqual('the session of the stored data', textOf(data), String(codes.indexOf('Ok')));
    },
  },
];
