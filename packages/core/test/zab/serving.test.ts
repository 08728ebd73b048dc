/**
 * What clients of an ensemble can rely on, at any of its servers.
 */
import { CreateMode, ErrorCode, EventType, PacketType } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { type Asked, EnsembleClient } from './ensemble-client.ts';
import { Ensemble, type Node } from './ensemble.ts';
import { create, delivered, joined, serve } from './ensemble-requests.ts';

/** Of an `Ensemble`. */
const tickTimeMs = 100;

function served(voters: number, observers = 0, seed = 1, counterMax = 0xffff_0000): Ensemble {
  const ensemble = new Ensemble(seed, voters, observers, 0);
  ensemble.counterMax = counterMax;
  serve(ensemble);
  return ensemble;
}

function followersOf(ensemble: Ensemble): Node[] {
  return ensemble.nodes.filter((node) => node !== ensemble.leader);
}

describe('any server of an ensemble', () => {
  it('C0-8: accepts a write, which has the same result everywhere', () => {
    const ensemble = served(3, 1);
    const clients = ensemble.nodes.map((node) => joined(ensemble, node));
    for (const [at, client] of clients.entries()) {
      expect(delivered(ensemble, client, 'create', create(`/n${at}`))?.err).toBe(ErrorCode.Ok);
      expect(delivered(ensemble, client, 'create', create(`/n${at}`))?.err).toBe(ErrorCode.NodeExists);
      expect(delivered(ensemble, client, 'delete', { path: '/nobody', version: -1 })?.err).toBe(ErrorCode.NoNode);
    }
    ensemble.run(50);
    for (const client of clients) {
      const answer = delivered(ensemble, client, 'getChildren', { path: '/', watch: false });
      expect((answer!.body as { children: string[] }).children.toSorted()).toEqual(['n0', 'n1', 'n2', 'n3', 'zookeeper']);
    }
    ensemble.compare();
  });

  it('answers a client in the order of its requests, forwarded writes and local reads', () => {
    const ensemble = served(3);
    const client = joined(ensemble, followersOf(ensemble)[0]!);
    const asked: Asked[] = [];
    for (let count = 0; count < 30; count++) {
      asked.push(client.ask('create', create(`/n${count}`)));
      asked.push(client.ask('exists', { path: `/n${count}`, watch: false }));
      if (count % 5 === 0) asked.push(client.ask('sync', { path: '/' }));
    }
    // `EnsembleClient` throws at a reply out of order.
    expect(ensemble.runUntil(() => asked.every(({ answer }) => answer !== undefined), 5000)).toBe(true);
    expect(asked.filter(({ answer }) => answer!.err !== ErrorCode.Ok)).toEqual([]);
  });

  it('sends a watch event before it shows the change', () => {
    const ensemble = served(3);
    const [one, two] = followersOf(ensemble).map((node) => joined(ensemble, node));
    delivered(ensemble, one!, 'exists', { path: '/a', watch: true });
    delivered(ensemble, two!, 'create', create('/a'));
    ensemble.runUntil(() => one!.events.length > 0, 1000);
    expect(one!.events).toMatchObject([{ type: EventType.nodeCreated, path: '/a' }]);
  });

  it('returns everything acknowledged before a sync to a read after it', () => {
    const ensemble = served(5);
    const [writer, reader] = followersOf(ensemble).map((node) => joined(ensemble, node));
    delivered(ensemble, writer!, 'create', create('/a'));
    for (let round = 0; round < 50; round++) {
      const version = (
        delivered(ensemble, writer!, 'setData', { path: '/a', data: null, version: -1 })!.body as { stat: { version: number } }
      ).stat.version;
      const sync = reader!.ask('sync', { path: '/a' });
      const read = reader!.ask('exists', { path: '/a', watch: false });
      ensemble.runUntil(() => read.answer !== undefined, 1000);
      expect(sync.answer?.err).toBe(ErrorCode.Ok);
      expect((read.answer!.body as { stat: { version: number } }).stat.version).toBe(version);
    }
  });

  it('C4-13: leader and learners send each other something every half tick without requests of clients', () => {
    const ensemble = served(3, 1);
    const leader = ensemble.leader!;
    ensemble.run(500);
    const arrivals = new Map<string, number[]>();
    ensemble.arrived = (from, to, type) => {
      expect(type).toBe(PacketType.PING);
      const times = arrivals.get(`${from}>${to}`) ?? [];
      arrivals.set(`${from}>${to}`, [...times, ensemble.nowMs]);
    };
    ensemble.run(20 * tickTimeMs);
    const pairs = followersOf(ensemble).flatMap(({ sid }) => [`${leader.sid}>${sid}`, `${sid}>${leader.sid}`]);
    expect([...arrivals.keys()].sort()).toEqual(pairs.sort());
    for (const times of arrivals.values()) {
      const gaps = times.slice(1).map((time, at) => time - times[at]!);
      // Half a tick, and the delay of the network.
      expect(Math.max(...gaps)).toBeLessThan(tickTimeMs / 2 + 10);
      expect(times.length).toBeGreaterThanOrEqual(39);
    }
    expect(ensemble.leader).toBe(leader);
  });

  it('C4-13: a follower gives up a leader whose packets do not arrive after syncLimit, though parts of its own are sent meanwhile', () => {
    const ensemble = served(3);
    const leader = ensemble.leader!;
    const follower = followersOf(ensemble)[0]!;
    const [channel] = follower.ends.keys();
    ensemble.run(500);
    ensemble.muted.add(`${leader.sid}>${follower.sid}`);
    for (let ms = 0; ms < 6 * tickTimeMs; ms += tickTimeMs / 2) {
      follower.turn((peer) => peer.partSent(channel!, follower.now));
      ensemble.run(tickTimeMs / 2);
    }
    expect(ensemble.notes.filter((note) => note.includes('nothing was received from the leader'))).toHaveLength(1);
  });

  it.each([
    [
      'what the leader sends',
      (leader: number, follower: number) => `${leader}>${follower}`,
      /closes \d+: nothing was received from the leader for ([\d.]+) ms/,
    ],
    [
      'what the learner sends',
      (leader: number, follower: number) => `${follower}>${leader}`,
      /closes \d+: nothing was received from the learner for ([\d.]+) ms/,
    ],
  ])('C4-13: if %s does not arrive, the receiver gives up the sender after syncLimit, and not before', (_what, direction, given) => {
    const ensemble = served(3);
    const leader = ensemble.leader!;
    const [follower] = followersOf(ensemble);
    const [reader, other] = [follower!.sid, leader.sid];
    const isGivenUp = () => ensemble.notes.some((note) => given.test(note));
    ensemble.run(500);
    expect(isGivenUp()).toBe(false);
    ensemble.muted.add(direction(other, reader));
    const limitMs = 5 * tickTimeMs;
    ensemble.run(limitMs - tickTimeMs);
    expect(isGivenUp()).toBe(false);
    expect(ensemble.runUntil(isGivenUp, 2 * tickTimeMs)).toBe(true);
    const silentMs = Number(given.exec(ensemble.notes.find((note) => given.test(note))!)![1]);
    expect(silentMs).toBeGreaterThan(limitMs);
    expect(silentMs).toBeLessThan(limitMs + tickTimeMs);
    // It reconnects as soon as its messages arrive, and the others have not noticed anything.
    ensemble.muted.clear();
    expect(ensemble.runUntil(() => ensemble.isWhole, 5000)).toBe(true);
    expect(ensemble.leader).toBe(leader);
  });

  it('C0-12: shows nothing that no quorum has: a read during a stalled write returns the old value', () => {
    const ensemble = served(3);
    const leader = ensemble.leader!;
    const [client, other] = [joined(ensemble, leader), joined(ensemble, leader)];
    delivered(ensemble, client, 'create', create('/a', CreateMode.persistent, 'old'));
    for (const node of followersOf(ensemble)) ensemble.cut(leader, node);
    const write = client.ask('setData', { path: '/a', data: Buffer.from('new'), version: -1 });
    // The log of the leader has it by now, and no other server will.
    ensemble.run(50);
    const reads = Array.from({ length: 5 }, () => {
      const read = other.ask('getData', { path: '/a', watch: false });
      ensemble.run(2);
      return read;
    });
    expect(write.answer).toBeUndefined();
    expect(reads.map(({ answer }) => String((answer!.body as { data: Buffer }).data))).toEqual(Array(5).fill('old'));
  });

  it('C0-12: shows nothing uncommitted: a follower that has logged a write without its commit returns the old value', () => {
    const ensemble = served(3);
    const leader = ensemble.leader!;
    const [follower, other] = followersOf(ensemble);
    const [writer, reader] = [joined(ensemble, leader), joined(ensemble, follower!)];
    const elsewhere = joined(ensemble, other!);
    delivered(ensemble, writer, 'create', create('/a', CreateMode.persistent, 'old'));
    ensemble.run(50);
    const valueAt = (client: EnsembleClient) =>
      String((delivered(ensemble, client, 'getData', { path: '/a', watch: false })!.body as { data: Buffer }).data);
    expect(valueAt(reader)).toBe('old');
    ensemble.endsBefore = (from, to, type) => from === leader.sid && to === follower!.sid && type === PacketType.COMMIT;
    const { zxid } = delivered(ensemble, writer, 'setData', { path: '/a', data: Buffer.from('new'), version: -1 })!;
    ensemble.run(50);
    // It has the write on its disk, and has acknowledged it.
    const { log, durable } = follower!.folder;
    expect(log.slice(0, durable).map((entry) => entry.zxid)).toContain(zxid);
    expect(valueAt(reader)).toBe('old');
    // Servers that have received the commit show the new value.
    expect([valueAt(writer), valueAt(elsewhere)]).toEqual(['new', 'new']);
    expect(follower!.peer!.server).toBeDefined();
  });

  it("C0-13: a read after a sync never returns an old state, though its server and that server's leader are cut off", () => {
    let times = 0;
    for (let seed = 1; seed <= 20; seed++) {
      const ensemble = served(5, 0, seed);
      const leader = ensemble.leader!;
      const [left, ...others] = followersOf(ensemble);
      const there = joined(ensemble, others[0]!);
      delivered(ensemble, there, 'create', create('/a'));
      const here = joined(ensemble, left!);
      for (const old of [leader, left!]) for (const node of others) ensemble.cut(old, node);
      // They have another leader before the old one notices, which receives no close of any stream.
      for (const node of others) {
        for (const end of node.ends.values()) end.isOpen = false;
        node.crash();
        node.start();
      }
      let together = 0;
      let next: EnsembleClient | undefined;
      let version = 0;
      const reads: { readonly asked: Asked; readonly atLeast: number }[] = [];
      for (let ms = 0; ms < 1500; ms += 20) {
        ensemble.run(20);
        const leads = others.find(({ peer }) => peer!.role === 'leading' && peer!.server !== undefined);
        if (leads !== undefined && next === undefined) next = joinedHere(ensemble, leads);
        if (next?.isAnswered === true && !next.isClosed && next.asked.every(({ answer }) => answer !== undefined)) {
          const last = next.asked.at(-1)?.answer;
          if (last?.err === 0) version = (last.body as { stat: { version: number } }).stat.version;
          next.ask('setData', { path: '/a', data: null, version: -1 });
        }
        if (here.isClosed) break;
        if (version > 0) together++;
        here.ask('sync', { path: '/' });
        reads.push({ asked: here.ask('exists', { path: '/a', watch: false }), atLeast: version });
      }
      for (const { asked, atLeast } of reads) {
        if (asked.answer !== undefined)
          expect((asked.answer.body as { stat: { version: number } }).stat.version).toBeGreaterThanOrEqual(atLeast);
      }
      times += Math.min(1, together);
    }
    expect(times).toBeGreaterThan(10);
  });

  it('a leader that is cut off does not answer a sync', () => {
    const ensemble = served(3);
    const leader = ensemble.leader!;
    const client = joined(ensemble, leader);
    for (const node of followersOf(ensemble)) ensemble.cut(leader, node);
    const sync = client.ask('sync', { path: '/' });
    ensemble.run(5000);
    expect(sync.answer).toBeUndefined();
    expect(client.isClosed).toBe(true);
  });
});

/** A client whose session needs no quorum: it existed before. */
function joinedHere(ensemble: Ensemble, node: Node): EnsembleClient | undefined {
  const client = new EnsembleClient().connect(node);
  ensemble.run(20);
  return client.isAnswered ? client : undefined;
}

describe('a session in an ensemble', () => {
  it('continues on another server, with its ephemerals', () => {
    const ensemble = served(3);
    const [one, two] = followersOf(ensemble);
    const client = joined(ensemble, one!);
    const { session } = client;
    delivered(ensemble, client, 'create', create('/e', CreateMode.ephemeral));
    client.break();
    client.connect(two!);
    ensemble.runUntil(() => client.isAnswered, 1000);
    expect([client.session, client.timeoutMs]).toEqual([session, 2000]);
    expect(delivered(ensemble, client, 'exists', { path: '/e', watch: false })?.err).toBe(ErrorCode.Ok);
    expect(delivered(ensemble, client, 'setData', { path: '/e', data: null, version: 0 })?.err).toBe(ErrorCode.Ok);
    // And to the leader, and back.
    for (const node of [ensemble.leader!, one!]) {
      client.break();
      client.connect(node);
      ensemble.runUntil(() => client.isAnswered, 1000);
      expect(delivered(ensemble, client, 'setData', { path: '/e', data: null, version: -1 })?.err).toBe(ErrorCode.Ok);
    }
  });

  it('C2-21: is disconnected from the server that it has left, as soon as a late request arrives there', () => {
    for (const [from, to] of [
      [0, 1],
      [0, 2],
      [2, 0],
    ] as const) {
      const ensemble = served(3);
      const nodes = [...followersOf(ensemble), ensemble.leader!];
      const client = joined(ensemble, nodes[from]!);
      const late = new EnsembleClient();
      Object.assign(late, { session: client.session, password: client.password });
      late.connect(nodes[to]!);
      ensemble.runUntil(() => late.isAnswered, 1000);
      delivered(ensemble, late, 'create', create('/new'));
      if (!client.isClosed) {
        const write = client.ask('create', create('/late'));
        ensemble.run(300);
        expect(write.answer).toBeUndefined();
      }
      expect(client.isClosed).toBe(true);
      expect(delivered(ensemble, late, 'exists', { path: '/late', watch: false })?.err).toBe(ErrorCode.NoNode);
    }
  });

  it('used by two processes at two servers with the same xids sends no process a reply to a request of the other', () => {
    for (const [seed, observers] of [1, 2, 3, 4, 5, 6, 7, 8].flatMap((each) => [[each, 0] as const, [each, 2] as const])) {
      for (const [from, to] of [
        [0, 1],
        [0, 2],
        [1, 0],
      ] as const) {
        const ensemble = served(3, observers, seed);
        const others = ensemble.nodes.filter((node) => node !== ensemble.leader);
        // The last ones are observers, if there are any.
        const nodes = [others.at(-1)!, others.at(-2)!, ensemble.leader!];
        const earlier = joined(ensemble, nodes[from]!);
        const later = Object.assign(new EnsembleClient(), { session: earlier.session, password: earlier.password }).connect(nodes[to]!);
        ensemble.runUntil(() => later.isAnswered, 1000, 1);
        const asked = later.ask('create', create('/later'));
        const before = earlier.isClosed ? undefined : earlier.ask('create', create('/earlier'));
        expect(before?.xid ?? 1).toBe(asked.xid);
        ensemble.run(300);
        expect([asked.answer?.err, asked.answer?.body]).toEqual([ErrorCode.Ok, { path: '/later' }]);
        expect([undefined, ErrorCode.SessionMoved]).toContain(before?.answer?.err);
        expect(delivered(ensemble, later, 'exists', { path: '/earlier', watch: false })?.err).toBe(ErrorCode.NoNode);
      }
    }
  });

  it('is resumed over the connection that asked last: an older one that waits for the leader is closed', () => {
    const ensemble = served(3);
    const [here] = followersOf(ensemble);
    const client = joined(ensemble, here!);
    const goesOn = () => Object.assign(new EnsembleClient(), { session: client.session, password: client.password }).connect(here!);
    const [first, second] = [goesOn(), goesOn()];
    ensemble.run(300);
    expect([client.isClosed, first.isClosed, second.isClosed, second.isAnswered]).toEqual([true, true, false, true]);
  });

  it('has no write of an old connection performed after one of a newer, though it has returned to the server where the old one waits', () => {
    const ensemble = new Ensemble(1, 3, 0, 0);
    ensemble.throttle = { requestThrottleLimit: 1, requestThrottleDropStale: false };
    serve(ensemble);
    const [here] = followersOf(ensemble);
    const [busy, client] = [joined(ensemble, here!), joined(ensemble, here!)];
    delivered(ensemble, client, 'create', create('/a'));
    const ahead = Array.from({ length: 100 }, () => busy.ask('setData', { path: '/', data: null, version: -1 }));
    client.ask('setData', { path: '/a', data: Buffer.from('old'), version: -1 });
    ensemble.run(1);
    client.break();
    const goesOn = (node: Node) =>
      Object.assign(new EnsembleClient(), { session: client.session, password: client.password }).connect(node);
    const there = goesOn(ensemble.leader!);
    ensemble.runUntil(() => there.isAnswered, 1000);
    expect(delivered(ensemble, there, 'setData', { path: '/a', data: Buffer.from('new'), version: -1 })?.err).toBe(ErrorCode.Ok);
    there.break();
    const back = goesOn(here!);
    ensemble.run(ensemble.clientMs);
    // The leader is being asked about the session while the waiting request gets its turn.
    expect([back.isAnswered, back.isClosed, ahead.at(-1)!.answer]).toEqual([false, false, undefined]);
    busy.break();
    ensemble.run(300);
    expect(back.isAnswered).toBe(true);
    const read = delivered(ensemble, back, 'getData', { path: '/a', watch: false });
    expect(String((read!.body as { data: Buffer }).data)).toBe('new');
  });

  it('has no write of an old connection performed that the leader holds, though it has moved and returned to the server that forwarded it', () => {
    const ensemble = new Ensemble(1, 3, 0, 0);
    ensemble.throttle = { requestThrottleLimit: 1, requestThrottleDropStale: false };
    serve(ensemble);
    const leader = ensemble.leader!;
    const [here, there] = followersOf(ensemble);
    const [busy, client] = [joined(ensemble, leader), joined(ensemble, here!)];
    delivered(ensemble, client, 'create', create('/a', CreateMode.persistent, 'first'));
    const ahead = Array.from({ length: 100 }, () => busy.ask('setData', { path: '/', data: null, version: -1 }));
    ensemble.run(2);
    client.ask('setData', { path: '/a', data: Buffer.from('old'), version: -1 });
    ensemble.run(5);
    client.break();
    const goesOn = (node: Node) => {
      const next = Object.assign(new EnsembleClient(), { session: client.session, password: client.password }).connect(node);
      ensemble.runUntil(() => next.isAnswered, 1000);
      return next;
    };
    goesOn(there!).break();
    const back = goesOn(here!);
    // The leader still has much work before the request of the old connection, whose owner is the
    // session's owner again.
    expect([back.isAnswered, back.isClosed, ahead.at(-1)!.answer]).toEqual([true, false, undefined]);
    expect(ensemble.runUntil(() => ahead.at(-1)!.answer !== undefined, 20_000)).toBe(true);
    ensemble.run(300);
    const read = delivered(ensemble, back, 'getData', { path: '/a', watch: false });
    expect(String((read!.body as { data: Buffer }).data)).toBe('first');
    expect(delivered(ensemble, back, 'setData', { path: '/a', data: Buffer.from('new'), version: 0 })?.err).toBe(ErrorCode.Ok);
  });

  it('gets no reply to a request of an older connection that the leader held, at any server, though the xids are equal', () => {
    for (const goesOnHere of [true, false]) {
      const ensemble = new Ensemble(1, 3, 0, 0);
      ensemble.throttle = { requestThrottleLimit: 1, requestThrottleDropStale: false };
      serve(ensemble);
      const leader = ensemble.leader!;
      const [here, there] = followersOf(ensemble);
      const [busy, client] = [joined(ensemble, leader), joined(ensemble, here!)];
      delivered(ensemble, client, 'create', create('/a', CreateMode.persistent, 'first'));
      const ahead = Array.from({ length: 100 }, () => busy.ask('setData', { path: '/', data: null, version: -1 }));
      ensemble.run(2);
      const old = client.ask('setData', { path: '/a', data: Buffer.from('old'), version: -1 });
      ensemble.run(5);
      const next = Object.assign(new EnsembleClient(), { session: client.session, password: client.password });
      next.connect(goesOnHere ? here! : there!);
      ensemble.runUntil(() => next.isAnswered, 1000);
      next.ask('exists', { path: '/a', watch: false });
      const refused = next.ask('setData', { path: '/a', data: Buffer.from('new'), version: 7 });
      expect([refused.xid, ahead.at(-1)!.answer]).toEqual([old.xid, undefined]);
      expect(ensemble.runUntil(() => refused.answer !== undefined && ahead.at(-1)!.answer !== undefined, 20_000)).toBe(true);
      ensemble.run(300);
      expect([refused.answer!.err, old.answer, client.isClosed]).toEqual([ErrorCode.BadVersion, undefined, true]);
    }
  });

  it('ends also at the server that it has left, though its old connection has requested that too', () => {
    for (const [from, to] of [
      [0, 1],
      [0, 2],
      [2, 0],
    ] as const) {
      const ensemble = served(3);
      const nodes = [...followersOf(ensemble), ensemble.leader!];
      const client = joined(ensemble, nodes[from]!);
      for (const path of ['/a', '/b', '/c']) delivered(ensemble, client, 'create', create(path));
      const late = new EnsembleClient();
      Object.assign(late, { session: client.session, password: client.password });
      late.connect(nodes[to]!);
      ensemble.runUntil(() => late.isAnswered, 1000);
      const close = late.ask('closeSession', undefined);
      if (!client.isClosed) client.ask('closeSession', undefined);
      ensemble.run(300);
      expect(close.answer?.err).toBe(ErrorCode.Ok);
      expect([client.isClosed, late.isClosed]).toEqual([true, true]);
    }
  });

  it('is refused without its password, and after its end', () => {
    const ensemble = served(3);
    for (const node of ensemble.nodes) {
      const client = joined(ensemble, node);
      const thief = new EnsembleClient();
      thief.session = client.session;
      thief.connect(node);
      ensemble.run(50);
      expect(thief.timeoutMs).toBe(0);
      client.connect(node);
      ensemble.runUntil(() => client.isAnswered, 500);
      expect(client.timeoutMs).toBe(2000);
      delivered(ensemble, client, 'closeSession', undefined);
      for (const other of ensemble.nodes) {
        client.connect(other);
        ensemble.runUntil(() => client.isAnswered, 500);
        expect(client.timeoutMs).toBe(0);
      }
    }
  });

  it('ends with a closeSession at any server, and its ephemerals are deleted everywhere', () => {
    const ensemble = served(3, 1);
    for (const node of ensemble.nodes) {
      const client = joined(ensemble, node);
      delivered(ensemble, client, 'create', create('/e', CreateMode.ephemeral));
      expect(delivered(ensemble, client, 'closeSession', undefined)?.err).toBe(ErrorCode.Ok);
      ensemble.run(50);
      expect(ensemble.nodes.map(({ peer }) => peer!.replica.tree.ephemeralCount)).toEqual([0, 0, 0, 0]);
      expect(ensemble.nodes.map(({ peer }) => peer!.replica.sessions.count)).toEqual([0, 0, 0, 0]);
    }
  });

  it('stays open while any server receives pings of its client, and expires after the last one', () => {
    const ensemble = served(3, 1);
    const living = ensemble.nodes.map((node) => joined(ensemble, node, 600));
    const silent = ensemble.nodes.map((node) => joined(ensemble, node, 600));
    for (const [at, client] of silent.entries()) delivered(ensemble, client, 'create', create(`/e${at}`, CreateMode.ephemeral));
    const lastHeardMs = ensemble.nowMs;
    for (let round = 0; round < 20; round++) {
      for (const client of living) client.ask('ping', undefined);
      ensemble.run(200);
      const passed = ensemble.nowMs - lastHeardMs;
      const left = ensemble.leader!.peer!.replica.tree.ephemeralCount;
      // A learner reports sessions with signs of life to its leader every half tick.
      if (passed < 600) expect(left).toBe(4);
      if (passed > 600 + 4 * 100) expect(left).toBe(0);
    }
    expect(living.map(({ isClosed }) => isClosed)).toEqual([false, false, false, false]);
    expect(silent.map(({ isClosed }) => isClosed)).toEqual([true, true, true, true]);
  });

  it('C0-16: survives the loss of its leader with a new full timeout, and no acknowledged write is lost', () => {
    const ensemble = served(3);
    const [one] = followersOf(ensemble);
    const client = joined(ensemble, one!, 3000);
    for (let count = 0; count < 20; count++) delivered(ensemble, client, 'create', create(`/n${count}`, CreateMode.ephemeral));
    ensemble.leader!.crash();
    ensemble.runUntil(() => client.isClosed, 3000);
    ensemble.runUntil(() => one!.peer!.server !== undefined, 5000);
    ensemble.run(2500);
    client.connect(one!, 3000);
    ensemble.runUntil(() => client.isAnswered, 1000);
    expect(client.timeoutMs).toBe(3000);
    for (let count = 0; count < 20; count++) {
      expect(delivered(ensemble, client, 'exists', { path: `/n${count}`, watch: false })?.err).toBe(ErrorCode.Ok);
    }
  });

  it('is expired by an operator at the server to which it is connected', () => {
    const ensemble = served(3);
    for (const node of ensemble.nodes) {
      const client = joined(ensemble, node);
      expect(node.peer!.server!.expireSession(client.session, node.now)).toBe(true);
      node.turn((peer) => peer.wake(node.now));
      expect(ensemble.runUntil(() => client.isClosed, 1000)).toBe(true);
    }
  });

  it('is expired by an operator at any other server as well, once', () => {
    const ensemble = served(3, 1);
    for (const asked of ensemble.nodes) {
      for (const node of ensemble.nodes.filter((other) => other !== asked)) {
        const client = joined(ensemble, node);
        ensemble.runUntil(() => asked.peer!.inspect.hasSession(client.session), 1000);
        const expire = () => asked.peer!.server!.expireSession(client.session, asked.now);
        expect([expire(), expire()]).toEqual([true, false]);
        asked.turn((peer) => peer.wake(asked.now));
        const isGone = () => client.isClosed && ensemble.nodes.every(({ peer }) => !peer!.inspect.hasSession(client.session));
        expect(ensemble.runUntil(isGone, 1000)).toBe(true);
        expect(expire()).toBe(false);
      }
    }
    ensemble.compare();
  });
});

describe('a quorum', () => {
  it('C0-11: of three in five servers acknowledges an update; with two, no update is acknowledged and the leader gives up', () => {
    const ensemble = served(5);
    const leader = ensemble.leader!;
    const followers = followersOf(ensemble);
    const client = joined(ensemble, leader);
    for (const node of followers.slice(0, 2)) node.crash();
    expect(delivered(ensemble, client, 'create', create('/three'))?.err).toBe(ErrorCode.Ok);
    followers[2]!.crash();
    const write = client.ask('create', create('/two'));
    ensemble.run(300);
    expect(write.answer).toBeUndefined();
    expect(ensemble.runUntil(() => leader.peer!.role !== 'leading', 1000)).toBe(true);
    expect(client.isClosed).toBe(true);
  });

  it('C0-14: eleven servers serve without five of them, C0-15: not without six, and again when one returns', () => {
    const ensemble = served(11);
    const down = followersOf(ensemble).slice(0, 5);
    for (const node of down) node.crash();
    expect(delivered(ensemble, joined(ensemble, ensemble.leader!), 'create', create('/five'))?.err).toBe(ErrorCode.Ok);
    const sixth = ensemble.nodes.find((node) => !node.isDown && node !== ensemble.leader)!;
    sixth.crash();
    ensemble.run(3000);
    expect(ensemble.nodes.filter(({ peer }) => peer?.server !== undefined)).toEqual([]);
    sixth.start();
    expect(ensemble.runUntil(() => ensemble.leader !== undefined, 5000)).toBe(true);
    const client = joined(ensemble, ensemble.leader!);
    expect(delivered(ensemble, client, 'exists', { path: '/five', watch: false })?.err).toBe(ErrorCode.Ok);
  });

  it('C4-3: of one server is enough, since it follows itself', () => {
    const ensemble = served(1);
    expect(delivered(ensemble, joined(ensemble, ensemble.leader!), 'create', create('/alone'))?.err).toBe(ErrorCode.Ok);
  });

  it('C4-6: continues undisturbed when one of its servers returns', () => {
    const ensemble = served(3);
    const leader = ensemble.leader!;
    const [one] = followersOf(ensemble);
    one!.crash();
    const client = joined(ensemble, leader);
    delivered(ensemble, client, 'create', create('/while-away'));
    one!.start();
    expect(ensemble.runUntil(() => ensemble.isWhole, 3000)).toBe(true);
    expect([ensemble.leader, ensemble.leaders.size, client.isClosed]).toEqual([leader, 1, false]);
    ensemble.run(50);
    ensemble.compare();
  });

  it('A54: does not count observers', () => {
    const ensemble = served(3, 2);
    const voters = followersOf(ensemble).filter(({ sid }) => sid <= 3);
    const client = joined(ensemble, ensemble.leader!);
    for (const node of voters) node.crash();
    const write = client.ask('create', create('/no'));
    ensemble.run(1500);
    expect([write.answer, client.isClosed]).toEqual([undefined, true]);
  });
});

it('E27: an election leaves the tree of each server in memory, and nothing is loaded again', () => {
  const ensemble = served(3);
  delivered(ensemble, joined(ensemble, ensemble.leader!), 'create', create('/kept'));
  ensemble.run(50);
  const left = followersOf(ensemble);
  const replicas = left.map(({ peer }) => peer!.replica);
  ensemble.leader!.crash();
  expect(ensemble.runUntil(() => left.every(({ peer }) => peer!.server === undefined), 5000)).toBe(true);
  expect(ensemble.runUntil(() => left.every(({ peer }) => peer!.server !== undefined), 5000)).toBe(true);
  for (const [at, { peer }] of left.entries()) expect(peer!.replica).toBe(replicas[at]);
  expect(delivered(ensemble, joined(ensemble, left[0]!), 'exists', { path: '/kept', watch: false })?.err).toBe(ErrorCode.Ok);
});

describe('the end of an epoch', () => {
  it('E2: is reached before its zxids are exhausted: the next epoch begins, and nothing acknowledged is lost', () => {
    const ensemble = served(3, 0, 1, 8);
    const leader = ensemble.leader!;
    const { epoch } = leader.peer!;
    const client = joined(ensemble, leader, 20_000);
    const acknowledged = [];
    for (let count = 0; count < 10 && !client.isClosed; count++) {
      if (delivered(ensemble, client, 'create', create(`/n${count}`))?.err === ErrorCode.Ok) acknowledged.push(`/n${count}`);
    }
    expect(client.isClosed).toBe(true);
    expect(ensemble.runUntil(() => ensemble.isWhole && ensemble.leader!.peer!.epoch! > epoch!, 5000)).toBe(true);
    const other = joined(ensemble, ensemble.leader!);
    expect(acknowledged.length).toBeGreaterThan(0);
    for (const path of acknowledged) expect(delivered(ensemble, other, 'exists', { path, watch: false })?.err).toBe(ErrorCode.Ok);
  });

  it('drops nothing that was proposed in the same turn after its last zxid, and leaves no follower without it', () => {
    const ensemble = served(3, 0, 1, 8);
    const leader = ensemble.leader!;
    const { epoch } = leader.peer!;
    const client = joined(ensemble, leader, 20_000);
    leader.turn(() => {
      for (let count = 0; count < 12; count++) client.ask('create', create(`/n${count}`));
    });
    expect(ensemble.runUntil(() => ensemble.isWhole && ensemble.leader!.peer!.epoch! > epoch!, 5000)).toBe(true);
    delivered(ensemble, joined(ensemble, ensemble.leader!), 'create', create('/behind'));
    ensemble.run(50);
    ensemble.compare();
  });
});
