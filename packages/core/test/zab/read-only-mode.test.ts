/**
 * Read-only mode: what clients can rely on at a server that has had no leader for a while. Compared
 * with ZooKeeper 3.9.5 by verification/interop (`read-only`).
 */
import {
  AddWatchMode,
  CreateMode,
  ErrorCode,
  EventType,
  openAcl,
  Reader,
  readReplyHeader,
  sessionHigh,
  sessionLow,
  sessionPassword,
} from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { silentObserver } from '../../src/index.ts';
import { EnsembleClient } from './ensemble-client.ts';
import type { LocalSessionMode } from '../../src/options.ts';
import { Ensemble, type Node } from './ensemble.ts';
import { delivered, serve } from './ensemble-requests.ts';

const delayMs = 2000;

interface Settings {
  readonly readOnlyMode?: boolean;
  readonly localSessions?: LocalSessionMode;
  readonly reconfigEnabled?: boolean;
}

function served(settings: Settings = {}): Ensemble {
  const ensemble = new Ensemble(1, 3, 0, 0);
  Object.assign(ensemble, { readOnlyMode: true, localSessions: 'upgradable', ...settings });
  for (const { sid } of ensemble.nodes) ensemble.keeperServers.add(sid);
  serve(ensemble);
  return ensemble;
}

function until(ensemble: Ensemble, condition: () => boolean): void {
  if (!ensemble.runUntil(condition, 10_000)) throw new Error(`it did not happen: ${ensemble.describe()}`);
}

function create(path: string, flags: number = CreateMode.persistent) {
  return { path, data: Buffer.from('data'), acl: openAcl, flags };
}

interface ClientSettings {
  /** Whether it accepts a read-only server; an old client does not know of these. */
  readonly asks?: boolean | 'old';
  readonly session?: bigint;
  readonly lastZxid?: number;
  readonly timeOut?: number;
}

/** A client that accepts a read-only server. */
function readOnlyClient(node: Node, settings: ClientSettings = {}): EnsembleClient {
  const { asks = true, session = 0n, lastZxid = 0, timeOut = 2000 } = settings;
  const client = new EnsembleClient();
  Object.assign(client, { readOnly: asks === 'old' ? undefined : asks, session, lastZxid });
  if (session !== 0n) client.password = sessionPassword(sessionHigh(session), sessionLow(session));
  client.connect(node, timeOut);
  until(node.ensemble, () => client.isAnswered || client.isClosed);
  return client;
}

const roleOf = ({ peer }: Node) => peer!.inspect.role();

/** Stops the others, and waits for the read-only mode of the one that is left. */
function leftAlone(ensemble: Ensemble, node = ensemble.nodes[0]!): Node {
  for (const other of ensemble.nodes) if (other !== node) other.crash();
  until(ensemble, () => roleOf(node) === 'read-only');
  return node;
}

/** An ensemble with /a and /a/b, and the one server that is left of it, in read-only mode. */
function partitioned(settings: Settings = {}): { ensemble: Ensemble; node: Node } {
  const ensemble = served(settings);
  const node = ensemble.nodes[0]!;
  const client = new EnsembleClient().connect(node);
  until(ensemble, () => client.isAnswered);
  delivered(ensemble, client, 'create', create('/a'));
  delivered(ensemble, client, 'create', create('/a/b'));
  return { ensemble, node: leftAlone(ensemble, node) };
}

describe('A34: read-only mode', () => {
  it('A34: begins when a server has had no leader for 2 seconds, and only if it is switched on', () => {
    for (const readOnlyMode of [true, false]) {
      const ensemble = served({ readOnlyMode });
      const node = ensemble.nodes[0]!;
      for (const other of ensemble.nodes) if (other !== node) other.crash();
      until(ensemble, () => roleOf(node) === 'looking');
      const sinceMs = ensemble.nowMs;
      ensemble.run(delayMs - 10);
      expect(roleOf(node)).toBe('looking');
      ensemble.run(20);
      expect(roleOf(node)).toBe(readOnlyMode ? 'read-only' : 'looking');
      expect(ensemble.nowMs - sinceMs).toBeLessThan(delayMs + 20);
      expect(node.peer!.status()).toMatchObject({ state: 'looking', phase: 'election', leader: undefined });
    }
  });

  it('A34, E10: begins also at a server that finds no leader when it starts, with everything that was in its log', () => {
    const { ensemble, node } = partitioned();
    ensemble.run(100);
    node.crash();
    node.start();
    expect(roleOf(node)).toBe('looking');
    until(ensemble, () => roleOf(node) === 'read-only');
    expect(delivered(ensemble, readOnlyClient(node), 'exists', { path: '/a/b', watch: false })?.err).toBe(ErrorCode.Ok);
  });

  it('A34: serves the state of the log to a client that asked for it, and says so in the handshake', () => {
    const { ensemble, node } = partitioned();
    const client = readOnlyClient(node);
    expect([client.isServerReadOnly, client.timeoutMs]).toEqual([true, 2000]);
    const { lastZxid } = node.peer!.replica;
    expect(delivered(ensemble, client, 'getData', { path: '/a', watch: false })).toMatchObject({ err: ErrorCode.Ok, zxid: lastZxid });
    expect(delivered(ensemble, client, 'getChildren2', { path: '/a', watch: false })?.body).toMatchObject({ children: ['b'] });
    expect(delivered(ensemble, client, 'ping', undefined)?.err).toBe(ErrorCode.Ok);
  });

  it('A34: closes the connection of a client that did not ask for it, also of one too old to know of it', () => {
    const { node } = partitioned();
    for (const asks of [false, 'old' as const]) {
      const client = readOnlyClient(node, { asks });
      expect([client.isAnswered, client.isClosed]).toEqual([false, true]);
    }
  });

  it('A34: closes the connection of a client that has seen a later zxid', () => {
    const { node } = partitioned();
    const client = readOnlyClient(node, { lastZxid: node.peer!.replica.lastZxid + 1 });
    expect([client.isAnswered, client.isClosed]).toEqual([false, true]);
  });

  it('A34, P36: refuses every write, sync and multi with NotReadOnly, without a body, and changes nothing', () => {
    const { ensemble, node } = partitioned();
    const client = readOnlyClient(node);
    const { lastZxid } = node.peer!.replica;
    const logged = node.folder.log.length;
    const version = -1;
    const writes = [
      client.ask('create', create('/x')),
      client.ask('create', create('/e', CreateMode.ephemeral)),
      client.ask('create2', create('/x')),
      client.ask('createIfNotExists', create('/x')),
      client.ask('tryRemove', { path: '/a/b', version }),
      client.ask('removeRecursive', { path: '/a', limit: 10 }),
      client.ask('createContainer', create('/x', CreateMode.container)),
      client.ask('createTTL', { ...create('/x', CreateMode.persistentWithTtl), ttl: 1000 }),
      client.ask('delete', { path: '/a/b', version }),
      client.ask('deleteContainer', { path: '/a/b' }),
      client.ask('setData', { path: '/a', data: null, version }),
      client.ask('setACL', { path: '/a', acl: openAcl, version }),
      client.ask('multi', { ops: [{ kind: 'check', path: '/a', version }] }),
      client.ask('multi', { ops: [] }),
      client.ask('reconfig', { joiningServers: null, leavingServers: '3', newMembers: null, curConfigId: -1 }),
      client.ask('sync', { path: '/' }),
    ];
    until(ensemble, () => writes.every(({ answer }) => answer !== undefined));
    for (const { answer } of writes) expect(answer).toEqual({ err: ErrorCode.NotReadOnly, zxid: lastZxid, body: undefined });
    expect([node.folder.log.length, node.peer!.replica.lastZxid]).toEqual([logged, lastZxid]);
    expect(delivered(ensemble, client, 'exists', { path: '/x', watch: false })?.err).toBe(ErrorCode.NoNode);
  });

  it('A34: answers all other requests as any server', () => {
    const { ensemble, node } = partitioned();
    const client = readOnlyClient(node);
    const path = '/a';
    const answers = [
      delivered(ensemble, client, 'getACL', { path }),
      delivered(ensemble, client, 'getAllChildrenNumber', { path }),
      delivered(ensemble, client, 'getEphemerals', { prefixPath: '/' }),
      delivered(ensemble, client, 'getChildren', { path, watch: true }),
      delivered(ensemble, client, 'multiRead', { ops: [{ kind: 'getData', path, watch: false }] }),
      delivered(ensemble, client, 'addWatch', { path, mode: AddWatchMode.persistentRecursive }),
      delivered(ensemble, client, 'checkWatches', { path, type: 1 }),
      delivered(ensemble, client, 'removeWatches', { path, type: 1 }),
      delivered(ensemble, client, 'setWatches', { relativeZxid: 0, dataWatches: [path], existWatches: [], childWatches: [] }),
      delivered(ensemble, client, 'whoAmI', undefined),
      delivered(ensemble, client, 'auth', { type: 0, scheme: 'digest', auth: Buffer.from('me:secret') }),
    ];
    expect(answers.map((answer) => answer?.err)).toEqual(answers.map(() => ErrorCode.Ok));
    expect(client.events).toMatchObject([{ type: EventType.nodeDataChanged, path, zxid: -1 }]);
    expect(delivered(ensemble, client, 'exists', { path: '/none', watch: false })?.err).toBe(ErrorCode.NoNode);
  });

  it('A34: closes the connection after an operation that it does not know, a check outside a multi among them', () => {
    const { ensemble, node } = partitioned();
    const client = readOnlyClient(node);
    expect(delivered(ensemble, client, 'check', { path: '/a', version: -1 })).toMatchObject({ err: ErrorCode.Unimplemented, zxid: -1 });
    expect(client.isClosed).toBe(true);
  });

  it('A34: keeps the order of the replies of a connection', () => {
    const { ensemble, node } = partitioned();
    const client = readOnlyClient(node);
    const asked = Array.from({ length: 20 }, (_, at) =>
      at % 3 === 0 ? client.ask('create', create('/x')) : client.ask('exists', { path: '/a', watch: false }),
    );
    // `EnsembleClient` throws at a reply out of order.
    until(ensemble, () => asked.every(({ answer }) => answer !== undefined));
    const { NotReadOnly, Ok } = ErrorCode;
    expect(asked.map(({ answer }) => answer?.err)).toEqual(asked.map((_, at) => (at % 3 === 0 ? NotReadOnly : Ok)));
  });
});

describe('A34: a session at a read-only server', () => {
  it('A34: is local: resumed here, unknown to the ensemble, and written nowhere', () => {
    const { ensemble, node } = partitioned();
    const client = readOnlyClient(node);
    const { session } = client;
    expect(node.peer!.replica.sessions.find(sessionHigh(session), sessionLow(session))).toBe(-1);
    client.break();
    const again = readOnlyClient(node, { session });
    expect([again.session, again.timeoutMs, again.isServerReadOnly]).toEqual([session, 2000, true]);
    // A second connection of a session replaces the first.
    readOnlyClient(node, { session });
    expect(again.isClosed).toBe(true);
    for (const other of ensemble.nodes.slice(1)) other.start();
    until(ensemble, () => ensemble.isWhole);
    const elsewhere = readOnlyClient(node, { session });
    expect([elsewhere.timeoutMs, elsewhere.isServerReadOnly]).toEqual([0, false]);
  });

  it('A34: is refused with a wrong password', () => {
    const { node } = partitioned();
    const { session } = readOnlyClient(node);
    const client = new EnsembleClient();
    Object.assign(client, { readOnly: true, session, password: Buffer.alloc(16) });
    client.connect(node);
    until(node.ensemble, () => client.isAnswered);
    expect([client.timeoutMs, client.isServerReadOnly]).toEqual([0, true]);
  });

  it('A34: ends when its client closes it', () => {
    const { ensemble, node } = partitioned();
    const client = readOnlyClient(node);
    const { lastZxid } = node.peer!.replica;
    const closing = client.ask('closeSession', undefined);
    const read = client.ask('exists', { path: '/a', watch: false });
    until(ensemble, () => client.isClosed);
    expect([closing.answer, read.answer]).toEqual([{ err: ErrorCode.Ok, zxid: lastZxid, body: undefined }, undefined]);
    expect(readOnlyClient(node, { session: client.session }).timeoutMs).toBe(0);
  });

  it('A34: ends when its client is silent for its timeout, and not before', () => {
    const { ensemble, node } = partitioned();
    const client = readOnlyClient(node, { timeOut: 500 });
    const pinging = readOnlyClient(node, { timeOut: 500 });
    for (let round = 0; round < 4; round++) {
      delivered(ensemble, pinging, 'ping', undefined);
      ensemble.run(100);
    }
    expect(client.isClosed).toBe(false);
    ensemble.run(300);
    expect([client.isClosed, pinging.isClosed]).toEqual([true, false]);
    expect(readOnlyClient(node, { session: client.session }).timeoutMs).toBe(0);
  });

  it('A34: of the ensemble is neither resumed nor declared expired: the connection is closed', () => {
    const ensemble = served();
    const node = ensemble.nodes[0]!;
    const client = new EnsembleClient().connect(node);
    until(ensemble, () => client.isAnswered);
    delivered(ensemble, client, 'create', create('/e', CreateMode.ephemeral));
    leftAlone(ensemble, node);
    const { session, lastZxid } = client;
    const refused = readOnlyClient(node, { session, lastZxid });
    expect([refused.isAnswered, refused.isClosed]).toEqual([false, true]);
    // The ensemble is back before the session has expired: it goes on, with its ephemeral.
    for (const other of ensemble.nodes.slice(1)) other.start();
    until(ensemble, () => ensemble.isWhole);
    const resumed = readOnlyClient(node, { session, lastZxid });
    expect([resumed.session, resumed.timeoutMs, resumed.isServerReadOnly]).toEqual([session, 2000, false]);
    expect(delivered(ensemble, resumed, 'exists', { path: '/e', watch: false })?.err).toBe(ErrorCode.Ok);
  });

  it('A34: that this server has not opened is not declared expired either: it may be younger than the log here', () => {
    const { node } = partitioned();
    const unknown = readOnlyClient(node, { session: 0x0300_0000_1234_5678n, lastZxid: 1 });
    expect([unknown.isAnswered, unknown.isClosed]).toEqual([false, true]);
  });

  it('A34: is not opened without local sessions: the client gets a header with NotReadOnly', () => {
    const { node } = partitioned({ localSessions: 'disabled' });
    const client = readOnlyClient(node);
    until(node.ensemble, () => client.isClosed);
    expect(readReplyHeader(new Reader(client.handshake))).toEqual({
      xid: 0,
      zxid: node.peer!.replica.lastZxid,
      err: ErrorCode.NotReadOnly,
    });
    expect(client.handshake.length).toBe(16);
  });

  it('A34: without local sessions, one that the state does not have is taken as alive, and cannot be closed', () => {
    const { ensemble, node } = partitioned({ localSessions: 'disabled' });
    const client = readOnlyClient(node, { session: 0x0300_0000_1234_5678n });
    expect([client.session, client.timeoutMs, client.isServerReadOnly]).toEqual([0x0300_0000_1234_5678n, 2000, true]);
    expect(delivered(ensemble, client, 'exists', { path: '/a', watch: false })?.err).toBe(ErrorCode.Ok);
    expect(delivered(ensemble, client, 'closeSession', undefined)?.err).toBe(ErrorCode.NotReadOnly);
    expect(client.isClosed).toBe(false);
  });
});

describe('A34: the end of read-only mode', () => {
  it('A34: comes with a leader: all connections are closed before the state changes', () => {
    const { ensemble, node } = partitioned();
    const client = readOnlyClient(node);
    delivered(ensemble, client, 'getChildren', { path: '/', watch: true });
    for (const other of ensemble.nodes.slice(1)) other.start();
    until(ensemble, () => roleOf(node) !== 'read-only');
    expect(client.isClosed).toBe(true);
    until(ensemble, () => ensemble.isWhole);
    const writer = new EnsembleClient().connect(node);
    until(ensemble, () => writer.isAnswered);
    expect(delivered(ensemble, writer, 'create', create('/c'))?.err).toBe(ErrorCode.Ok);
    expect(client.events).toEqual([]);
    ensemble.compare();
  });

  it('A34: is reported, and a later loss of the leader begins another one after the whole delay', () => {
    const { ensemble, node } = partitioned();
    const heard: string[] = [];
    node.crash();
    node.observer = { ...silentObserver, roleChanged: (role) => heard.push(role), readOnlyEnded: () => heard.push('ended') };
    node.start();
    until(ensemble, () => roleOf(node) === 'read-only');
    for (const other of ensemble.nodes.slice(1)) other.start();
    until(ensemble, () => ensemble.isWhole);
    expect(heard).toEqual(['looking', 'read-only', 'ended', ensemble.leader === node ? 'leader' : 'follower']);
    for (const other of ensemble.nodes.slice(1)) other.crash();
    until(ensemble, () => roleOf(node) === 'looking');
    const sinceMs = ensemble.nowMs;
    until(ensemble, () => roleOf(node) === 'read-only');
    expect(ensemble.nowMs - sinceMs).toBeGreaterThanOrEqual(delayMs - 1);
  });

  it('A34: a later configuration closes the connections, so that clients see the new one, and the mode goes on', () => {
    const ensemble = new Ensemble(1, 5, 0, 0);
    Object.assign(ensemble, { readOnlyMode: true, localSessions: 'upgradable', reconfigEnabled: true });
    const servers = [1, 2, 3, 4, 5].map((sid) => `server.${sid}=h${sid}:2888:3888:participant`).join('\n');
    ensemble.configText = `${servers}\nversion=0`;
    const node = ensemble.nodes[0]!;
    node.start();
    until(ensemble, () => roleOf(node) === 'read-only');
    const client = readOnlyClient(node);
    delivered(ensemble, client, 'getData', { path: '/zookeeper/config', watch: true });
    const config = `${servers}\nversion=100000000`;
    // Enough servers have announced it, and each of them votes for itself.
    for (const leader of [2, 3, 4, 5]) {
      const vote = { leader, zxid: 0, electionEpoch: 1, peerEpoch: 0, version: 2, state: 'looking' as const, config };
      node.turn((peer) => peer.notified(leader, vote, node.now));
    }
    expect(client.isClosed).toBe(true);
    until(ensemble, () => roleOf(node) === 'read-only');
    const again = readOnlyClient(node);
    const { body } = delivered(ensemble, again, 'getData', { path: '/zookeeper/config', watch: false })!;
    expect((body as { data: Buffer }).data.toString()).toBe(config);
  });

  it('A34: a pause of the process changes nothing: it is still read-only, and its sessions live', () => {
    const { ensemble, node } = partitioned();
    const client = readOnlyClient(node);
    node.turn((peer) => peer.resumedAfterPause(node.now));
    expect(roleOf(node)).toBe('read-only');
    expect(delivered(ensemble, client, 'exists', { path: '/a', watch: false })?.err).toBe(ErrorCode.Ok);
  });
});
