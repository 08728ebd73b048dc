/**
 * The guarantees of sessions over real sockets: an ensemble of three, and a client behind a proxy
 * that cuts, stalls, refuses and delays. Sessions are short, as time is real here; the tests in
 * virtual time check exact times.
 */
import { SeededRandom } from '@tskeeper/runtime';
import { TestEnsemble } from '@tskeeper/testing';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Client, type Clock, connect, type ConnectOptions, type KeeperState, type WatchedEvent } from '../src/index.ts';
import { systemClock } from '../src/node/system-clock.ts';
import { FaultProxy } from './support/fault-proxy.ts';
import { settle, text } from './support/outcomes.ts';

let ensemble: TestEnsemble;
let proxies: FaultProxy[];
const clients: Client[] = [];

beforeAll(async () => {
  ensemble = await TestEnsemble.start({ servers: 3 });
  proxies = await Promise.all(ensemble.servers.map(({ connectString }) => FaultProxy.before(connectString)));
});

afterAll(async () => {
  await Promise.all(proxies.map((proxy) => proxy.close()));
  await ensemble.close();
});

afterEach(async () => {
  for (const proxy of proxies) proxy.heal();
  await Promise.all(clients.splice(0).map((zk) => zk.close()));
  await using zk = await connect(ensemble.connectString);
  for (const child of (await zk.getChildren('/')).children) if (child !== 'zookeeper') await zk.deleteRecursive(`/${child}`);
});

const all = (): string => proxies.map(({ connectString }) => connectString).join();
const proxyOf = (zk: Client): FaultProxy => proxies.find(({ connectString }) => connectString === zk.connectedServer)!;

/**
 * Pauses of almost 0, so that many attempts take no time; and the same order of servers for all.
 */
const hasty = { uint32: () => 0x0100_0000 };

class Heard {
  readonly states: KeeperState[] = [];
  #askers: (() => void)[] = [];

  readonly onState = ({ state }: { readonly state: KeeperState }): void => {
    this.states.push(state);
    for (const asker of this.#askers.splice(0)) asker();
  };

  /** Resolves when this many states have arrived. */
  async atLeast(count: number): Promise<readonly KeeperState[]> {
    while (this.states.length < count) await new Promise<void>((resolve) => this.#askers.push(resolve));
    return this.states;
  }
}

async function opened(options: ConnectOptions = {}, servers = all()): Promise<{ readonly zk: Client; readonly heard: Heard }> {
  const heard = new Heard();
  // The longest grantable time-out, unless the test waits for its end: then a slow process loses no
  // connection.
  const zk = await connect(servers, { sessionTimeoutMs: 40_000, random: hasty, onState: heard.onState, ...options });
  clients.push(zk);
  return { zk, heard };
}

/** A client on a path without faults. */
async function onlooker(): Promise<Client> {
  const zk = await connect(ensemble.connectString);
  clients.push(zk);
  return zk;
}

function nextOf(zk: Client, path: string): Promise<WatchedEvent> {
  return new Promise((resolve, reject) => {
    const watch = (event: WatchedEvent) => {
      if (event.type !== 'None') resolve(event);
    };
    zk.exists(path, { watch }).catch(reject);
  });
}

describe('through a proxy with faults', () => {
  it('C2-1, C2-18: a client skips servers that accept a connection and send nothing, and its first event is the connect', async () => {
    const { zk: scout } = await opened();
    const others = scout.servers.filter((server) => server !== scout.connectedServer);
    const [first, second, third] = [scout.connectedServer, ...others].map((server) =>
      proxies.find(({ connectString }) => connectString === server)!,
    ) as [FaultProxy, FaultProxy, FaultProxy];
    first.stall();
    second.refuse();
    const accepted = [first.accepted, second.accepted];
    const { zk, heard } = await opened({ sessionTimeoutMs: 900 });
    expect([zk.state, zk.connectedServer]).toEqual(['connected', third.connectString]);
    // Once, or again if the third server also answered too late.
    for (const [at, passedOver] of [first, second].entries()) expect(passedOver.accepted).toBeGreaterThan(accepted[at]!);
    expect(await heard.atLeast(1)).toEqual(['SyncConnected']);
  });

  it('C2-5: the first server is random, and each server is first at times', async () => {
    // Fixed seeds, so that the random choices are the same each time.
    const seeds = Array.from({ length: 30 }, (_, index) => 1 + index * 7919);
    const begun = await Promise.all(seeds.map((seed) => opened({ random: new SeededRandom(seed) })));
    const firsts = begun.map(({ zk }) => zk.connectedServer);
    for (const { connectString } of proxies) expect(firsts.filter((server) => server === connectString).length).toBeGreaterThanOrEqual(5);
    // Without randomness all start at the same server.
    const alike = await Promise.all(seeds.slice(0, 3).map(() => opened()));
    expect(new Set(alike.map(({ zk }) => zk.connectedServer)).size).toBe(1);
  });

  it('C2-3, C2-6, C2-30: after each lost server a client uses the next of the list, round robin, with one session', async () => {
    const { zk, heard } = await opened();
    const { sessionId } = zk;
    const visited: (string | undefined)[] = [zk.connectedServer];
    for (let round = 1; round <= 6; round++) {
      proxyOf(zk).cut();
      await heard.atLeast(1 + 2 * round);
      visited.push(zk.connectedServer);
    }
    expect(new Set(visited.slice(0, 3)).size).toBe(3);
    expect(visited.slice(3)).toEqual(visited.slice(0, 4));
    expect(zk.sessionId).toBe(sessionId);
  });

  it('C2-4: under a chroot, errors and events of a lost connection contain the paths of the client', async () => {
    const other = await onlooker();
    await other.create('/app/a', null, { parents: true });
    const { zk, heard } = await opened({}, `${all()}/app/a`);
    const born = nextOf(zk, '/x');
    await zk.exists('/y');
    proxyOf(zk).loseAnswer();
    const { error } = await settle(zk.setData('/y', ''));
    expect([error!.code, error!.path]).toEqual(['ConnectionLoss', '/y']);
    await heard.atLeast(3);
    await other.create('/app/a/x');
    expect(await born).toMatchObject({ type: 'NodeCreated', path: '/x' });
  });

  it('C2-7, C2-8: id and password resume the session on another server, and in another client', async () => {
    const { zk, heard } = await opened();
    const { sessionId: id, sessionPassword: password } = zk;
    await zk.create('/mine', null, { mode: 'ephemeral' });
    proxyOf(zk).refuse();
    await heard.atLeast(3);
    expect([zk.sessionId, zk.sessionPassword]).toEqual([id, password]);
    for (const proxy of proxies) proxy.stall();
    const heir = await connect(ensemble.connectString, { session: { id, password } });
    clients.push(heir);
    expect((await heir.exists('/mine'))!.ephemeralOwner).toBe(id);
  });

  it('C2-9: a wrong password fails as SessionExpired, and only cuts the connection of the session', async () => {
    const { zk } = await opened();
    await zk.create('/mine', null, { mode: 'ephemeral' });
    const thief = await settle(connect(all(), { session: { id: zk.sessionId, password: new Uint8Array(16) } }));
    expect(thief.error?.code).toBe('SessionExpired');
    expect((await zk.exists('/mine', { retry: true }))!.ephemeralOwner).toBe(zk.sessionId);
  });

  it('C2-10: a client reports the granted time-out, 2 to 20 ticks by default, and that of the next server', async () => {
    for (const [asked, granted] of [
      [1, 400],
      [1234, 1234],
      [3_600_000, 40_000],
    ] as const) {
      const { zk, heard } = await opened({ sessionTimeoutMs: asked });
      expect(zk.sessionTimeoutMs).toBe(granted);
      proxyOf(zk).cut();
      await heard.atLeast(3);
      expect(zk.sessionTimeoutMs).toBe(granted);
    }
  });

  it('C2-11, C2-15: a client that was cut off for less than its time-out keeps its ephemerals and its watches', async () => {
    const other = await onlooker();
    const { zk, heard } = await opened({ sessionTimeoutMs: 3000 });
    const { sessionId } = zk;
    await zk.create('/mine', null, { mode: 'ephemeral' });
    const born = nextOf(zk, '/born');
    await zk.exists('/');
    for (const proxy of proxies) proxy.refuse();
    await heard.atLeast(2);
    expect(zk.state).toBe('suspended');
    await other.create('/born');
    for (const proxy of proxies) proxy.heal();
    expect(await heard.atLeast(3)).toEqual(['SyncConnected', 'Disconnected', 'SyncConnected']);
    expect(await born).toMatchObject({ type: 'NodeCreated', path: '/born' });
    expect((await zk.exists('/mine'))!.ephemeralOwner).toBe(sessionId);
  });

  it('C2-2, C2-12, C2-14, C2-16, C2-17: a client that was cut off for longer loses its ephemerals, and delivers only its end after the reconnect', async () => {
    const other = await onlooker();
    const { zk, heard } = await opened({ sessionTimeoutMs: 600 });
    await zk.create('/mine', null, { mode: 'ephemeral' });
    const gone = nextOf(other, '/mine');
    for (const proxy of proxies) proxy.stall();
    expect(await gone).toMatchObject({ type: 'NodeDeleted', path: '/mine' });
    expect(heard.states).toEqual(['SyncConnected', 'Disconnected']);
    expect(zk.state).toBe('suspended');
    for (const proxy of proxies) proxy.heal();
    expect(await heard.atLeast(3)).toEqual(['SyncConnected', 'Disconnected', 'Expired']);
    expect((await settle(zk.exists('/'))).outcome).toBe('SessionExpired notSent');
    expect(zk.state).toBe('expired');
  });

  it('C2-13: clients that lose their server at one moment reconnect at different moments', async () => {
    // The pause of each client by its own clock: on a busy machine, times of arrival are useless.
    const many = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const waitsMs: number[] = [];
        const after: Clock['after'] = (delayMs, callback) => {
          waitsMs.push(delayMs);
          return systemClock.after(delayMs, callback);
        };
        return { waitsMs, ...(await opened({ random: undefined, clock: { ...systemClock, after } })) };
      }),
    );
    for (const { waitsMs } of many) waitsMs.length = 0;
    for (const proxy of proxies) proxy.cut();
    await Promise.all(many.map(({ heard }) => heard.atLeast(3)));
    const pausesMs = many.map(({ waitsMs }) => Math.min(...waitsMs));
    // Uniform over a quarter of a second: the probability that all 20 lie within 50 ms is 1 in
    // 10^12.
    expect(Math.max(...pausesMs) - Math.min(...pausesMs)).toBeGreaterThan(50);
    expect(Math.max(...pausesMs)).toBeLessThanOrEqual(250);
    for (const { zk } of many) expect(zk.state).toBe('connected');
  });

  it.each(['requests', 'answers'] as const)(
    'C2-19: an idle client detects that its %s get lost, and moves to another server before its session ends',
    async (direction) => {
      const { zk, heard } = await opened({ sessionTimeoutMs: 2000 });
      await zk.create('/mine', null, { mode: 'ephemeral' });
      const silent = proxyOf(zk);
      silent.stall(direction);
      const [, lost] = await heard.atLeast(2);
      expect(lost).toBe('Disconnected');
      await heard.atLeast(3);
      expect(proxyOf(zk)).not.toBe(silent);
      expect((await zk.exists('/mine'))!.ephemeralOwner).toBe(zk.sessionId);
    },
  );

  it('C2-20: a lost answer has the outcome unknown, a call without a server notSent, and both are correct', async () => {
    const { zk, heard } = await opened();
    await zk.create('/a', '0');
    proxyOf(zk).loseAnswer();
    expect((await settle(zk.setData('/a', '1'))).outcome).toBe('ConnectionLoss unknown');
    await heard.atLeast(3);
    expect(text((await zk.getData('/a')).data)).toBe('1');
    for (const proxy of proxies) proxy.refuse();
    await heard.atLeast(4);
    expect((await settle(zk.setData('/a', '2'))).outcome).toBe('ConnectionLoss notSent');
    for (const proxy of proxies) proxy.heal();
    await heard.atLeast(5);
    await zk.sync('/a');
    expect(text((await zk.getData('/a')).data)).toBe('1');
  });

  it('C2-21, C2-22: a delayed request to a server that its client has left has no effect, and ends that connection', async () => {
    const { zk, heard } = await opened({ sessionTimeoutMs: 1500 });
    await zk.create('/a', '0');
    const left = proxyOf(zk);
    left.stall('requests');
    const late = settle(zk.setData('/a', 'late'));
    await heard.atLeast(3);
    expect((await late).outcome).toBe('ConnectionLoss unknown');
    expect(proxyOf(zk)).not.toBe(left);
    expect((await zk.setData('/a', 'new', { version: 0 })).version).toBe(1);
    expect(left.openCount).toBeGreaterThan(0);
    left.heal();
    while (left.openCount > 0) await zk.sync('/a');
    const { data, stat } = await zk.getData('/a');
    expect([text(data), stat.version, zk.state]).toEqual(['new', 1, 'connected']);
    expect(heard.states).toEqual(['SyncConnected', 'Disconnected', 'SyncConnected']);
  });

  it('C2-22: a client that moves from server to server during its calls never gets SessionMoved', async () => {
    const { zk, heard } = await opened();
    await zk.create('/a');
    const outcomes = new Set<string>();
    for (let round = 1; round <= 15; round++) {
      const calls = Array.from({ length: 10 }, (_, at) => settle(at % 2 === 0 ? zk.setData('/a', `${round}`) : zk.exists('/a')));
      if (round % 2 === 0) proxyOf(zk).cut();
      else proxyOf(zk).loseAnswer();
      for (const { outcome } of await Promise.all(calls)) outcomes.add(outcome);
      await heard.atLeast(1 + 2 * round);
    }
    expect([...outcomes].filter((outcome) => !['done', 'ConnectionLoss unknown', 'ConnectionLoss notSent'].includes(outcome))).toEqual([]);
  });

  it('C2-23: two clients with one session take it from each other, until the one with yieldSession leaves it to the other', async () => {
    const { zk: first } = await opened();
    await first.create('/mine', null, { mode: 'ephemeral' });
    const session = { id: first.sessionId, password: first.sessionPassword };
    const { zk: second, heard } = await opened({ session, yieldSession: true });
    // An ensemble closes the older connection only when it receives something on it.
    while (second.endReason === undefined) await Promise.all([first, second].map((zk) => settle(zk.setData('/mine', ''))));
    await heard.atLeast(1 + 2 * 4 + 1);
    expect([second.state, heard.states.at(-1)]).toEqual(['moved', 'Closed']);
    expect(heard.states.filter((state) => state === 'Disconnected').length).toBeGreaterThanOrEqual(4);
    expect((await first.exists('/mine', { retry: true }))!.ephemeralOwner).toBe(session.id);
  });

  it('C2-24, C2-25, C2-29: a client leaves a server that is not in the new list, for a new one that answers', async () => {
    const [one, two, three] = proxies.map(({ connectString }) => connectString) as [string, string, string];
    const { zk, heard } = await opened({}, one);
    await zk.create('/mine', null, { mode: 'ephemeral' });
    proxies[1]!.refuse();
    expect(zk.updateServerList([two, three])).toBe(true);
    await heard.atLeast(3);
    expect(zk.connectedServer).toBe(three);
    expect((await zk.exists('/mine'))!.ephemeralOwner).toBe(zk.sessionId);
    expect(proxies[0]!.openCount).toBe(0);
  });
});
