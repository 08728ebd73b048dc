/**
 * The leader is killed repeatedly, while all links between servers are slow and accept before the
 * other end listens.
 */
import path from 'node:path';
import { makeZnode, Writers } from '../../bench/writers.js';
import type { ProcessEnsemble } from '@tskeeper/harness';
import { startServers, type Kind } from './ensemble.ts';
import { measureRow, type PartContext } from './part.ts';
import { atMost, type Figure, percentile, quantity, type Row, shown } from './report.ts';

const limitS = 3;
const delaysMs = [2, 20, 100];
const killsOfOurs = 30;
const killsOfJavas = 5;
/** After this many misses a row is ended early. */
const missesMax = 3;
/** As in zoo_sample.cfg. */
const tickMs = 2000;
const leaderMaxMs = 60_000;
const pollMs = 20;
const answersBefore = 6;
const answersAfter = 3;
const answersMaxMs = 60_000;
/** Time limit for resuming a session over a follower with a slow link to its leader. */
const dialTimeoutMs = 2000;

/** Seconds without a reply after the kill of the leader. */
async function kill(cluster: ProcessEnsemble, writers: Writers): Promise<number> {
  await writers.answers(answersBefore, performance.now(), answersMaxMs);
  const leader = await cluster.leader();
  const killedMs = performance.now();
  await cluster.kill(leader.sid);
  if (!(await cluster.hasLeaderWithin(leaderMaxMs, pollMs))) return Infinity;
  try {
    await writers.answers(answersAfter, performance.now(), answersMaxMs);
  } catch {
    return Infinity;
  }
  const gapMs = writers.longestGap(killedMs);
  await cluster.launch([leader.sid]);
  await cluster.untilServing();
  return gapMs / 1000;
}

async function measure(name: string, delayMs: number, kind: Kind, context: PartContext): Promise<readonly Figure[]> {
  const folder = path.join(context.folder, `${name}-${kind}`);
  await using cluster = await startServers({ kind, folder, servers: 3, tickMs, hasProxies: true });
  for (const from of cluster.peers) {
    for (const to of cluster.peers) if (from !== to) cluster.network.direction(from.name, to.name).delayMs = delayMs;
  }
  await makeZnode(cluster.clientPorts[0]);
  const writers = new Writers(cluster.clientPorts, { patienceMs: dialTimeoutMs });
  writers.start();
  const kills = context.rounds ?? (kind === 'ours' ? killsOfOurs : killsOfJavas);
  const seconds: number[] = [];
  for (let count = 0; count < kills; count++) {
    seconds.push(await kill(cluster, writers));
    context.say(`    ${name}, ${kind}: ${seconds.at(-1)!.toFixed(2)} s`);
    if (seconds.at(-1)! > limitS) context.say(await cluster.evidence());
    if (seconds.at(-1) === Infinity) break;
    if (seconds.filter((each) => each > limitS).length >= missesMax) break;
  }
  await writers.stop();
  return [
    atMost('slowest', Math.max(...seconds), context.timeLimit(limitS), 's'),
    shown('median', quantity(percentile(seconds, 50), 's')),
    shown('within the limit', `${seconds.filter((each) => each <= limitS).length} of ${seconds.length}`),
  ];
}

export async function runFailover(context: PartContext): Promise<Row[]> {
  const rows: Row[] = [];
  for (const delayMs of context.isBounded ? [] : delaysMs) {
    const name = `kill-leader-${delayMs}ms`;
    const row = { part: 'failover', name, limit: `${limitS} s without an answer` };
    rows.push(...(await measureRow(context, row, (kind) => measure(name, delayMs, kind, context))));
  }
  return rows;
}
