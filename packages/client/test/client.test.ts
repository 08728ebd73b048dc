/** The client against our server, in virtual time. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { connect, KeeperError, op, type WatchedEvent } from '../src/index.ts';
import { ClientWorld } from './support/client-world.ts';

let world: ClientWorld;

beforeEach(async () => {
  world = await ClientWorld.start();
});

afterEach(async () => {
  await world.close();
});

function heard(): { readonly events: WatchedEvent[]; readonly watch: (event: WatchedEvent) => void } {
  const events: WatchedEvent[] = [];
  return { events, watch: (event) => void events.push(event) };
}

/** The reason of a rejected promise. */
async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  const settled = await world.until(Promise.allSettled([promise]));
  expect(settled[0].status).toBe('rejected');
  return (settled[0] as PromiseRejectedResult).reason;
}

const text = (data: Uint8Array | null) => (data === null ? null : new TextDecoder().decode(data));

describe('operations', () => {
  it('B46: create returns the path and the Stat, for every mode', async () => {
    const zk = await world.connect();
    const { path, stat } = await world.until(zk.create('/a', 'one'));
    expect(path).toBe('/a');
    expect(stat).toMatchObject({ version: 0, dataLength: 3, ephemeralOwner: 0n, numChildren: 0 });
    expect(stat.czxid).toBe(stat.mzxid);
    expect(typeof stat.czxid).toBe('bigint');
    const ephemeral = await world.until(zk.create('/e', null, { mode: 'ephemeral' }));
    expect(ephemeral.stat.ephemeralOwner).toBe(zk.sessionId);
    expect((await world.until(zk.create('/a/s-', '', { mode: 'persistentSequential' }))).path).toBe('/a/s-0000000000');
    expect((await world.until(zk.create('/a/', '', { mode: 'ephemeralSequential' }))).path).toBe('/a/0000000001');
    await world.until(zk.create('/c', null, { mode: 'container' }));
    await world.until(zk.create('/t', null, { mode: 'persistentWithTtl', ttlMs: 60_000 }));
    expect((await world.until(zk.create('/t-', null, { mode: 'persistentSequentialWithTtl', ttlMs: 1 }))).path).toMatch(/^\/t-\d{10}$/);
    expect(await failureOf(zk.create('/a'))).toMatchObject({ code: 'NodeExists', op: 'create', path: '/a' });
  });

  it('data are written as bytes, text or null, and read as a copy of the bytes or null', async () => {
    const zk = await world.connect();
    await world.until(zk.create('/null'));
    await world.until(zk.create('/empty', ''));
    await world.until(zk.create('/text', 'ä'));
    await world.until(zk.create('/bytes', new Uint8Array([0, 255])));
    expect((await world.until(zk.getData('/null'))).data).toBe(null);
    expect((await world.until(zk.getData('/empty'))).data).toEqual(new Uint8Array());
    expect(text((await world.until(zk.getData('/text'))).data)).toBe('ä');
    const { data } = await world.until(zk.getData('/bytes'));
    expect(data).toEqual(new Uint8Array([0, 255]));
    expect(data!.buffer.byteLength).toBe(2);
  });

  it('the largest possible znode can be read, although the answer is longer than the request', async () => {
    const zk = await world.connect();
    await world.until(zk.create('/a'));
    // Header, path and its length, length of the data, version.
    const data = new Uint8Array(1_048_575 - 8 - 6 - 4 - 4).fill(7);
    await world.until(zk.setData('/a', data));
    // Compared as a whole, as a test runner takes seconds for a million elements.
    expect(Buffer.compare((await world.until(zk.getData('/a'))).data!, data)).toBe(0);
    expect(await failureOf(zk.setData('/a', new Uint8Array(data.length + 1)))).toMatchObject({ code: 'BadArguments' });
  });

  it('setData and delete with a stale version fail with BadVersion', async () => {
    const zk = await world.connect();
    await world.until(zk.create('/a', '0'));
    expect((await world.until(zk.setData('/a', '1'))).version).toBe(1);
    expect(await failureOf(zk.setData('/a', '2', { version: 0 }))).toMatchObject({ code: 'BadVersion', errno: -103, outcome: 'refused' });
    expect(await failureOf(zk.delete('/a', { version: 0 }))).toMatchObject({ code: 'BadVersion', op: 'delete' });
    await world.until(zk.delete('/a', { version: 1 }));
    expect(await world.until(zk.exists('/a'))).toBe(null);
  });

  it('B48, B49: return children, descendants, ephemerals, ACLs, identities and the configuration; sync resolves', async () => {
    const zk = await world.connect();
    await world.until(zk.create('/a'));
    await world.until(zk.create('/a/b', null, { mode: 'ephemeral' }));
    const { children, stat } = await world.until(zk.getChildren('/a'));
    expect(children).toEqual(['b']);
    expect(stat.numChildren).toBe(1);
    expect(await world.until(zk.getAllChildrenNumber('/a'))).toBe(1);
    expect(await world.until(zk.getEphemerals())).toEqual(['/a/b']);
    expect(await world.until(zk.getEphemerals('/x'))).toEqual([]);
    const { acl } = await world.until(zk.getACL('/a'));
    expect(acl).toEqual([{ perms: 31, id: { scheme: 'world', id: 'anyone' } }]);
    expect((await world.until(zk.setACL('/a', [{ perms: 1, id: { scheme: 'world', id: 'anyone' } }], { version: 0 }))).aversion).toBe(1);
    expect(await failureOf(zk.create('/a/c'))).toMatchObject({ code: 'NoAuth' });
    expect(await world.until(zk.whoAmI())).toEqual([{ authScheme: 'ip', user: '10.1.0.1' }]);
    expect(await world.until(zk.sync('/a'))).toBe(undefined);
    expect((await world.until(zk.getConfig())).stat).toMatchObject({ version: 0, aversion: -1 });
    expect(await failureOf(zk.reconfig({ leavingServers: [1, 2] }))).toMatchObject({ code: 'ReconfigDisabled' });
  });

  it('B47: multi applies all operations or none, and reports which one failed', async () => {
    const zk = await world.connect();
    const [created, changed, checked, deleted] = await world.until(
      zk.multi([op.create('/m', 'x'), op.setData('/m', 'y', { version: 0 }), op.check('/m', { version: 1 }), op.delete('/m')]),
    );
    expect(created).toMatchObject({ op: 'create', path: '/m', stat: { version: 0 } });
    expect(changed.stat.version).toBe(1);
    expect([checked.op, deleted.op]).toEqual(['check', 'delete']);
    const error = await failureOf(zk.multi([op.create('/n'), op.delete('/missing'), op.create('/o')]));
    expect(error).toMatchObject({
      code: 'NoNode',
      op: 'multi',
      failedIndex: 1,
      outcome: 'refused',
      results: [
        { code: 'Ok', errno: 0 },
        { code: 'NoNode', errno: -101 },
        { code: 'RuntimeInconsistency', errno: -2 },
      ],
    });
    expect((error as Error).message).toBe('KeeperErrorCode = NoNode (ops[1], delete /missing; nothing was changed)');
    expect(await world.until(zk.exists('/n'))).toBe(null);
    expect(await world.until(zk.multi([]))).toEqual([]);
    const modes = await world.until(
      zk.multi([
        op.create('/s-', null, { mode: 'persistentSequential' }),
        op.create('/k', null, { mode: 'container' }),
        op.create('/t', null, { mode: 'persistentWithTtl', ttlMs: 5000 }),
      ]),
    );
    expect(modes.map(({ path }) => path)).toEqual(['/s-0000000001', '/k', '/t']);
  });

  it('B47: multiRead reads each znode independently', async () => {
    const zk = await world.connect();
    await world.until(zk.create('/a', 'x'));
    await world.until(zk.create('/a/b'));
    const [data, children, missing] = await world.until(zk.multiRead([op.getData('/a'), op.getChildren('/a'), op.getData('/missing')]));
    expect(data.op === 'getData' && text(data.data)).toBe('x');
    expect(children).toEqual({ op: 'getChildren', children: ['b'] });
    expect(missing.op).toBe('error');
    expect(missing.op === 'error' && missing.error).toMatchObject({ code: 'NoNode', path: '/missing', op: 'getData' });
  });

  it('B43, B44, B45: watches of each kind report the zxid, are set again after a reconnect, and can be removed', async () => {
    const zk = await world.connect();
    const other = await world.connect();
    const received: string[] = [];
    const listener = (name: string) => (event: WatchedEvent) => {
      if (event.type !== 'None') received.push(`${name} ${event.type} ${event.path} ${event.zxid ?? '-'}`);
    };
    await world.until(zk.exists('/w', { watch: listener('once') }));
    await world.until(zk.addWatch('/w', { watch: listener('stays') }));
    const recursive = listener('below');
    await world.until(zk.addWatch('/w', { mode: 'persistentRecursive', watch: recursive }));
    const { czxid } = (await world.until(other.create('/w'))).stat;
    await world.settle();
    expect(received.splice(0).toSorted()).toEqual(['below', 'once', 'stays'].map((name) => `${name} NodeCreated /w ${czxid}`));
    world.break([...world.wire.cnxns][0]);
    await world.untilSo(() => zk.state === 'suspended');
    await world.untilSo(() => zk.state === 'connected');
    const child = (await world.until(other.create('/w/c'))).stat.czxid;
    await world.settle();
    expect(received.splice(0).toSorted()).toEqual([`below NodeCreated /w/c ${child}`, `stays NodeChildrenChanged /w ${child}`]);
    await world.until(zk.removeWatches('/w', { type: 'persistentRecursive', watch: recursive }));
    await world.until(zk.removeWatches('/w'));
    expect(await failureOf(zk.removeWatches('/w'))).toMatchObject({ code: 'NoWatcher' });
  });

  it.each([
    ['an invalid path', (zk: Zk) => zk.getData('a//b'), 'KeeperErrorCode = BadArguments for a//b (a path must start with "/")'],
    ['the root of a sequence', (zk: Zk) => zk.create('/a/'), 'KeeperErrorCode = BadArguments for /a/ (a path must not end with "/")'],
    [
      'a TTL of 0',
      (zk: Zk) => zk.create('/a', null, { mode: 'persistentWithTtl' } as never),
      'the mode persistentWithTtl requires a ttlMs from 1 to',
    ],
    ['a TTL without a mode', (zk: Zk) => zk.create('/a', null, { ttlMs: 5 } as never), 'the mode persistent does not take a ttlMs'],
    ['too much data', (zk: Zk) => zk.create('/a', new Uint8Array(2_000_000)), 'more than maxPacketBytes (1048575)'],
    [
      'a multi with an invalid path',
      (zk: Zk) => zk.multi([op.delete('/a'), op.delete('b')]),
      'ops[1], delete b: a path must start with "/"',
    ],
    ['an invalid prefix', (zk: Zk) => zk.getEphemerals('a'), 'a prefix must start with "/"'],
  ])('%s is rejected before it is sent', async (_what, ask, words) => {
    const zk = await world.connect();
    const error = await failureOf(ask(zk));
    expect(error).toMatchObject({ code: 'BadArguments', outcome: 'notSent', retryable: false });
    expect((error as Error).message).toContain(words);
  });

  it('an argument of the wrong type rejects with a TypeError', async () => {
    const zk = await world.connect();
    expect(await failureOf(zk.create('/a', 5 as never))).toBeInstanceOf(TypeError);
    expect(await failureOf(zk.create('/a', null, { mode: 'constructor' as never }))).toBeInstanceOf(TypeError);
    expect(await failureOf(zk.removeWatches('/a', { type: 'toString' as never }))).toBeInstanceOf(TypeError);
    expect(await failureOf(zk.getData(undefined as never))).toBeInstanceOf(TypeError);
    // Nothing was sent.
    expect(await world.until(zk.exists('/a'))).toBe(null);
  });

  it('B31: an error shows the caller', async () => {
    const zk = await world.connect();
    async function theCaller(): Promise<void> {
      await zk.getData('/missing');
    }
    const error = await failureOf(theCaller());
    expect(KeeperError.is(error, 'NoNode', 'BadVersion')).toBe(true);
    expect(KeeperError.is(error, 'BadVersion')).toBe(false);
    expect((error as Error).stack).toContain('theCaller');
  });
});

type Zk = Awaited<ReturnType<typeof connect>>;

describe('connect', () => {
  it('C2-10: requests a time-out and reports the granted one', async () => {
    expect((await world.connect({ sessionTimeoutMs: 1 })).sessionTimeoutMs).toBe(2000);
    expect((await world.connect({ sessionTimeoutMs: 7777 })).sessionTimeoutMs).toBe(7777);
    expect((await world.connect({ sessionTimeoutMs: 3_600_000 })).sessionTimeoutMs).toBe(60_000);
  });

  it('looks for a server for a time that does not depend on the session time-out', async () => {
    world.wire.conditionsOf = () => ({ delayMs: 40 });
    expect((await world.connect({ sessionTimeoutMs: 1 })).sessionTimeoutMs).toBe(2000);
  });

  it('E14: rejects if no server is reached in time, and reports the last failure', async () => {
    world.kill();
    const error = await failureOf(connect('server:2181', world.options({ connectTimeoutMs: 5000 })));
    expect(error).toMatchObject({ code: 'ConnectionLoss', op: 'connect', retryable: true, outcome: 'notSent' });
    expect((error as Error).message).toBe(
      'KeeperErrorCode = ConnectionLoss (no session within 5000 ms; server:2181: address lookup failed: the name server does not resolve (ENOTFOUND). (9 attempts))',
    );
    await world.boot();
  });

  it('rejects with the reason of its signal, before and during the search for a server', async () => {
    const early = AbortSignal.abort(new Error('never mind'));
    expect(await failureOf(connect('server:2181', world.options({ signal: early })))).toMatchObject({ message: 'never mind' });
    world.kill();
    const controller = new AbortController();
    const connecting = failureOf(connect('server:2181', world.options({ signal: controller.signal })));
    await world.pass(1000);
    controller.abort(new Error('too late'));
    expect(await connecting).toMatchObject({ message: 'too late' });
    await world.boot();
  });

  it('rejects with AuthFailed if a server rejects an identity', async () => {
    const error = await failureOf(connect('server:2181', world.options({ auth: [{ scheme: 'nonsense', auth: 'x' }] })));
    expect(error).toMatchObject({ code: 'AuthFailed', op: 'connect' });
  });

  it('rejects invalid arguments', async () => {
    expect(await failureOf(connect('server:0', world.options()))).toMatchObject({ name: 'ConnectStringError' });
    expect(await failureOf(connect('server:2181', world.options({ sessionTimeoutMs: 0.5 })))).toBeInstanceOf(RangeError);
  });

  it('C2-7, B38: resumes a session by its id and password, with all 64 bits of the id', async () => {
    const zk = await world.connect();
    await world.until(zk.create('/e', null, { mode: 'ephemeral' }));
    const { sessionId: id, sessionPassword: password } = zk;
    world.break();
    const other = await world.connect({ session: { id, password } });
    expect(other.sessionId).toBe(id);
    expect((await world.until(other.getData('/e'))).stat.ephemeralOwner).toBe(id);
    await world.until(other.close());
    await world.untilSo(() => zk.endReason !== undefined);
    expect(zk.endReason).toBe('expired');
  });

  it('C2-9: rejects with SessionExpired if the password is wrong', async () => {
    const zk = await world.connect();
    const options = world.options({ session: { id: zk.sessionId, password: new Uint8Array(16) } });
    expect(await failureOf(connect('server:2181', options))).toMatchObject({ code: 'SessionExpired', op: 'connect' });
  });
});

describe('a session', () => {
  it('C2-18: delivers every state to a listener, from the loss of the connection to the next one', async () => {
    const zk = await world.connect();
    const states: string[] = [];
    const off = zk.on('state', ({ state }) => void states.push(`${state} ${zk.state}`));
    world.break();
    await world.settle();
    expect(zk.connectedServer).toBe(undefined);
    await world.untilSo(() => zk.state === 'connected');
    expect(zk.connectedServer).toBe('server:2181');
    expect(states).toEqual(['Disconnected suspended', 'SyncConnected connected']);
    off();
    await world.until(zk.close());
    await world.settle();
    expect(states).toHaveLength(2);
    expect([zk.state, zk.endReason]).toEqual(['closed', 'closed']);
  });

  it('C2-11: survives a restart of its server, with its ephemerals', async () => {
    const zk = await world.connect();
    await world.until(zk.create('/e', 'mine', { mode: 'ephemeral' }));
    const { events, watch } = heard();
    await world.until(zk.getData('/e', { watch }));
    const { sessionId } = zk;
    world.kill();
    await world.pass(3000);
    await world.boot();
    await world.untilSo(() => zk.state === 'connected');
    expect(zk.sessionId).toBe(sessionId);
    expect(text((await world.until(zk.getData('/e'))).data)).toBe('mine');
    const other = await world.connect();
    await world.until(other.setData('/e', 'theirs'));
    await world.settle();
    expect(events.map(({ type, state }) => `${type} ${state}`)).toEqual([
      'None Disconnected',
      'None SyncConnected',
      'NodeDataChanged SyncConnected',
    ]);
  });

  it('C2-17: that was cut off for longer than its time-out delivers Expired after the reconnect, and not before', async () => {
    const zk = await world.connect();
    const states: string[] = [];
    zk.on('state', ({ state }) => void states.push(state));
    const { events, watch } = heard();
    await world.until(zk.exists('/x', { watch }));
    await world.until(zk.create('/e', null, { mode: 'ephemeral' }));
    const other = await world.connect();
    const { dialer, listener } = [...world.wire.cnxns].find(({ dialer: from }) => from.address === '10.1.0.1')!;
    world.wire.cut(dialer.address, listener.address);
    await world.pass(15_000);
    expect(await world.until(other.exists('/e'))).toBe(null);
    expect(states).toEqual(['Disconnected']);
    world.wire.heal(dialer.address, listener.address);
    await world.untilSo(() => zk.endReason !== undefined);
    await world.settle();
    expect(states).toEqual(['Disconnected', 'Expired']);
    expect(zk.endReason).toBe('expired');
    expect(events.map(({ state }) => state)).toEqual(['Disconnected', 'Expired']);
    expect(await failureOf(zk.exists('/x'))).toMatchObject({ code: 'SessionExpired', outcome: 'notSent' });
  });

  it('C2-19: that is idle stays open for hours', async () => {
    const zk = await world.connect();
    await world.pass(3_600_000, 2500);
    expect(zk.state).toBe('connected');
    expect(await world.until(zk.exists('/'))).not.toBe(null);
  });

  it('is ended at once by close, after the answers to earlier requests; close can be called again', async () => {
    const zk = await world.connect();
    await world.until(zk.create('/e', null, { mode: 'ephemeral' }));
    const asked = zk.exists('/e');
    const closing = zk.close();
    expect(await failureOf(zk.exists('/e'))).toMatchObject({ code: 'SessionExpired', outcome: 'notSent' });
    await world.until(closing);
    await world.until(zk.close());
    expect((await asked)?.ephemeralOwner).toBe(zk.sessionId);
    const other = await world.connect();
    expect(await world.until(other.exists('/e'))).toBe(null);
  });

  it('B33: is closed by await using', async () => {
    async function useIt(): Promise<Zk> {
      await using zk = await connect('server:2181', world.options());
      return zk;
    }
    expect((await world.until(useIt())).endReason).toBe('closed');
  });

  it('B40: proves the identity of addAuth, and again after a reconnect; a rejection ends the client', async () => {
    const zk = await world.connect();
    await world.until(zk.addAuth('digest', 'user:password'));
    await world.until(zk.create('/mine', null, { acl: [{ perms: 31, id: { scheme: 'auth', id: '' } }] }));
    world.break();
    await world.untilSo(() => zk.state === 'suspended');
    await world.until(zk.getData('/mine'));
    expect((await world.until(zk.whoAmI())).map(({ authScheme }) => authScheme).toSorted()).toEqual(['digest', 'ip']);
    expect(await failureOf(zk.addAuth('nonsense', new Uint8Array()))).toMatchObject({
      code: 'AuthFailed',
      op: 'addAuth',
      outcome: 'refused',
    });
    expect([zk.state, zk.endReason]).toEqual(['authFailed', 'authFailed']);
    expect(await failureOf(zk.exists('/'))).toMatchObject({ code: 'AuthFailed', outcome: 'notSent' });
  });
});
