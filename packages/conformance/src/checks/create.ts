/** create, in each of its modes. */
import { KeeperError } from '@tskeeper/client';
import { OpCode, operations, Perms, readCreateReply } from '@tskeeper/protocol';
import { NotApplicable, type RunnableCheck } from '../check.ts';
import { equal, holds, refused, textOf } from '../expect.ts';

const modes = "Programmer's Guide, ZooKeeper Data Model, Nodes";

export const createChecks: readonly RunnableCheck[] = [
  {
    name: 'create.persistent',
    title: 'create returns the path and the Stat of the new znode',
    rows: ['B46', 'A11', 'C3-1', 'C3-29'],
    docs: `${modes}; ZooKeeper.create`,
    async run(ground) {
      const zk = await ground.open();
      const { path, stat } = await zk.create(`${ground.root}/a`, 'one');
      equal('the path', path, `${ground.root}/a`);
      const { czxid, mzxid, pzxid, ctime, mtime, ...rest } = stat;
      equal('mzxid and pzxid, equal to czxid', [mzxid, pzxid], [czxid, czxid]);
      holds('ctime', ctime > 0 && ctime === mtime, 'a time, equal to mtime', { ctime, mtime });
      equal('the rest of the Stat', rest, { version: 0, cversion: 0, aversion: 0, ephemeralOwner: 0n, dataLength: 3, numChildren: 0 });
      equal('the Stat from getData', (await zk.getData(path)).stat, stat);
    },
  },
  {
    name: 'create.outlives-its-session',
    title: 'a persistent znode outlives the session that created it',
    rows: ['B46'],
    docs: `${modes}; CreateMode.PERSISTENT`,
    async run(ground) {
      const maker = await ground.open();
      await maker.create(`${ground.root}/a`, 'x');
      await maker.close();
      equal('its data', textOf((await (await ground.open()).getData(`${ground.root}/a`)).data), 'x');
    },
  },
  {
    name: 'create.without-stat',
    title: 'the first version of create returns the path alone',
    rows: ['A10'],
    docs: 'zookeeper.jute, CreateResponse',
    async run(ground) {
      const cnxn = await ground.openRawSession();
      const path = `${ground.root}/a`;
      const acl = [{ perms: Perms.all, id: { scheme: 'world', id: 'anyone' } }];
      const reply = await cnxn.call(OpCode.create, (writer) =>
        operations.create.request.write(writer, { path, data: null, acl, flags: 0 }),
      );
      equal('the error', reply?.err, 0);
      equal('the path', readCreateReply(reply!.body).path, path);
      equal('bytes after the path', reply!.body.remaining, 0);
    },
  },
  {
    name: 'create.ephemeral',
    title: 'an ephemeral znode belongs to its session and has no children',
    rows: ['A7', 'B46', 'C3-15'],
    docs: `${modes}, Ephemeral Nodes`,
    async run(ground) {
      const zk = await ground.open();
      const { path, stat } = await zk.create(`${ground.root}/e`, null, { mode: 'ephemeral' });
      equal('ephemeralOwner', stat.ephemeralOwner, zk.sessionId);
      for (const mode of ['persistent', 'ephemeral', 'persistentSequential', 'container'] as const) {
        await refused(`a ${mode} child`, zk.create(`${path}/x`, null, { mode }), 'NoChildrenForEphemerals');
      }
      equal('numChildren', (await zk.exists(path))?.numChildren, 0);
    },
  },
  {
    name: 'create.container',
    title:
      'a container is not ephemeral and may have children; a create below a deleted container fails with NoNode until it is created again',
    rows: ['A8', 'B46', 'C3-22'],
    docs: `${modes}, Container Nodes`,
    async run(ground) {
      const zk = await ground.open();
      const { path, stat } = await zk.create(`${ground.root}/c`, null, { mode: 'container' });
      equal('ephemeralOwner', stat.ephemeralOwner, 0n);
      await zk.create(`${path}/x`, null, { mode: 'ephemeral' });
      equal('ephemeralOwner, read', (await zk.exists(path))?.ephemeralOwner, 0n);
      equal('children', (await zk.getChildren(path)).children, ['x']);
      // A server deletes containers at times of its own choice; for clients that create below it,
      // this delete has the same effect.
      await zk.delete(`${path}/x`);
      await zk.delete(path);
      const child = () => zk.create(`${path}/y`, null, { mode: 'ephemeral' });
      await refused('a create below a deleted container', child(), 'NoNode');
      await zk.create(path, null, { mode: 'container' });
      equal('the path after the container was created again', (await child()).path, `${path}/y`);
    },
  },
  {
    name: 'create.ttl',
    title: 'a znode with a TTL is not ephemeral, may have children, and exists until the TTL has passed',
    rows: ['A9', 'B46', 'C3-23'],
    docs: `${modes}, TTL Nodes`,
    needs: ['extendedTypes'],
    async run(ground) {
      const zk = await ground.open();
      const ttlMs = 3_600_000;
      const { path, stat } = await zk.create(`${ground.root}/t`, 'x', { mode: 'persistentWithTtl', ttlMs });
      equal('ephemeralOwner', stat.ephemeralOwner, 0n);
      await zk.create(`${path}/x`);
      equal('children', (await zk.getChildren(path)).children, ['x']);
      const sequential = await zk.create(`${ground.root}/t-`, null, { mode: 'persistentSequentialWithTtl', ttlMs });
      equal('the path of a sequential one', sequential.path, `${ground.root}/t-0000000001`);
      await zk.create(`${ground.root}/longest`, null, { mode: 'persistentWithTtl', ttlMs: 2 ** 40 - 1 });
    },
  },
  {
    name: 'create.ttl-switched-off',
    title: 'with extended types off, a create with a TTL fails with Unimplemented, and the connection stays open',
    rows: ['A9', 'C3-24'],
    docs: `${modes}, TTL Nodes`,
    async run(ground) {
      if (ground.facts.hasExtendedTypes) throw new NotApplicable('extended types are on');
      const zk = await ground.open();
      const states: string[] = [];
      zk.on('state', ({ state }) => void states.push(state));
      await refused('a TTL', zk.create(`${ground.root}/t`, null, { mode: 'persistentWithTtl', ttlMs: 1000 }), 'Unimplemented');
      equal('the znode', await zk.exists(`${ground.root}/t`), null);
      equal('changes of the session', states, []);
    },
  },
  {
    name: 'create.flags',
    title: 'invalid flags, and the flags of a TTL on a create without one, fail with BadArguments',
    rows: ['A10', 'A9'],
    docs: 'CreateMode.fromFlag; PrepRequestProcessor',
    needs: ['extendedTypes'],
    async run(ground) {
      const cnxn = await ground.openRawSession();
      const acl = [{ perms: Perms.all, id: { scheme: 'world', id: 'anyone' } }];
      for (const flags of [7, -1, 5, 6]) {
        const request = { path: `${ground.root}/a`, data: null, acl, flags };
        const reply = await cnxn.call(OpCode.create2, (writer) => operations.create2.request.write(writer, request));
        equal(`the error of flags ${flags}`, reply?.err, -8);
      }
      for (const ttl of [0, 2 ** 40]) {
        const request = { path: `${ground.root}/a`, data: null, acl, flags: 5, ttl };
        const reply = await cnxn.call(OpCode.createTTL, (writer) => operations.createTTL.request.write(writer, request));
        equal(`the error of a TTL of ${ttl}`, reply?.err, -8);
      }
      equal('the znode', await (await ground.open()).exists(`${ground.root}/a`), null);
    },
  },
  {
    name: 'create.refusals',
    title: 'create fails on an existing path, below a missing or an ephemeral parent, and without an ACL',
    rows: ['A17', 'B46'],
    docs: 'ZooKeeper.create, KeeperException',
    async run(ground) {
      const zk = await ground.open();
      await zk.create(`${ground.root}/a`, 'old');
      await refused('an existing znode', zk.create(`${ground.root}/a`, 'new'), 'NodeExists');
      equal('its data', textOf((await zk.getData(`${ground.root}/a`)).data), 'old');
      await refused('the root', zk.create('/'), 'NodeExists');
      await refused('no parent', zk.create(`${ground.root}/x/y`), 'NoNode');
      await refused('no ACL', zk.create(`${ground.root}/b`, null, { acl: [] }), 'InvalidACL');
      equal('the existing znodes', (await zk.getChildren(ground.root)).children, ['a']);
    },
  },
  {
    name: 'create.race',
    title: 'when many sessions create one znode, one succeeds and the others fail with NodeExists',
    rows: ['A18'],
    docs: "Programmer's Guide, Consistency Guarantees, Atomicity",
    async run(ground) {
      const clients = await Promise.all(Array.from({ length: 5 }, () => ground.open()));
      const codes = await Promise.all(
        clients.map(async (zk, at) => {
          try {
            await zk.create(`${ground.root}/a`, String(at));
            return 'Ok';
          } catch (error) {
            return KeeperError.is(error) ? error.code : String(error);
          }
        }),
      );
      equal('their errors', codes.toSorted(), ['NodeExists', 'NodeExists', 'NodeExists', 'NodeExists', 'Ok']);
      const { data } = await clients[0]!.getData(`${ground.root}/a`);
      equal('the session of the stored data', textOf(data), String(codes.indexOf('Ok')));
    },
  },
];
