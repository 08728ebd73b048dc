/** The state of a client from its first connection to its end, as a property and as events. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Client, type ClientState, connect, type SessionEvent } from '../src/index.ts';
import { ClientWorld } from './support/client-world.ts';
import { settle } from './support/outcomes.ts';
import { ScriptedTransport } from './support/scripted-transport.ts';
import { connectResponse, refusal } from './support/server-frames.ts';

let world: ClientWorld;

beforeEach(async () => {
  world = await ClientWorld.start();
});

afterEach(async () => {
  await world.close();
});

/** The received states, and the client's state at that time. */
function listener(): { readonly heard: string[]; readonly onState: (event: SessionEvent) => void } {
  const heard: string[] = [];
  return { heard, onState: ({ state }) => void heard.push(state) };
}

/** Blocks all bytes between a client and its server until the returned function is called. */
function partition(): () => void {
  const { dialer, listener: server } = world.cnxn;
  world.wire.cut(dialer.address, server.address);
  return () => world.wire.heal(dialer.address, server.address);
}

async function refusedFor(zk: Client): Promise<string> {
  const { outcome } = await world.until(settle(zk.exists('/')));
  return outcome;
}

describe('B54: the states of a client', () => {
  it('C2-1, C2-18: the first event is the connect; then the client is connected, or suspended and looks for a server', async () => {
    const { heard, onState } = listener();
    const connecting = connect('server:2181', world.options({ onState }));
    expect(heard).toEqual([]);
    const zk = await world.until(connecting);
    expect(heard).toEqual(['SyncConnected']);
    expect(zk.state).toBe('connected');
    for (let round = 0; round < 3; round++) {
      heard.length = 0;
      world.break();
      await world.untilSo(() => zk.state !== 'connected');
      expect([zk.state, zk.endReason, heard]).toEqual(['suspended', undefined, ['Disconnected']]);
      await world.untilSo(() => zk.state !== 'suspended');
      expect([zk.state, zk.endReason, heard]).toEqual(['connected', undefined, ['Disconnected', 'SyncConnected']]);
    }
  });

  it('are not delivered to a removed listener, even if an event is on its way', async () => {
    const zk = await world.connect();
    const { heard, onState } = listener();
    zk.on('state', () => forget());
    const forget = zk.on('state', onState);
    world.break();
    await world.untilSo(() => zk.state !== 'connected');
    await world.untilSo(() => zk.state === 'connected');
    expect(heard).toEqual([]);
  });

  it('C2-18: onState receives the connection first, and then its loss, however short it is', async () => {
    const { heard, onState } = listener();
    const transport = new ScriptedTransport();
    const connecting = connect('a', world.options({ transport, onState, auth: [{ scheme: 'digest', auth: 'u:p' }] }));
    await world.settle();
    transport.latest.sink.connected();
    transport.latest.sink.received(connectResponse());
    // The identity was not answered yet, so there is no client.
    transport.latest.sink.closed('ECONNRESET');
    await world.settle();
    expect(heard).toEqual(['SyncConnected', 'Disconnected']);
    expect(await world.until(settle(connecting))).toMatchObject({ outcome: 'ConnectionLoss notSent' });
    expect(heard).toEqual(['SyncConnected', 'Disconnected', 'Closed']);
  });

  it('C2-17: an expired client has delivered connected, disconnected, nothing while it was cut off, and expired', async () => {
    const { heard, onState } = listener();
    const zk = await world.until(connect('server:2181', world.options({ onState })));
    const heal = partition();
    const states = new Set<ClientState>();
    for (let minute = 0; minute < 60; minute++) {
      await world.pass(60_000, 10_000);
      states.add(zk.state);
    }
    expect([...states]).toEqual(['suspended']);
    expect(heard).toEqual(['SyncConnected', 'Disconnected']);
    heal();
    await world.untilSo(() => zk.endReason !== undefined);
    await world.pass(3_600_000, 10_000);
    expect(heard).toEqual(['SyncConnected', 'Disconnected', 'Expired']);
  });

  const ends: [end: ClientState, event: string, outcome: string, bringAbout: (zk: Client) => Promise<unknown>][] = [
    ['closed', 'Closed', 'SessionExpired notSent', (zk) => world.until(zk.close())],
    ['authFailed', 'AuthFailed', 'AuthFailed notSent', (zk) => world.until(settle(zk.addAuth('nonsense', 'x')))],
    [
      'expired',
      'Expired',
      'SessionExpired notSent',
      async (zk) => {
        const heal = partition();
        await world.pass(20_000);
        heal();
        await world.untilSo(() => zk.state !== 'suspended');
      },
    ],
  ];

  it.each(ends)(
    'C2-2, C2-14: %s is final: it is delivered once, every call is rejected, and no server is dialled again',
    async (...story) => {
      const [end, event, outcome, bringAbout] = story;
      const { heard, onState } = listener();
      const zk = await world.until(connect('server:2181', world.options({ onState })));
      const { sessionId } = zk;
      await bringAbout(zk);
      await world.settle();
      expect([zk.state, zk.endReason, heard.at(-1)]).toEqual([end, end, event]);
      expect(zk.connectedServer).toBe(undefined);
      expect(await refusedFor(zk)).toBe(outcome);
      const reports = heard.length;
      await world.pass(3_600_000, 10_000);
      expect([...world.wire.cnxns].filter(({ forward }) => !forward.from.isClosed && !forward.to.isClosed)).toEqual([]);
      expect([zk.state, zk.sessionId, heard.length]).toEqual([end, sessionId, reports]);
      await world.until(zk.close());
      expect([zk.state, await refusedFor(zk)]).toEqual([end, outcome]);
    },
  );

  it('a session that is left to another client ends as moved, which is delivered as Closed with the reason', async () => {
    const reasons: (string | undefined)[] = [];
    const options = { yieldSession: true, onState: ({ reason }: SessionEvent) => void reasons.push(reason) };
    const zk = await world.until(connect('server:2181', world.options(options)));
    const other = await world.connect({ session: { id: zk.sessionId, password: zk.sessionPassword } });
    await world.untilSo(() => zk.endReason !== undefined);
    expect([zk.state, zk.endReason]).toEqual(['moved', 'moved']);
    await world.settle();
    expect(reasons.at(-1)).toContain('another client uses this session');
    expect(await refusedFor(zk)).toBe('SessionMoved notSent');
    await world.untilSo(() => other.state === 'connected');
  });

  it('an exception in a listener becomes an unhandled rejection, and all others receive the event', async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => void unhandled.push(reason);
    const others = process.listeners('unhandledRejection');
    process.removeAllListeners('unhandledRejection');
    process.on('unhandledRejection', note);
    try {
      const { heard, onState } = listener();
      const zk = await world.connect();
      const off = zk.on('state', () => {
        throw new Error('of the program');
      });
      zk.on('state', onState);
      world.break();
      await world.untilSo(() => zk.state === 'suspended');
      await world.untilSo(() => zk.state === 'connected');
      expect(heard).toEqual(['Disconnected', 'SyncConnected']);
      expect(unhandled).toEqual([new Error('of the program'), new Error('of the program')]);
      expect(await world.until(zk.exists('/'))).not.toBe(null);
      off();
    } finally {
      process.off('unhandledRejection', note);
      for (const other of others) process.on('unhandledRejection', other);
    }
  });

  it('C2-15: a client whose clock jumps ahead by hours keeps its session as long as the ensemble says so', async () => {
    const { heard, onState } = listener();
    const { clock } = world;
    let aheadMs = 0;
    const own = {
      now: () => ({ elapsedMs: clock.now().elapsedMs + aheadMs }),
      after: clock.after.bind(clock),
      cancel: clock.cancel.bind(clock),
    };
    const zk = await world.until(connect('server:2181', world.options({ onState, clock: own })));
    await world.until(zk.create('/e', null, { mode: 'ephemeral' }));
    for (let round = 0; round < 5; round++) {
      aheadMs += 3_600_000;
      await world.pass(3000);
    }
    await world.untilSo(() => zk.state === 'connected');
    expect((await world.until(zk.exists('/e')))!.ephemeralOwner).toBe(zk.sessionId);
    expect(heard).not.toContain('Expired');
  });
});

describe('a resumed session', () => {
  it('B38: continues in another process with its ephemerals, and expires if no process resumes it in time', async () => {
    const first = await world.connect();
    await world.until(first.create('/e', null, { mode: 'ephemeral' }));
    const saved = { id: first.sessionId, password: first.sessionPassword };
    // The process is gone without closing its session.
    partition();
    await world.pass(5000);
    const second = await world.connect({ session: saved });
    expect([second.sessionId, second.sessionPassword]).toEqual([saved.id, saved.password]);
    expect((await world.until(second.exists('/e')))!.ephemeralOwner).toBe(saved.id);
    partition();
    await world.pass(20_000);
    const late = await world.until(settle(connect('server:2181', world.options({ session: saved }))));
    expect(late.outcome).toBe('SessionExpired notSent');
  });

  // As in servers' logs; a 64-bit number is the same with and without a sign.
  it.each([0xfedc_ba98_7654_3211n, 0x8000_0000_0000_0001n, -5n, 0x20_0000_0000_0001n])(
    'C2-7: keeps all 64 bits of its id: %s',
    async (id) => {
      const transport = new ScriptedTransport();
      const session = { id, password: Buffer.alloc(16, 7) };
      const connecting = connect('a', world.options({ transport, session }));
      await world.settle();
      transport.latest.sink.connected();
      expect(transport.latest.sent[0]!.readBigInt64BE(4 + 4 + 8 + 4)).toBe(BigInt.asIntN(64, id));
      transport.latest.sink.received(connectResponse({ session: id }));
      const zk = await world.until(connecting);
      expect(zk.sessionId).toBe(BigInt.asIntN(64, id));
      transport.latest.sink.closed(undefined);
      await world.untilSo(() => transport.cnxns.length === 2);
      transport.latest.sink.connected();
      transport.latest.sink.received(refusal);
      expect(zk.state).toBe('expired');
    },
  );
});
