/**
 * What our client must be able to do with any server of ZooKeeper's protocol: one list of checks,
 * run with ours and with Apache ZooKeeper. Where releases differ, the check depends on the version.
 */
import assert from 'node:assert/strict';

import {
  type Client,
  type ConnectOptions,
  creatorAcl,
  KeeperError,
  type NodeEvent,
  op,
  openAcl,
  type WatchedEvent,
} from '@tskeeper/client';

import type { DriverFacts } from '../drivers/driver.ts';
import type { Proxy } from './proxy.ts';

export interface CheckContext {
  readonly facts: DriverFacts;
  /** The check's own znode. */
  readonly root: string;
  readonly proxy: Proxy;
  /** Opens a session, which the runner of the check ends. */
  readonly open: (options?: ConnectOptions, chroot?: string) => Promise<Client>;
  /** The same through the proxy. */
  readonly openThroughProxy: (options?: ConnectOptions) => Promise<Client>;
}

export interface Check {
  readonly name: string;
  readonly run: (context: CheckContext) => Promise<void>;
}

const utf8 = new TextDecoder();
const text = (data: Uint8Array | null): string | null => (data === null ? null : utf8.decode(data));

async function rejectionOf(promise: Promise<unknown>): Promise<KeeperError> {
  try {
    await promise;
  } catch (error) {
    if (KeeperError.is(error)) return error;
    throw error;
  }
  throw new Error('it was not rejected');
}

async function expectRejected(code: string, promise: Promise<unknown>): Promise<KeeperError> {
  const error = await rejectionOf(promise);
  assert.equal(error.code, code, error.message);
  return error;
}

/** Collects events, and waits for a number of them. */
function collectEvents(): {
  readonly watch: (event: WatchedEvent) => void;
  readonly nodes: (count: number) => Promise<NodeEvent[]>;
  readonly states: string[];
} {
  const nodes: NodeEvent[] = [];
  const states: string[] = [];
  let wake = () => {};
  return {
    states,
    watch: (event) => {
      if (event.type === 'None') states.push(event.state);
      else nodes.push(event);
      wake();
    },
    async nodes(count) {
      while (nodes.length < count) {
        await new Promise<void>((resolve, reject) => {
          const timer = setTimeout(() => reject(new Error(`${nodes.length} of ${count} events arrived: ${eventsText(nodes)}`)), 10_000);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      return nodes.splice(0);
    },
  };
}

const eventsText = (events: readonly NodeEvent[]): string => events.map(({ type, path }) => `${type} ${path}`).join(', ');

/** The next state of the session that is one of these. */
function nextState(zk: Client, ...states: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`the state ${states.join(' or ')} was not reached`)), 30_000);
    const off = zk.on('state', ({ state }) => {
      if (!states.includes(state)) return;
      clearTimeout(timer);
      off();
      resolve(state);
    });
  });
}

const isBefore = ([major, minor, patch]: readonly [number, number, number], wanted: readonly [number, number, number]): boolean =>
  major !== wanted[0] ? major < wanted[0] : minor !== wanted[1] ? minor < wanted[1] : patch < wanted[2];

export const checks: readonly Check[] = [
  {
    name: 'create in every mode',
    async run({ open, root }) {
      const zk = await open();
      const { path, stat } = await zk.create(`${root}/a`, 'one');
      assert.equal(path, `${root}/a`);
      assert.equal(stat.czxid, stat.mzxid);
      assert.equal(stat.dataLength, 3);
      assert.equal((await zk.create(`${root}/e`, null, { mode: 'ephemeral' })).stat.ephemeralOwner, zk.sessionId);
      assert.equal((await zk.create(`${root}/a/s-`, '', { mode: 'persistentSequential' })).path, `${root}/a/s-0000000000`);
      assert.equal((await zk.create(`${root}/a/`, '', { mode: 'ephemeralSequential' })).path, `${root}/a/0000000001`);
      assert.equal((await zk.create(`${root}/c`, null, { mode: 'container' })).stat.ephemeralOwner, 0n);
      await zk.create(`${root}/t`, null, { mode: 'persistentWithTtl', ttlMs: 600_000 });
      assert.match((await zk.create(`${root}/t-`, null, { mode: 'persistentSequentialWithTtl', ttlMs: 600_000 })).path, /t-\d{10}$/);
    },
  },
  {
    name: 'data of every kind, up to the largest possible',
    async run({ open, root }) {
      const zk = await open();
      for (const [name, data, expected] of [
        ['null', null, null],
        ['empty', '', ''],
        ['text', 'grüße, 世界', 'grüße, 世界'],
      ] as const) {
        await zk.create(`${root}/${name}`, data);
        assert.equal(text((await zk.getData(`${root}/${name}`)).data), expected);
      }
      const bytes = new Uint8Array(1_000_000).map((_, index) => index * 7);
      await zk.create(`${root}/large`, bytes);
      assert.deepEqual((await zk.getData(`${root}/large`)).data, bytes);
      await expectRejected('BadArguments', zk.setData(`${root}/large`, new Uint8Array(1_048_576)));
      await zk.setData(`${root}/large`, 'small');
    },
  },
  {
    name: 'every error of a request',
    async run({ open, root }) {
      const zk = await open();
      await zk.create(`${root}/a`);
      await zk.create(`${root}/a/b`);
      await zk.create(`${root}/e`, null, { mode: 'ephemeral' });
      await expectRejected('NodeExists', zk.create(`${root}/a`));
      await expectRejected('NoNode', zk.create(`${root}/x/y`));
      await expectRejected('NoNode', zk.getData(`${root}/x`));
      await expectRejected('NoNode', zk.getChildren(`${root}/x`));
      await expectRejected('NoNode', zk.getACL(`${root}/x`));
      await expectRejected('NoNode', zk.setData(`${root}/x`, ''));
      await expectRejected('BadVersion', zk.setData(`${root}/a`, '', { version: 7 }));
      await expectRejected('BadVersion', zk.delete(`${root}/a/b`, { version: 7 }));
      await expectRejected('BadVersion', zk.setACL(`${root}/a`, openAcl, { version: 7 }));
      await expectRejected('NotEmpty', zk.delete(`${root}/a`));
      await expectRejected('NoChildrenForEphemerals', zk.create(`${root}/e/x`));
      await expectRejected('InvalidACL', zk.create(`${root}/i`, null, { acl: [] }));
      await expectRejected('BadArguments', zk.delete('/zookeeper'));
      const error = await expectRejected('NoNode', zk.delete(`${root}/x`));
      assert.deepEqual(
        [error.errno, error.op, error.path, error.outcome, error.retryable],
        [-101, 'delete', `${root}/x`, 'refused', false],
      );
    },
  },
  {
    name: 'exists, children and their number, ephemerals, sync',
    async run({ open, root }) {
      const zk = await open();
      assert.equal(await zk.exists(`${root}/a`), null);
      await zk.create(`${root}/a`);
      for (const name of ['x', 'y', 'z']) await zk.create(`${root}/a/${name}`, null, { mode: 'ephemeral' });
      const { children, stat } = await zk.getChildren(`${root}/a`);
      assert.deepEqual([...children].sort(), ['x', 'y', 'z']);
      assert.equal(stat.numChildren, 3);
      assert.equal((await zk.exists(`${root}/a`))?.cversion, 3);
      assert.equal(await zk.getAllChildrenNumber(root), 4);
      assert.deepEqual(
        [...(await zk.getEphemerals(`${root}/a`))].sort(),
        ['x', 'y', 'z'].map((name) => `${root}/a/${name}`),
      );
      assert.deepEqual(await zk.getEphemerals(`${root}/b`), []);
      await zk.sync(root);
    },
  },
  {
    name: 'identities and ACLs, also after a lost connection',
    async run({ open, openThroughProxy, proxy, root, facts }) {
      const zk = await openThroughProxy({ auth: [{ scheme: 'digest', auth: 'user:password' }] });
      await zk.create(`${root}/mine`, 'x', { acl: creatorAcl });
      const other = await open();
      await expectRejected('NoAuth', other.getData(`${root}/mine`));
      const back = nextState(zk, 'SyncConnected');
      proxy.cut();
      await back;
      assert.equal(text((await zk.getData(`${root}/mine`)).data), 'x');
      const { acl } = await zk.getACL(`${root}/mine`);
      assert.match(acl[0]!.id.id ?? '', /^user:/);
      assert.ok((await zk.whoAmI()).some(({ authScheme, user }) => authScheme === 'digest' && user === 'user'));
      await other.addAuth('digest', facts.superAuth);
      assert.equal((await other.setACL(`${root}/mine`, openAcl, { version: 0 })).aversion, 1);
      await expectRejected('AuthFailed', other.addAuth('nonsense', 'x'));
      assert.equal(other.state, 'authFailed');
    },
  },
  {
    name: 'multi',
    async run({ open, root, facts }) {
      const zk = await open();
      const [created, changed, checked, deleted] = await zk.multi([
        op.create(`${root}/m`, 'x'),
        op.setData(`${root}/m`, 'y', { version: 0 }),
        op.check(`${root}/m`, { version: 1 }),
        op.delete(`${root}/m`),
      ]);
      assert.equal(created.path, `${root}/m`);
      assert.equal(created.stat === undefined, isBefore(facts.version, [3, 8, 2]));
      assert.deepEqual([changed.stat.version, checked.op, deleted.op], [1, 'check', 'delete']);
      const modes = await zk.multi([
        op.create(`${root}/s-`, null, { mode: 'persistentSequential' }),
        op.create(`${root}/c`, null, { mode: 'container' }),
        op.create(`${root}/t`, null, { mode: 'persistentWithTtl', ttlMs: 600_000 }),
        op.create(`${root}/e`, null, { mode: 'ephemeral' }),
      ]);
      assert.deepEqual(
        modes.map(({ path }) => path),
        [`${root}/s-0000000001`, `${root}/c`, `${root}/t`, `${root}/e`],
      );
      const error = await expectRejected('NoNode', zk.multi([op.create(`${root}/n`), op.delete(`${root}/missing`), op.check(root)]));
      assert.equal(error.failedIndex, 1);
      assert.deepEqual(
        error.results?.map(({ code }) => code),
        ['Ok', 'NoNode', 'RuntimeInconsistency'],
      );
      assert.equal(await zk.exists(`${root}/n`), null);
    },
  },
  {
    name: 'multiRead',
    async run({ open, root }) {
      const zk = await open();
      await zk.create(`${root}/a`, 'x');
      const [data, children, missing] = await zk.multiRead([op.getData(`${root}/a`), op.getChildren(root), op.getData(`${root}/b`)]);
      assert.equal(data.op === 'getData' && text(data.data), 'x');
      assert.deepEqual(children.op === 'getChildren' && children.children, ['a']);
      assert.equal(missing.op === 'error' && missing.error.code, 'NoNode');
    },
  },
  {
    name: 'one-time watches',
    async run({ open, root, facts }) {
      const zk = await open();
      const other = await open();
      const { watch, nodes } = collectEvents();
      await zk.exists(`${root}/a`, { watch });
      await zk.getChildren(root, { watch });
      const { stat } = await other.create(`${root}/a`);
      const born = await nodes(2);
      assert.equal(eventsText(born), `NodeCreated ${root}/a, NodeChildrenChanged ${root}`);
      assert.equal(born[0]!.zxid, isBefore(facts.version, [3, 9, 0]) ? undefined : stat.czxid);
      await zk.getData(`${root}/a`, { watch });
      await zk.getChildren(`${root}/a`, { watch });
      await other.setData(`${root}/a`, '1');
      await other.setData(`${root}/a`, '2');
      await other.delete(`${root}/a`);
      assert.equal(eventsText(await nodes(2)), `NodeDataChanged ${root}/a, NodeDeleted ${root}/a`);
    },
  },
  {
    name: 'persistent watches, and their removal',
    async run({ open, root, facts }) {
      const zk = await open();
      const other = await open();
      const persistent = collectEvents();
      const recursive = collectEvents();
      await other.create(`${root}/a`);
      await zk.addWatch(`${root}/a`, { watch: persistent.watch });
      await zk.addWatch(root, { mode: 'persistentRecursive', watch: recursive.watch });
      await other.setData(`${root}/a`, '1');
      await other.create(`${root}/a/b`);
      await other.setData(`${root}/a/b`, '1');
      assert.equal(eventsText(await persistent.nodes(2)), `NodeDataChanged ${root}/a, NodeChildrenChanged ${root}/a`);
      assert.equal(eventsText(await recursive.nodes(3)), `NodeDataChanged ${root}/a, NodeCreated ${root}/a/b, NodeDataChanged ${root}/a/b`);
      // Servers before 3.9 have no type for them.
      const type = isBefore(facts.version, [3, 9, 0]) ? 'any' : 'persistentRecursive';
      await zk.removeWatches(root, { type, watch: recursive.watch });
      assert.equal(eventsText(await recursive.nodes(1)), `PersistentWatchRemoved ${root}`);
      await zk.removeWatches(`${root}/a`);
      assert.equal(eventsText(await persistent.nodes(1)), `PersistentWatchRemoved ${root}/a`);
      await expectRejected('NoWatcher', zk.removeWatches(`${root}/a`));
      await other.setData(`${root}/a`, '2');
      await zk.sync(root);
      assert.equal(eventsText(await persistent.nodes(0)), '');
    },
  },
  {
    name: 'a lost connection: the same session, and watches that fire for missed changes',
    async run({ open, openThroughProxy, proxy, root }) {
      const zk = await openThroughProxy();
      const other = await open();
      await other.create(`${root}/data`, '1');
      await other.create(`${root}/gone`);
      await zk.create(`${root}/mine`, null, { mode: 'ephemeral' });
      const { watch, nodes, states } = collectEvents();
      await zk.getData(`${root}/data`, { watch });
      await zk.exists(`${root}/gone`, { watch });
      await zk.exists(`${root}/born`, { watch });
      await zk.getChildren(root, { watch });
      const every = collectEvents();
      await zk.addWatch(root, { mode: 'persistentRecursive', watch: every.watch });
      const { sessionId } = zk;
      const lost = nextState(zk, 'Disconnected');
      proxy.cutAndHold();
      await lost;
      await other.setData(`${root}/data`, '2');
      await other.delete(`${root}/gone`);
      await other.create(`${root}/born`);
      proxy.release();
      assert.equal((await zk.exists(`${root}/mine`))?.ephemeralOwner, sessionId);
      assert.equal(zk.sessionId, sessionId);
      const missed = await nodes(4);
      assert.deepEqual(missed.map(({ type, path }) => `${type} ${path.slice(root.length)}`).sort(), [
        'NodeChildrenChanged ',
        'NodeCreated /born',
        'NodeDataChanged /data',
        'NodeDeleted /gone',
      ]);
      assert.deepEqual(states, ['Disconnected', 'SyncConnected']);
      // It may have received events when the others received what they had missed.
      await every.nodes(0);
      await other.setData(`${root}/data`, '3');
      assert.equal(eventsText(await every.nodes(1)), `NodeDataChanged ${root}/data`);
      assert.equal(eventsText(await nodes(0)), '');
    },
  },
  {
    name: 'ten thousand watches, restored in several requests',
    async run({ open, openThroughProxy, proxy, root }) {
      const zk = await openThroughProxy();
      const other = await open();
      const paths = Array.from({ length: 10_000 }, (_, index) => `${root}/${'x'.repeat(100)}${index}`);
      const { watch, nodes } = collectEvents();
      await Promise.all(paths.map((path) => zk.exists(path, { watch })));
      const back = nextState(zk, 'SyncConnected');
      proxy.cut();
      await back;
      await zk.sync(root);
      await other.multi([op.create(paths[0]!), op.create(paths[5000]!), op.create(paths[9999]!)]);
      assert.deepEqual(
        (await nodes(3)).map(({ path }) => path),
        [paths[0], paths[5000], paths[9999]],
      );
    },
  },
  {
    name: 'a partition: noticed, survived within the timeout, and reported as expiry after it',
    async run({ open, openThroughProxy, proxy, root, facts }) {
      // The long one notices after two thirds of its timeout and has the last third to reconnect;
      // by then the brief one has expired.
      const [long, brief] = [facts.maxSessionTimeout, facts.minSessionTimeout * 4];
      const [survivor, victim] = await Promise.all([long, brief].map((sessionTimeoutMs) => openThroughProxy({ sessionTimeoutMs })));
      assert.deepEqual([survivor!.sessionTimeoutMs, victim!.sessionTimeoutMs], [long, brief]);
      const [lives, dies] = [`${root}/lives`, `${root}/dies`];
      await survivor!.create(lives, null, { mode: 'ephemeral' });
      await victim!.create(dies, null, { mode: 'ephemeral' });
      const other = await open();
      const { watch, nodes } = collectEvents();
      assert.notEqual(await other.exists(dies, { watch }), null);
      const [statesOfSurvivor, statesOfVictim]: [string[], string[]] = [[], []];
      survivor!.on('state', ({ state }) => void statesOfSurvivor.push(state));
      victim!.on('state', ({ state }) => void statesOfVictim.push(state));
      const expired = nextState(victim!, 'Expired');
      proxy.hold();
      const call = await rejectionOf(survivor!.exists(root));
      assert.deepEqual([call.code, call.outcome], ['ConnectionLoss', 'unknown']);
      assert.equal(eventsText(await nodes(1)), `NodeDeleted ${dies}`);
      proxy.release();
      assert.equal((await survivor!.exists(lives))?.ephemeralOwner, survivor!.sessionId);
      assert.deepEqual(statesOfSurvivor, ['Disconnected', 'SyncConnected']);
      await expired;
      assert.deepEqual(statesOfVictim, ['Disconnected', 'Expired']);
      assert.equal((await rejectionOf(victim!.exists(root))).code, 'SessionExpired');
    },
  },
  {
    name: 'a session resumed by its id and password, and a wrong password rejected',
    async run({ open, openThroughProxy, proxy, root }) {
      const zk = await openThroughProxy();
      await zk.create(`${root}/mine`, null, { mode: 'ephemeral' });
      const session = { id: zk.sessionId, password: zk.sessionPassword };
      // Otherwise it would resume its session at an arbitrary moment.
      proxy.hold();
      const heir = await open({ session });
      assert.equal((await heir.exists(`${root}/mine`))?.ephemeralOwner, heir.sessionId);
      await heir.close();
      await expectRejected('SessionExpired', open({ session }));
      await expectRejected('SessionExpired', open({ session: { ...session, password: new Uint8Array(16) } }));
      const expired = nextState(zk, 'Expired');
      proxy.release();
      await expired;
    },
  },
  {
    name: 'the granted session timeouts',
    async run({ open, facts }) {
      assert.equal((await open({ sessionTimeoutMs: 1 })).sessionTimeoutMs, facts.minSessionTimeout);
      assert.equal((await open({ sessionTimeoutMs: 3_600_000 })).sessionTimeoutMs, facts.maxSessionTimeout);
    },
  },
  {
    name: 'pings keep an idle session alive',
    async run({ open, root, facts }) {
      // A ping is due after one sixth of it, and missed after four: a server may pause for a while
      // without a failure.
      const timeoutMs = 6 * facts.minSessionTimeout;
      const zk = await open({ sessionTimeoutMs: timeoutMs });
      await zk.create(`${root}/mine`, null, { mode: 'ephemeral' });
      const states: string[] = [];
      zk.on('state', ({ state }) => void states.push(state));
      await new Promise((resolve) => void setTimeout(resolve, timeoutMs * 1.5));
      assert.deepEqual(states, []);
      assert.notEqual(await zk.exists(`${root}/mine`), null);
    },
  },
  {
    name: 'close answers pending requests, and deletes the ephemeral znodes',
    async run({ open, root }) {
      const zk = await open();
      await zk.create(`${root}/mine`, null, { mode: 'ephemeral' });
      const asked = zk.exists(`${root}/mine`);
      await zk.close();
      assert.notEqual(await asked, null);
      const other = await open();
      assert.equal(await other.exists(`${root}/mine`), null);
    },
  },
  {
    name: 'a chroot, in all requests and results',
    async run({ open, root }) {
      const outside = await open();
      await outside.create(`${root}/app`);
      const zk = await open({}, `${root}/app`);
      const { watch, nodes } = collectEvents();
      await zk.exists('/x', { watch });
      assert.equal((await zk.create('/x', '1', { mode: 'ephemeral' })).path, '/x');
      assert.equal(eventsText(await nodes(1)), 'NodeCreated /x');
      assert.deepEqual(await zk.getEphemerals(), ['/x']);
      assert.equal(text((await outside.getData(`${root}/app/x`)).data), '1');
      assert.equal((await expectRejected('NoNode', zk.getData('/y'))).path, '/y');
      const [{ path }] = await zk.multi([op.create('/m')]);
      assert.equal(path, '/m');
      assert.deepEqual([...(await zk.getChildren('/')).children].sort(), ['m', 'x']);
    },
  },
  {
    name: 'five thousand pending calls, answered in order',
    async run({ open, root }) {
      const zk = await open();
      await zk.create(`${root}/a`, '0');
      const order: number[] = [];
      const calls = Array.from({ length: 5000 }, async (_, index) => {
        const { version } = index % 2 === 0 ? await zk.setData(`${root}/a`, String(index)) : (await zk.getData(`${root}/a`)).stat;
        order.push(index);
        return version;
      });
      const versions = await Promise.all(calls);
      assert.deepEqual(
        order,
        Array.from({ length: 5000 }, (_, index) => index),
      );
      assert.deepEqual(
        versions,
        Array.from({ length: 5000 }, (_, index) => Math.floor(index / 2) + 1),
      );
    },
  },
  {
    name: 'quotas and operations of ensembles only',
    async run({ open, root, facts }) {
      const zk = await open();
      await zk.addAuth('digest', facts.superAuth);
      await zk.create(`${root}/q`);
      for (let at = root.indexOf('/', 1); at !== -1; at = root.indexOf('/', at + 1))
        await zk.create(`/zookeeper/quota${root.slice(0, at)}`).catch(() => {});
      await zk.create(`/zookeeper/quota${root}`).catch(() => {});
      await zk.create(`/zookeeper/quota${root}/q`);
      await zk.create(`/zookeeper/quota${root}/q/zookeeper_limits`, 'count=-1,bytes=-1=;byteHardLimit=10;countHardLimit=-1');
      await zk.create(`/zookeeper/quota${root}/q/zookeeper_stats`, 'count=1,bytes=0');
      await expectRejected('QuotaExceeded', zk.setData(`${root}/q`, 'more than ten bytes'));
      assert.equal((await zk.getConfig()).stat.aversion, -1);
      await expectRejected('ReconfigDisabled', zk.reconfig({ leavingServers: [7] }));
    },
  },
];
