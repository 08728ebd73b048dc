/**
 * Observers that learn from followers (observerMasterPort), ours and ZooKeeper's, at followers of
 * either kind. A follower is the only one for a while, so that all observers learn from it; then it
 * is killed, and they go to one of the other kind.
 */
import { OpCode, type Sid } from '@tskeeper/protocol';

import { openAcl, type PeerSpec, type ProcessEnsemble, RawClient, record, reservePort, type ServerKind } from '@tskeeper/harness';
import type { Report } from '../report.ts';
import { compareLogs } from './agreement.ts';
import { createEnsemble } from './ensemble.ts';
import { runPairs } from './pairs.ts';

const [firstFollower, secondFollower, leaderSid] = [1, 2, 3];
const observerSids = [4, 5];
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
    config: { observerMasterPort: await reservePort(), enforceQuota: true },
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
    await runPairs(ensemble, pairsOf(leader, first, firstFollower), name, report);
    await ensemble.start([secondFollower]);
    await ensemble.kill(firstFollower);
    await untilLearningFrom(ensemble, secondFollower);
    await ensemble.untilServing(observerSids);
    await writesAreSeen(ensemble, 'second');
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
