/** Sessions that only their own server knows, at every server of an ensemble. */
import { CreateMode, ErrorCode, OpCode, operations, PacketType, Reader, readTxn, type SessionId, Writer } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { Identities } from '../../src/auth/identities.ts';
import type { LocalSessionMode } from '../../src/index.ts';
import { type Asked, EnsembleClient } from './ensemble-client.ts';
import { Ensemble, type Node } from './ensemble.ts';
import { create, joined, rejoined, serve } from './ensemble-requests.ts';

function served(localSessions: LocalSessionMode, voters = 3, observers = 1, seed = 1, throttle: Ensemble['throttle'] = {}): Ensemble {
  const ensemble = new Ensemble(seed, voters, observers, 0);
  ensemble.localSessions = localSessions;
  ensemble.throttle = throttle;
  for (const { sid } of ensemble.nodes) ensemble.keeperServers.add(sid);
  serve(ensemble);
  return ensemble;
}

function observerOf(ensemble: Ensemble): Node {
  return ensemble.nodes.at(-1)!;
}

function followerOf(ensemble: Ensemble): Node {
  return ensemble.nodes.find((node) => node !== ensemble.leader && node !== observerOf(ensemble))!;
}

/** One server of each role. */
const roles: readonly (readonly [string, (ensemble: Ensemble) => Node])[] = [
  ['leader', (ensemble) => ensemble.leader!],
  ['follower', followerOf],
  ['observer', observerOf],
];

function settle(ensemble: Ensemble, ...asked: readonly Asked[]) {
  if (!ensemble.runUntil(() => asked.every(({ answer }) => answer !== undefined), 5000)) throw new Error('a request was not answered');
  return asked.map(({ answer }) => answer!);
}

function lastZxids(ensemble: Ensemble): Set<number> {
  return new Set(ensemble.nodes.map(({ peer }) => peer!.inspect.lastZxid()));
}

/** How each server counts its sessions: global, and local. */
function counts(ensemble: Ensemble): string[] {
  return ensemble.nodes.map(({ peer }) => `${peer!.inspect.sessionCount()} ${peer!.inspect.localSessionCount()}`);
}

function localCountOf(node: Node): number {
  return node.peer!.inspect.localSessionCount();
}

describe.each(roles)('A33: a local session at a %s', (_role, nodeOf) => {
  it('is opened and closed without a txn, and no other server learns of it', () => {
    const ensemble = served('enabled');
    const node = nodeOf(ensemble);
    const before = lastZxids(ensemble);
    const requests: number[] = [];
    ensemble.arrived = (_from, _to, type) => void (type === PacketType.REQUEST || type === PacketType.PROPOSAL ? requests.push(type) : 0);
    const client = joined(ensemble, node);
    expect(client.session >> 56n).toBe(BigInt(node.sid));
    expect(localCountOf(node)).toBe(1);
    expect(node.peer!.inspect.hasSession(client.session)).toBe(true);
    const [read, close] = [client.ask('exists', { path: '/', watch: false }), client.ask('closeSession', undefined)];
    expect(settle(ensemble, read, close)).toMatchObject([{ err: 0 }, { err: 0 }]);
    ensemble.run(50);
    expect(client.isClosed).toBe(true);
    expect(counts(ensemble)).toEqual(['0 0', '0 0', '0 0', '0 0']);
    expect([lastZxids(ensemble), requests]).toEqual([before, []]);
    expect(rejoined(ensemble, node, client).timeoutMs).toBe(0);
  });

  it('answers its closeSession after its writes, and ignores what follows', () => {
    const ensemble = served('upgradable');
    const client = joined(ensemble, nodeOf(ensemble));
    const write = client.ask('create', create('/a'));
    const close = client.ask('closeSession', undefined);
    client.ask('create', create('/late', CreateMode.ephemeral));
    // `EnsembleClient` throws at a reply out of order.
    expect(settle(ensemble, write, close)).toMatchObject([{ err: 0 }, { err: 0 }]);
    ensemble.run(50);
    expect([client.isClosed, counts(ensemble)]).toEqual([true, ['0 0', '0 0', '0 0', '0 0']]);
    expect(ensemble.nodes[0]!.peer!.replica.tree.find('/late')).toBe(0);
  });

  it('writes persistent znodes like any other', () => {
    const ensemble = served('enabled');
    const client = joined(ensemble, nodeOf(ensemble));
    const multi = {
      ops: [{ kind: 'create2', ...create('/m') } as const, { kind: 'setData', path: '/a', data: null, version: 0 } as const],
    };
    const asked = [client.ask('create', create('/a')), client.ask('multi', multi), client.ask('sync', { path: '/' })];
    const [made, many, sync] = settle(ensemble, ...asked);
    expect([made!.err, many!.err, sync!.err]).toEqual([0, 0, 0]);
    ensemble.run(50);
    ensemble.compare();
  });

  it.each<[string, (client: EnsembleClient) => Asked]>([
    ['create', (client) => client.ask('create', create('/e', CreateMode.ephemeral))],
    ['createIfNotExists of ClickHouse Keeper', (client) => client.ask('createIfNotExists', create('/e', CreateMode.ephemeral))],
    ['create2 of a sequential one', (client) => client.ask('create2', create('/e', CreateMode.ephemeralSequential))],
  ])('is refused an ephemeral unless it may become global: %s', (_title, ask) => {
    const ensemble = served('enabled');
    const node = nodeOf(ensemble);
    const client = joined(ensemble, node);
    const before = Math.max(...lastZxids(ensemble));
    const [first, then] = settle(ensemble, ask(client), client.ask('create', create('/p')));
    // The refusal takes a zxid, as every refusal does.
    expect([first, then]).toMatchObject([
      { err: ErrorCode.EphemeralOnLocalSession, zxid: before + 1 },
      { err: 0, zxid: before + 2 },
    ]);
    expect([client.isClosed, localCountOf(node)]).toEqual([false, 1]);
  });

  it('is refused a multi with an ephemeral: the reason is at its place', () => {
    const ensemble = served('enabled');
    const client = joined(ensemble, nodeOf(ensemble));
    const ops = [
      { kind: 'create', ...create('/p') } as const,
      { kind: 'create2', ...create('/e', CreateMode.ephemeral) } as const,
      { kind: 'delete', path: '/p', version: -1 } as const,
    ];
    const [answer] = settle(ensemble, client.ask('multi', { ops }));
    expect(answer!.body).toEqual({
      results: [ErrorCode.Ok, ErrorCode.EphemeralOnLocalSession, ErrorCode.RuntimeInconsistency].map((err) => ({ kind: 'error', err })),
    });
    expect(ensemble.leader!.peer!.replica.tree.find('/p')).toBe(0);
  });

  it('an ephemeral by createContainer is refused as in ZooKeeper: the session is not a global one', () => {
    for (const mode of ['enabled', 'upgradable'] as const) {
      const ensemble = served(mode);
      const client = joined(ensemble, nodeOf(ensemble));
      const [answer] = settle(ensemble, client.ask('createContainer', create('/c', CreateMode.ephemeral)));
      expect(answer!.err).toBe(ErrorCode.SessionExpired);
    }
  });

  it.each<[string, (client: EnsembleClient) => Asked]>([
    ['create', (client) => client.ask('create', create('/e', CreateMode.ephemeral))],
    ['create2', (client) => client.ask('create2', create('/e', CreateMode.ephemeral))],
    [
      'a multi',
      (client) =>
        client.ask('multi', {
          ops: [
            { kind: 'create', ...create('/p') },
            { kind: 'create', ...create('/e', CreateMode.ephemeral) },
          ],
        }),
    ],
  ])('becomes global with its first ephemeral, by %s: the createSession comes first', (_title, ask) => {
    const ensemble = served('upgradable');
    const node = nodeOf(ensemble);
    const client = joined(ensemble, node, 3000);
    const before = Math.max(...lastZxids(ensemble));
    const asked = [client.ask('create', create('/a')), ask(client), client.ask('exists', { path: '/e', watch: false })];
    const last = client.ask('create', create('/b', CreateMode.ephemeral));
    const [first, made, seen, then] = settle(ensemble, ...asked, last);
    expect([first!.zxid, made!.zxid, then!.zxid]).toEqual([before + 1, before + 3, before + 4]);
    expect([made!.err, seen!.err, then!.err]).toEqual([0, 0, 0]);
    ensemble.run(50);
    expect(counts(ensemble)).toEqual(['1 0', '1 0', '1 0', '1 0']);
    for (const { peer } of ensemble.nodes) {
      expect([...peer!.inspect.sessions()]).toEqual([{ session: client.session, timeoutMs: 3000 }]);
      expect([...peer!.inspect.ephemerals()].map(({ session, paths }) => [session, [...paths].toSorted()])).toEqual([
        [client.session, ['/b', '/e']],
      ]);
    }
    // It moves like any global session, and ends everywhere.
    client.break();
    const other = ensemble.nodes.find((each) => each !== node)!;
    expect(rejoined(ensemble, other, client, 3000).timeoutMs).toBe(3000);
    settle(ensemble, client.ask('closeSession', undefined));
    ensemble.run(50);
    expect(counts(ensemble)).toEqual(['0 0', '0 0', '0 0', '0 0']);
    expect(ensemble.nodes.map(({ peer }) => peer!.inspect.ephemeralCount())).toEqual([0, 0, 0, 0]);
    ensemble.compare();
  });

  it('is resumed at its server, and expired at any other', () => {
    const ensemble = served('upgradable');
    const node = nodeOf(ensemble);
    const client = joined(ensemble, node);
    client.break();
    expect(rejoined(ensemble, node, client).timeoutMs).toBe(2000);
    expect(settle(ensemble, client.ask('create', create('/a')))).toMatchObject([{ err: 0 }]);
    for (const other of ensemble.nodes.filter((each) => each !== node)) {
      const mover = Object.assign(new EnsembleClient(), { session: client.session, password: client.password });
      expect(rejoined(ensemble, other, mover).timeoutMs).toBe(0);
    }
    // The attempts elsewhere have not harmed it.
    expect(settle(ensemble, client.ask('setData', { path: '/a', data: null, version: 0 }))).toMatchObject([{ err: 0 }]);
  });

  it('matches the answers of a resumed session to its new connection, although its client counts its xids anew', () => {
    const ensemble = served('upgradable');
    const node = nodeOf(ensemble);
    const old = joined(ensemble, node);
    settle(ensemble, joined(ensemble, node).ask('create', create('/a')));
    // Their txns are still to come when the session is resumed.
    for (let count = 0; count < 3; count++) old.ask('setData', { path: '/a', data: null, version: 0 });
    ensemble.run(ensemble.clientMs + 0.1);
    old.break();
    const client = Object.assign(new EnsembleClient(), { session: old.session, password: old.password }).connect(node);
    ensemble.runUntil(() => client.isAnswered, 1000, 0.1);
    const asked = [
      client.ask('delete', { path: '/none', version: -1 }),
      client.ask('create', create('/e', CreateMode.ephemeral)),
      client.ask('create', create('/e')),
      client.ask('getEphemerals', { prefixPath: '/' }),
    ];
    const answers = settle(ensemble, ...asked);
    expect(answers.map(({ err }) => err)).toEqual([ErrorCode.NoNode, 0, ErrorCode.NodeExists, 0]);
    expect(answers.at(-1)!.body).toEqual({ ephemerals: ['/e'] });
  });

  it('expires at its own server, and lives as long as its client does', () => {
    const ensemble = served('enabled');
    const node = nodeOf(ensemble);
    const [alive, silent] = [joined(ensemble, node, 500), joined(ensemble, node, 500)];
    silent.break();
    for (let passed = 0; passed < 3000; passed += 200) {
      settle(ensemble, alive.ask('exists', { path: '/', watch: false }));
      ensemble.run(200);
    }
    expect([alive.isClosed, localCountOf(node)]).toEqual([false, 1]);
    expect(node.peer!.inspect.hasSession(silent.session)).toBe(false);
    expect(rejoined(ensemble, node, silent).timeoutMs).toBe(0);
    ensemble.run(1000);
    expect([alive.isClosed, localCountOf(node)]).toEqual([true, 0]);
    expect(lastZxids(ensemble).size).toBe(1);
  });

  it('lives on by what its client sends while it becomes global, and expires by the leader afterwards', () => {
    const ensemble = served('upgradable');
    const node = nodeOf(ensemble);
    const client = joined(ensemble, node, 500);
    settle(ensemble, client.ask('create', create('/e', CreateMode.ephemeral)));
    for (let passed = 0; passed < 3000; passed += 200) {
      settle(ensemble, client.ask('exists', { path: '/', watch: false }));
      ensemble.run(200);
    }
    expect([client.isClosed, ...counts(ensemble)]).toEqual([false, '1 0', '1 0', '1 0', '1 0']);
    ensemble.run(1000);
    expect([client.isClosed, ...counts(ensemble)]).toEqual([true, '0 0', '0 0', '0 0', '0 0']);
    expect(ensemble.leader!.peer!.inspect.ephemeralCount()).toBe(0);
  });

  it('ends at once on request of an operator', () => {
    const ensemble = served('enabled');
    const node = nodeOf(ensemble);
    const client = joined(ensemble, node);
    node.turn((peer) => expect(peer.server!.expireSession(client.session, node.now)).toBe(true));
    ensemble.run(10);
    expect([client.isClosed, localCountOf(node)]).toEqual([true, 0]);
    node.turn((peer) => expect(peer.server!.expireSession(client.session, node.now)).toBe(false));
  });

  it('shows operators when its sessions are due, apart from the global ones', () => {
    const ensemble = served('upgradable');
    const node = nodeOf(ensemble);
    const [local, global] = [joined(ensemble, node), joined(ensemble, node)];
    settle(ensemble, global.ask('create', create('/e', CreateMode.ephemeral)));
    const { inspect } = node.peer!;
    expect([...inspect.localSessionExpiry()!].flatMap(({ sessions }) => sessions)).toEqual([local.session]);
    expect([...inspect.sessionExpiry()].flatMap(({ sessions }) => sessions)).toEqual([global.session]);
    expect([...served('disabled').nodes].map(({ peer }) => peer!.inspect.localSessionExpiry())).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });
});

describe('A33: with local sessions, a leader', () => {
  it('refuses an ephemeral of a session that is not global, whatever the learner says', () => {
    const ensemble = served('enabled');
    const follower = followerOf(ensemble);
    const client = joined(ensemble, follower);
    const [answer] = settle(ensemble, client.ask('create', create('/e', CreateMode.ephemeral)));
    // The leader calls it expired, since it does not know the session; the follower knows better.
    expect(answer!.err).toBe(ErrorCode.EphemeralOnLocalSession);
    const { txn } = readTxn(new Reader(ensemble.leader!.folder.log.at(-1)!.bytes));
    expect(txn).toEqual({ kind: 'error', err: ErrorCode.SessionExpired });
  });

  it('performs the ephemeral that made a session global, even if both requests had to wait for their turn', () => {
    const ensemble = served('upgradable', 3, 1, 1, { requestThrottleLimit: 1, requestThrottleDropStale: false });
    const leader = ensemble.leader!;
    const [busy, client] = [joined(ensemble, leader), joined(ensemble, followerOf(ensemble))];
    const others = Array.from({ length: 20 }, (_, at) => busy.ask('create', create(`/busy${at}`)));
    const asked = [client.ask('create', create('/e', CreateMode.ephemeral)), client.ask('setData', { path: '/e', data: null, version: 0 })];
    expect(settle(ensemble, ...others, ...asked).filter(({ err }) => err !== 0)).toEqual([]);
    expect(client.isClosed).toBe(false);
  });

  it('knows a session that becomes global from when its createSession arrives, even if that has to wait for its turn', () => {
    const ensemble = served('upgradable', 3, 1, 1, { requestThrottleLimit: 1, requestThrottleDropStale: false });
    const leader = ensemble.leader!;
    const follower = followerOf(ensemble);
    const [busy, client] = [joined(ensemble, leader, 10_000), joined(ensemble, follower)];
    const others = Array.from({ length: 100 }, (_, at) => busy.ask('create', create(`/busy${at}`)));
    client.ask('create', create('/e', CreateMode.ephemeral));
    ensemble.run(10);
    client.break();
    client.asked.length = 0;
    expect([rejoined(ensemble, follower, client).timeoutMs, others.at(-1)!.answer]).toEqual([2000, undefined]);
    expect(settle(ensemble, client.ask('exists', { path: '/', watch: false }), ...others)).toHaveLength(101);
    // The first create was still waiting when the session moved to the new connection.
    expect(settle(ensemble, client.ask('create', create('/e', CreateMode.ephemeral)))).toMatchObject([{ err: 0 }]);
    ensemble.run(50);
    expect(counts(ensemble).map((each) => each.split(' ')[0])).toEqual(['1', '1', '1', '1']);
    ensemble.compare();
  });

  it('ends a session whose createSession had to wait longer than its timeout in the right order', () => {
    const ensemble = served('upgradable', 3, 1, 1, { requestThrottleLimit: 1, requestThrottleDropStale: false });
    const leader = ensemble.leader!;
    const [busy, client] = [joined(ensemble, leader, 20_000), joined(ensemble, followerOf(ensemble), 200)];
    const others = Array.from({ length: 400 }, (_, at) => busy.ask('create', create(`/busy${at}`)));
    client.ask('create', create('/e', CreateMode.ephemeral));
    ensemble.run(10);
    client.break();
    ensemble.run(600);
    expect([others.at(-1)!.answer, leader.peer!.replica.tree.find('/e')]).toEqual([undefined, 0]);
    settle(ensemble, ...others);
    ensemble.run(1500);
    expect([leader.peer!.replica.tree.find('/e'), ...counts(ensemble).map((each) => each.split(' ')[0])]).toEqual([0, '0', '0', '0', '0']);
    const types = leader.folder.log.map(({ bytes }) => readTxn(new Reader(bytes)).header);
    const own = types.filter(({ clientHigh }) => clientHigh === Number(client.session >> 32n)).map(({ type }) => type);
    expect(own.filter((type) => type === OpCode.createSession || type === OpCode.closeSession)).toEqual([
      OpCode.createSession,
      OpCode.closeSession,
    ]);
    ensemble.compare();
  });

  it('refuses a write of a global session that has ended, although its id could be that of a local one', () => {
    const ensemble = served('upgradable');
    const follower = followerOf(ensemble);
    const client = joined(ensemble, follower);
    settle(ensemble, client.ask('create', create('/e', CreateMode.ephemeral)));
    const { leader } = ensemble;
    const [high, low] = [Number(client.session >> 32n), Number(BigInt.asIntN(32, client.session))];
    settle(ensemble, client.ask('closeSession', undefined));
    ensemble.run(50);
    const send = (sessionHigh: number, sessionLow: number) => {
      leader!.turn((peer) => {
        const writer = new Writer();
        operations.create.request.write(writer, create('/late'));
        const session = { owner: 1, sessionHigh, sessionLow };
        const request = { cxid: 9, opCode: OpCode.create, identities: Identities.none, record: Buffer.from(writer.written()) };
        peer.server!.forwarded({ ...session, ...request, arrivedMs: leader!.now.elapsedMs }, leader!.now);
      });
      ensemble.run(50);
      return leader!.peer!.replica.tree.find('/late') !== 0;
    };
    expect(send(high, low)).toBe(false);
    // One that this leader would have created itself has ended as well.
    expect(send((leader!.sid << 24) | 1, 7)).toBe(false);
    // A local session of another server is accepted.
    expect(send(high, low + 1)).toBe(true);
  });
});

describe('A33: when the role of a server ends', () => {
  it('its local sessions end, and a global one lives on', () => {
    const ensemble = served('upgradable');
    const node = followerOf(ensemble);
    const [local, global] = [joined(ensemble, node), joined(ensemble, node)];
    settle(ensemble, global.ask('create', create('/e', CreateMode.ephemeral)));
    const leader = ensemble.leader!;
    leader.crash();
    ensemble.runUntil(() => ensemble.leader !== undefined && node.peer?.server !== undefined, 5000);
    leader.start();
    ensemble.runUntil(() => ensemble.isWhole, 5000);
    expect([local.isClosed, global.isClosed, localCountOf(node)]).toEqual([true, true, 0]);
    expect(rejoined(ensemble, node, local).timeoutMs).toBe(0);
    expect(rejoined(ensemble, node, global).timeoutMs).toBe(2000);
    ensemble.compare();
  });

  it('a session that was becoming global lives on exactly if its createSession was committed', () => {
    const outcomes = new Set<boolean>();
    for (let seed = 1; seed <= 12; seed++) {
      const ensemble = served('upgradable', 3, 0, seed);
      const node = ensemble.nodes.find((each) => each !== ensemble.leader)!;
      const client = joined(ensemble, node);
      client.ask('create', create('/e', CreateMode.ephemeral));
      ensemble.run(seed * 0.5);
      const leader = ensemble.leader!;
      leader.crash();
      ensemble.runUntil(() => ensemble.leader !== undefined, 5000);
      leader.start();
      ensemble.runUntil(() => ensemble.isWhole, 5000);
      const isKnown = ensemble.leader!.peer!.inspect.hasSession(client.session);
      outcomes.add(isKnown);
      if (!client.isClosed) client.break();
      expect(rejoined(ensemble, node, client).timeoutMs > 0).toBe(isKnown);
      if (!isKnown) expect(ensemble.leader!.peer!.inspect.ephemeralCount()).toBe(0);
      ensemble.compare();
    }
    expect(outcomes).toEqual(new Set([false, true]));
  });

  it('ids of local sessions do not return, even if the clock stands still', () => {
    const ids = new Set<SessionId>();
    for (let start = 0; start < 3; start++) {
      const ensemble = served('enabled', 1, 0, start + 1);
      for (let count = 0; count < 3; count++) ids.add(joined(ensemble, ensemble.nodes[0]!).session);
    }
    expect(ids.size).toBe(9);
  });
});
