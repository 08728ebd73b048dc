/**
 * What clients of two servers of an ensemble see of each other: sessions that move, end, or expire;
 * watches, syncs, ACLs, quotas, multis, containers and TTLs. Each check runs for a pair of servers,
 * in both directions where that matters.
 */
import { setTimeout as delay } from 'node:timers/promises';

import { ErrorCode, OpCode } from '@tskeeper/protocol';

import type { Report } from '../report.ts';
import { creatorAcl, type EnsemblePeer, openAcl, type ProcessEnsemble, RawClient, record, until } from '@tskeeper/harness';

/** Longer than any check takes on a busy machine. */
const timeOut = 60_000;
/** Time limit for a change to be visible everywhere. */
const visibleMs = 20_000;
/** The shortest session, of two ticks. */
const shortestMs = 1000;

const data = (text: string): Buffer => Buffer.from(text);

let names = 0;
const newName = (what: string): string => `/${what}-${++names}`;

function expect(what: string, found: unknown, expected: unknown): void {
  if (found !== expected) throw new Error(`${what} was ${String(found)}, not ${String(expected)}`);
}

/** Ports of leaders that are ZooKeeper's. */
const javaLeaderPorts = new Set<number>();
const clientsOfJavaLeader = new WeakSet<RawClient>();

async function recordLeaderOf(ensemble: ProcessEnsemble): Promise<void> {
  const { kind, port } = await ensemble.leader();
  if (kind === 'ours') javaLeaderPorts.delete(port);
  else javaLeaderPorts.add(port);
}

function recordIfJavaLeader(client: RawClient, port: number): void {
  if (javaLeaderPorts.has(port)) clientsOfJavaLeader.add(client);
}

async function connectClient(port: number, sessionTimeOut: number): Promise<RawClient> {
  const client = await RawClient.connectOrThrow(port, sessionTimeOut);
  recordIfJavaLeader(client, port);
  return client;
}

/**
 * After this the client sees what was acknowledged before. A leader of ZooKeeper answers a sync of
 * its own clients when everything is committed, possibly before it has applied it; an empty multi
 * waits for that.
 */
async function sync(client: RawClient): Promise<void> {
  if (clientsOfJavaLeader.has(client)) await client.call(OpCode.multi, record.multi([]));
  else await client.call(OpCode.sync, record.pathOnly('/'));
}

async function create(client: RawClient, path: string, flags = 0, acl = openAcl): Promise<string> {
  const { err, value } = await client.call(OpCode.create, record.create(path, data('one'), acl, flags));
  expect(`create ${path}`, err, 0);
  return value.path!;
}

/** A read after a sync: it must see what was acknowledged before. */
async function isThere(client: RawClient, path: string): Promise<boolean> {
  await sync(client);
  const { err } = await client.call(OpCode.exists, record.pathAndWatch(path, false));
  if (err !== 0) expect(`exists ${path}`, err, ErrorCode.NoNode);
  return err === 0;
}

export interface Pair {
  readonly ensemble: ProcessEnsemble;
  readonly from: EnsemblePeer;
  readonly to: EnsemblePeer;
}

/**
 * Takes id and password to the other server; ephemeral znodes stay; requests on the old connection
 * have no effect and end it.
 */
async function sessionMoves({ from, to }: Pair): Promise<void> {
  const old = await connectClient(from.port, timeOut);
  const path = newName('moving');
  await create(old, path, 1);
  const moved = await RawClient.connect(to.port, { timeOut, sessionId: old.sessionId, passwd: old.passwd });
  if (moved === undefined) throw new Error('the session was rejected');
  recordIfJavaLeader(moved, to.port);
  expect('the resumed session', moved.sessionId, old.sessionId);
  expect('its password', moved.passwd.equals(old.passwd), true);
  expect('whether the ephemeral znode exists', await isThere(moved, path), true);
  const { value } = await moved.call(OpCode.getEphemerals, record.pathOnly('/'));
  expect('getEphemerals', value.ephemerals!.join(), path);
  let late: number | undefined;
  try {
    late = (await old.call(OpCode.setData, record.setData(path, data('late'), -1))).err;
  } catch {
    // Closed without a reply.
  }
  if (late !== undefined) expect('a write on the old connection', late, ErrorCode.SessionMoved);
  old.abandon();
  await sync(moved);
  const after = await moved.call(OpCode.getData, record.pathAndWatch(path, false));
  expect('the data of the ephemeral znode', after.value.data!.toString(), 'one');
  await moved.close();
  const witness = await connectClient(from.port, timeOut);
  expect('whether the ephemeral znode exists after the end of its session', await isThere(witness, path), false);
  await witness.close();
  const again = await RawClient.connect(from.port, { timeOut, sessionId: moved.sessionId, passwd: moved.passwd });
  expect('resuming an ended session', again, undefined);
}

/** A session cannot be resumed with a wrong password, and is not affected by the attempt. */
async function wrongPassword({ from, to }: Pair): Promise<void> {
  const client = await connectClient(from.port, timeOut);
  const passwd = Buffer.alloc(16, 7);
  expect('a wrong password', await RawClient.connect(to.port, { timeOut, sessionId: client.sessionId, passwd }), undefined);
  const path = newName('unharmed');
  const right = await RawClient.connect(to.port, { timeOut, sessionId: client.sessionId, passwd: client.passwd });
  if (right === undefined) throw new Error('the session was rejected after a wrong password');
  await create(right, path, 1);
  client.abandon();
  await right.close();
}

/**
 * The session of a silent client expires, and its ephemeral znodes are deleted everywhere. A client
 * that only pings stays alive.
 */
async function expiry({ ensemble, from, to }: Pair): Promise<void> {
  const witness = await connectClient(to.port, timeOut);
  // Neither is the shortest, since all processes here may pause for that long.
  const silent = await connectClient(from.port, 3 * shortestMs);
  const pinging = await connectClient(from.port, 5 * shortestMs);
  const [dies, lives] = [newName('dies'), newName('lives')];
  await create(silent, dies, 1);
  await create(pinging, lives, 1);
  silent.abandon();
  const begun = performance.now();
  await until(
    `the ephemeral znode of a session of ${from.name} is deleted after its expiry, as seen at ${to.name}`,
    async () => {
      await pinging.ping();
      return (await isThere(witness, dies)) ? undefined : true;
    },
    visibleMs,
    () => ensemble.evidence(),
  );
  // One and a half times its timeout, with only pings.
  while (performance.now() - begun < 1.5 * pinging.timeOut) {
    await delay(shortestMs / 2);
    await pinging.ping();
  }
  expect('whether a pinging session is alive', await isThere(witness, lives), true);
  await pinging.close();
  expect('whether the ephemeral znode of a closed session exists', await isThere(witness, lives), false);
  await witness.close();
}

/** A watch at one server fires for a write at the other, and no later than a read shows it. */
async function watches({ from, to }: Pair): Promise<void> {
  const watcher = await connectClient(from.port, timeOut);
  const writer = await connectClient(to.port, timeOut);
  const path = newName('watched');
  await create(writer, path);
  expect('whether it exists', await isThere(watcher, path), true);
  await watcher.call(OpCode.getData, record.pathAndWatch(path, true));
  await watcher.call(OpCode.getChildren, record.pathAndWatch(path, true));
  await create(writer, `${path}/child`);
  await writer.call(OpCode.setData, record.setData(path, data('two'), 0));
  await sync(watcher);
  const { value } = await watcher.call(OpCode.getData, record.pathAndWatch(path, false));
  expect('the data after a sync', value.data!.toString(), 'two');
  // 4 is NodeChildrenChanged, 3 NodeDataChanged.
  expect('the events', watcher.takeEvents().join(), `4 ${path},3 ${path}`);
  await watcher.close();
  await writer.close();
}

/** A write acknowledged at one server is visible at the other after a sync, repeatedly. */
async function syncs({ from, to }: Pair): Promise<void> {
  const writer = await connectClient(from.port, timeOut);
  const reader = await connectClient(to.port, timeOut);
  const path = newName('synced');
  await create(writer, path);
  for (let i = 0; i < 20; i++) {
    const { err } = await writer.call(OpCode.setData, record.setData(path, data(String(i)), i));
    expect('setData', err, 0);
    await sync(reader);
    const { value } = await reader.call(OpCode.getData, record.pathAndWatch(path, false));
    expect('the data after a sync', value.data!.toString(), String(i));
  }
  await writer.close();
  await reader.close();
}

/**
 * After this the leader validates by what was acknowledged before. It may not have applied what a
 * follower has applied and answered; an answer to a txn of its own client shows that it has.
 */
async function syncLeader({ ensemble }: Pair): Promise<void> {
  const client = await connectClient((await ensemble.leader()).port, timeOut);
  await client.call(OpCode.multi, record.multi([]));
  await client.close();
}

/**
 * Identities are forwarded with a request to the leader; an ACL set at one server applies at the
 * other; so does a hard quota.
 */
async function aclsAndQuotas(pair: Pair): Promise<void> {
  const { from, to } = pair;
  const owner = await connectClient(from.port, timeOut);
  await owner.auth('digest', 'ann:secret');
  const stranger = await connectClient(to.port, timeOut);
  const path = newName('owned');
  await create(owner, path);
  expect('setACL', (await owner.call(OpCode.setACL, record.setACL(path, creatorAcl, 0))).err, 0);
  await syncLeader(pair);
  await sync(stranger);
  const write = (client: RawClient): Promise<number> =>
    client.call(OpCode.setData, record.setData(path, data('mine'), -1)).then(({ err }) => err);
  expect('a stranger that reads', (await stranger.call(OpCode.getData, record.pathAndWatch(path, false))).err, ErrorCode.NoAuth);
  expect('a stranger that writes', await write(stranger), ErrorCode.NoAuth);
  await stranger.auth('digest', 'ann:secret');
  expect('the owner, at another server', await write(stranger), 0);
  const limited = newName('limited');
  await create(owner, limited);
  const quota = `/zookeeper/quota${limited}`;
  await create(owner, quota);
  const limits = data('count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=3');
  expect('the limits', (await owner.call(OpCode.create, record.create(`${quota}/zookeeper_limits`, limits, openAcl, 0))).err, 0);
  const stats = data('count=0,bytes=0');
  expect('the stats', (await owner.call(OpCode.create, record.create(`${quota}/zookeeper_stats`, stats, openAcl, 0))).err, 0);
  await create(stranger, `${limited}/a`);
  await create(owner, `${limited}/b`);
  await syncLeader(pair);
  const { err } = await stranger.call(OpCode.create, record.create(`${limited}/c`, null, openAcl, 0));
  expect('a create above a hard quota', err, ErrorCode.QuotaExceeded);
  await owner.close();
  await stranger.close();
}

/** Sequence numbers are one sequence for all servers, and a multi is atomic at all of them. */
async function sequencesAndMultis({ from, to }: Pair): Promise<void> {
  const clients = await Promise.all([from, to].map(({ port }) => connectClient(port, timeOut)));
  const top = newName('numbered');
  await create(clients[0]!, top);
  expect('whether it exists', await isThere(clients[1]!, top), true);
  const made: string[] = [];
  await Promise.all(
    clients.map(async (client) => {
      for (let i = 0; i < 10; i++) made.push(await create(client, `${top}/n-`, 2));
    }),
  );
  const wanted = Array.from({ length: 20 }, (_, i) => `${top}/n-${String(i).padStart(10, '0')}`);
  expect('the names', made.toSorted().join(), wanted.join());
  const part = (path: string) => ({ type: OpCode.create, fields: record.create(path, null, openAcl, 0) });
  const check = (path: string, version: number) => ({ type: OpCode.check, fields: record.pathAndInt(path, version) });
  const right = await clients[0]!.call(OpCode.multi, record.multi([part(`${top}/a`), check(top, 0), part(`${top}/a/b`)]));
  expect('a multi', right.value.results!.map(({ err }) => err).join(), '0,0,0');
  const wrong = await clients[1]!.call(OpCode.multi, record.multi([part(`${top}/c`), check(top, 7)]));
  expect('a multi with a check that fails', wrong.value.results!.map(({ value }) => value?.err).join(), '0,-103');
  for (const client of clients) {
    expect('what the multi created', await isThere(client, `${top}/a/b`), true);
    expect('what the failed multi created', await isThere(client, `${top}/c`), false);
    await client.close();
  }
}

/**
 * The leader deletes containers that have become empty and znodes whose TTL has passed, whichever
 * server's client created them. The servers must be configured to check often.
 */
export async function checkSweeps({ ensemble, from, to }: Pair): Promise<void> {
  await recordLeaderOf(ensemble);
  // A follower of a leader that has just ended may not have noticed.
  const opened = (member: EnsemblePeer): Promise<RawClient> =>
    until(
      `${member.name} opens a session`,
      () => connectClient(member.port, timeOut),
      visibleMs,
      () => ensemble.evidence(),
    );
  const [client, witness] = [await opened(from), await opened(to)];
  const [container, passing] = [newName('container'), newName('passing')];
  await client.call(OpCode.createContainer, record.create(container, null, openAcl, 4));
  await create(client, `${container}/child`);
  expect('createTTL', (await client.call(OpCode.createTTL, record.createTTL(passing, null, openAcl, 5, 100n))).err, 0);
  expect('whether the container exists', await isThere(witness, container), true);
  await client.call(OpCode.delete, record.pathAndInt(`${container}/child`, -1));
  for (const path of [container, passing]) {
    await until(
      `${path}, created at ${from.name}, is deleted by the leader, as seen at ${to.name}`,
      async () => ((await isThere(witness, path)) ? undefined : true),
      visibleMs,
      () => ensemble.evidence(),
    );
  }
  await client.close();
  await witness.close();
}

/** Both bound a timeout in the same way, and return the same configuration. */
async function handshakes({ from, to }: Pair): Promise<void> {
  const received: string[] = [];
  for (const { port } of [from, to]) {
    const negotiated: number[] = [];
    for (const asked of [1, 30_000, 2_000_000_000]) {
      const client = await connectClient(port, asked);
      negotiated.push(client.timeOut);
      if (asked === 30_000) {
        const { value } = await client.call(OpCode.getData, record.pathAndWatch('/zookeeper/config', false));
        received.push(value.data!.toString());
      }
      // Such a short session may have expired by now.
      if (asked === 1) client.abandon();
      else await client.close();
    }
    expect('the timeouts', negotiated.join(), `${shortestMs},30000,1200000`);
  }
  expect('/zookeeper/config', received[1], received[0]);
}

const checks: readonly (readonly [string, (pair: Pair) => Promise<void>])[] = [
  ['a session moves, with its ephemeral znodes, and its old connection is closed', sessionMoves],
  ['a session cannot be resumed with a wrong password', wrongPassword],
  ['a silent session expires, and a pinging one does not', expiry],
  ['watches fire for writes at other servers', watches],
  ['a sync shows what was acknowledged at other servers', syncs],
  ['ACLs, identities and quotas apply at other servers', aclsAndQuotas],
  ['sequence numbers and multis', sequencesAndMultis],
  ['timeouts and the configuration', handshakes],
];

/** All checks for each pair, the pairs at the same time: most of a check is waiting. */
export async function runPairs(
  ensemble: ProcessEnsemble,
  pairs: readonly (readonly [number, number])[],
  name: string,
  report: Report,
): Promise<void> {
  await recordLeaderOf(ensemble);
  await Promise.all(
    pairs.map(async ([a, b]) => {
      const pair = { ensemble, from: ensemble.peer(a), to: ensemble.peer(b) };
      for (const [what, check] of checks) {
        const step = `${name}: ${pair.from.name} and ${pair.to.name}: ${what}`;
        try {
          await check(pair);
          report.pass(step);
        } catch (error) {
          report.fail(step, `${error instanceof Error ? error.message : String(error)}\n${await ensemble.evidence()}`);
        }
      }
    }),
  );
}
