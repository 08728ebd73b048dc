/**
 * Observers that learn from followers (observerMasterPort), ours and ZooKeeper's, at followers of
 * either kind. A follower is the only one for a while, so that all observers learn from it; then it
 * is killed, and they go to one of the other kind. Reconfigurations reach them through it, and do
 * not part them from it.
 */
import { OpCode, type Sid } from '@tskeeper/protocol';

import {
  type EnsemblePeer,
  openAcl,
  type PeerSpec,
  type ProcessEnsemble,
  RawClient,
  record,
  reservePort,
  type ServerKind,
} from '@tskeeper/harness';
import type { Report } from '../report.ts';
import { superAuth } from '../settings.ts';
import { compareLogs } from './agreement.ts';
import { configText, membersOf, untilFilesAgree } from './config-agreement.ts';
import { createEnsemble } from './ensemble.ts';
import { runPairs } from './pairs.ts';

const [firstFollower, secondFollower, leaderSid] = [1, 2, 3];
const observerSids = [4, 5];
/** Of an observer that does not run. */
const absentSid = 6;
const timeOut = 60_000;

/** Waits until every observer learns from this follower. */
async function untilLearningFrom(ensemble: ProcessEnsemble, follower: Sid): Promise<void> {
  for (const sid of observerSids) {
    const observer = ensemble.peer(sid);
    await ensemble.until(
      `server ${sid} learns from server ${follower}`,
      async () => (await observer.process?.metric('zk_observer_master_id')) === follower || undefined,
      timeOut,
      sid,
    );
  }
}

/** Writes at each observer, and reads at the others after a sync. */
async function writesAreSeen(ensemble: ProcessEnsemble, prefix: string): Promise<void> {
  const clients = await Promise.all(observerSids.map((sid) => RawClient.connectOrThrow(ensemble.peer(sid).port, timeOut)));
  for (const [index, client] of clients.entries()) {
    const path = `/${prefix}-${index}`;
    const { err } = await client.call(OpCode.create, record.create(path, Buffer.from('x'), openAcl, 0));
    if (err !== 0) throw new Error(`create ${path} had the result ${err}`);
    for (const reader of clients) {
      await reader.call(OpCode.sync, record.pathOnly('/'));
      const read = await reader.call(OpCode.exists, record.pathAndWatch(path, false));
      if (read.err !== 0) throw new Error(`exists ${path} had the result ${read.err} after a sync`);
    }
  }
  await Promise.all(clients.map((client) => client.close()));
}

/** How often a learner has been synchronized in this life. */
async function syncCount(observer: EnsemblePeer): Promise<number> {
  const lines = await observer.log();
  return lines.filter((line) => /received UPTODATE|"event":"role\.serving"/.test(line)).length;
}

/** Asks a server for a change, and waits until all servers show it, and have it in their files. */
async function reconfigure(ensemble: ProcessEnsemble, at: EnsemblePeer, joining: string | null, leaving: string | null): Promise<void> {
  const client = await RawClient.connectOrThrow(at.port, timeOut);
  await client.auth('digest', superAuth);
  const { err } = await client.call(OpCode.reconfig, record.reconfig(joining, leaving, null, -1));
  client.abandon();
  if (err !== 0) throw new Error(`+ ${joining} - ${leaving} at ${at.name} had the result ${err}`);
  for (const added of joining?.split(',') ?? []) {
    const [sid, port] = [Number(/^server\.(\d+)/.exec(added)![1]), Number(/:(\d+)$/.exec(added)![1])];
    const member = ensemble.peers.find((peer) => peer.sid === sid);
    member?.movedTo({ ...member.ports, client: port });
  }
  const text = await ensemble.until(
    'all servers show the new configuration',
    async () => {
      const texts = await Promise.all(ensemble.running.map(({ port }) => configText(port)));
      const [first] = texts;
      const members = membersOf(first!);
      const isDone =
        (joining?.split(',') ?? []).every((line) => [...members].some(([sid, value]) => `server.${sid}=${value}` === line)) &&
        (leaving === null || !members.has(Number(leaving)));
      return isDone && texts.every((each) => each === first) ? first : undefined;
    },
    timeOut,
  );
  await untilFilesAgree(ensemble, text);
}

/**
 * Adds an observer that does not run, asked at one observer; and removes it and moves both running
 * observers to other ports for clients, asked at the other one. Both activate that when their
 * follower informs them, and stay with it.
 */
async function reconfigurationsAreActivated(ensemble: ProcessEnsemble, follower: Sid): Promise<void> {
  const [java, own] = observerSids.map((sid) => ensemble.peer(sid)) as [EnsemblePeer, EnsemblePeer];
  const before = await Promise.all([java, own].map(syncCount));
  const host = `127.0.0.${absentSid}`;
  const absent = `server.${absentSid}=${host}:${await reservePort()}:${await reservePort()}:observer;${host}:${await reservePort()}`;
  await reconfigure(ensemble, java, absent, null);
  const lines = ensemble.serverLines();
  const moved: string[] = [];
  for (const { sid } of [java, own]) moved.push(`server.${sid}=${lines[`server.${sid}`]!.replace(/\d+$/, String(await reservePort()))}`);
  await reconfigure(ensemble, own, moved.join(','), String(absentSid));
  await untilLearningFrom(ensemble, follower);
  const after = await Promise.all([java, own].map(syncCount));
  if (after.join() !== before.join())
    throw new Error(`the observers were synchronized ${before.join()} times before, and ${after.join()} after`);
}

/**
 * ZooKeeper does not distinguish the servers that learn from one follower: a session that moves
 * from one to another keeps its old connection. Ours does, if leader and follower are ours.
 */
function pairsOf(leader: ServerKind, follower: ServerKind, followerSid: Sid): [Sid, Sid][] {
  const always: [Sid, Sid][] = [
    [leaderSid, 4],
    [5, leaderSid],
  ];
  if (leader !== 'ours' || follower !== 'ours') return always;
  return [...always, [4, 5], [5, followerSid]];
}

async function runObserverMasters(leader: ServerKind, first: ServerKind, second: ServerKind, report: Report): Promise<void> {
  const name = `observers of ${first} and then of ${second}, under ${leader}`;
  const specs: PeerSpec[] = [
    ...[first, second, leader].map((kind, index) => ({ sid: index + 1, kind, role: 'participant' as const })),
    { sid: 4, kind: 'java-3.9.5', role: 'observer' },
    { sid: 5, kind: 'ours', role: 'observer' },
  ];
  const ensemble = await createEnsemble(specs, {
    config: { observerMasterPort: await reservePort(), enforceQuota: true, reconfigEnabled: true },
    firstMembers: specs.map(({ sid }) => sid),
    hasOwnHosts: true,
  });
  try {
    await ensemble.launch([firstFollower, leaderSid]);
    await ensemble.untilServing([firstFollower, leaderSid]);
    await ensemble.launch(observerSids);
    await ensemble.untilServing(observerSids);
    await untilLearningFrom(ensemble, firstFollower);
    await writesAreSeen(ensemble, 'first');
    report.pass(`${name}: two observers learn from the first`);
    await reconfigurationsAreActivated(ensemble, firstFollower);
    report.pass(`${name}: they activate reconfigurations that the first informs them of`);
    await runPairs(ensemble, pairsOf(leader, first, firstFollower), name, report);
    await ensemble.start([secondFollower]);
    await ensemble.kill(firstFollower);
    await untilLearningFrom(ensemble, secondFollower);
    await ensemble.untilServing(observerSids);
    await writesAreSeen(ensemble, 'second');
    await reconfigurationsAreActivated(ensemble, secondFollower);
    report.pass(`${name}: they activate reconfigurations that the second informs them of`);
    await runPairs(ensemble, pairsOf(leader, second, secondFollower), `${name}, second`, report);
    report.pass(`${name}: they learn from the second when the first is gone`);
    const { differences, compared } = await compareLogs(ensemble);
    if (differences.length > 0) report.fail(`${name}: the logs`, `\n    ${differences.join('\n    ')}`);
    else report.pass(`${name}: ${compared} txns are the same bytes in the logs of more than one server`);
  } catch (error) {
    report.fail(name, error instanceof Error ? error.message : String(error));
  } finally {
    await ensemble[Symbol.asyncDispose]();
  }
}

export async function runObserversOfFollowers(bounded: boolean, report: Report): Promise<void> {
  await runObserverMasters('java-3.9.5', 'ours', 'java-3.9.5', report);
  if (!bounded) await runObserverMasters('ours', 'java-3.9.5', 'ours', report);
}
