/**
 * Three servers with cut links, one way or both ways: how long no write is answered, and when all
 * servers are in sync again.
 */
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { makeZnode, Writers } from '../../bench/writers.js';
import { type EnsemblePeer, eventually, type ProcessEnsemble } from '@tskeeper/harness';
import { startServers, type Kind } from './ensemble.ts';
import { measureRow, type PartContext } from './part.ts';
import { atMost, type Figure, type Row, shown } from './report.ts';

const tickMs = 250;
const syncLimit = 4;
/** Equal to syncLimit in zoo_sample.cfg. */
const initLimit = 8;
const writeGapLimitS = (syncLimit * tickMs + 2000) / 1000;
const resyncLimitS = 1;
/**
 * A cut lasts as long as writes may be interrupted and, while they are, longer, to see whether they
 * ever continue.
 */
const cutMs = writeGapLimitS * 1000;
const cutMaxMs = 15_000;
const resyncMaxMs = 20_000;
const pollMs = 20;
/** Writes are interrupted after this time without a reply. */
const stallMs = 500;
const answersBefore = 20;
const answersMaxMs = 30_000;
const roundsOfOurs = 10;
const roundsOfJavas = 2;

interface Roles {
  readonly leader: EnsemblePeer;
  readonly follower: EnsemblePeer;
  readonly otherFollower: EnsemblePeer;
}

/** Between which servers nothing passes, from the first to the second. */
type Cut = (roles: Roles) => readonly (readonly [EnsemblePeer, EnsemblePeer])[];

const bothWays = (a: EnsemblePeer, b: EnsemblePeer): [EnsemblePeer, EnsemblePeer][] => [
  [a, b],
  [b, a],
];

const cuts: Readonly<Record<string, Cut>> = {
  'leader-cut-off': ({ leader, follower, otherFollower }) => [...bothWays(leader, follower), ...bothWays(leader, otherFollower)],
  'leader-deaf': ({ leader, follower, otherFollower }) => [
    [follower, leader],
    [otherFollower, leader],
  ],
  'leader-mute': ({ leader, follower, otherFollower }) => [
    [leader, follower],
    [leader, otherFollower],
  ],
  'leader-and-follower': ({ leader, follower }) => bothWays(leader, follower),
  'follower-cut-off': ({ leader, follower, otherFollower }) => [...bothWays(follower, leader), ...bothWays(follower, otherFollower)],
  'follower-deaf': ({ leader, follower, otherFollower }) => [
    [leader, follower],
    [otherFollower, follower],
  ],
  'follower-mute': ({ leader, follower, otherFollower }) => [
    [follower, leader],
    [follower, otherFollower],
  ],
  'leader-hears-who-does-not-hear-it': ({ leader, follower }) => [[leader, follower]],
  'followers-apart': ({ follower, otherFollower }) => bothWays(follower, otherFollower),
};

/** Rows of the bounded form. */
const boundedCuts = ['leader-cut-off'];

async function rolesOf(cluster: ProcessEnsemble, round: number): Promise<Roles> {
  const leader = await cluster.leader();
  const [one, other] = cluster.peers.filter((member) => member !== leader).sort((a, b) => (round % 2 === 0 ? 1 : -1) * (a.sid - b.sid));
  return { leader, follower: one!, otherFollower: other! };
}

/** Seconds until every server serves, and has everything that any of them has shown so far. */
async function untilResynced(cluster: ProcessEnsemble): Promise<number> {
  const healedMs = performance.now();
  const zxids = (await Promise.all(cluster.peers.map((member) => member.status()))).map((status) => BigInt(status?.zxid ?? 0));
  const goal = zxids.reduce((highest, zxid) => (zxid > highest ? zxid : highest));
  const isInStep = async (): Promise<boolean> => {
    const statuses = await Promise.all(cluster.peers.map((member) => member.status()));
    const leads = statuses.filter((status) => status?.mode === 'leader').length;
    return leads === 1 && statuses.every((status) => status !== undefined && BigInt(status.zxid) >= goal);
  };
  return (await eventually(isInStep, resyncMaxMs, pollMs)) ? (performance.now() - healedMs) / 1000 : Infinity;
}

interface Round {
  readonly gapS: number;
  readonly resyncS: number;
}

async function cutOnce(cluster: ProcessEnsemble, writers: Writers, cut: Cut, round: number): Promise<Round> {
  await writers.answers(answersBefore, performance.now(), answersMaxMs);
  const lanes = cut(await rolesOf(cluster, round)).map(([from, to]) => cluster.network.direction(from.name, to.name));
  const cutAtMs = performance.now();
  for (const lane of lanes) lane.isCut = true;
  await delay(cutMs);
  const gapS = (await eventually(() => writers.msSinceLastAnswer() < stallMs, cutMaxMs - cutMs, pollMs))
    ? writers.longestGap(cutAtMs) / 1000
    : Infinity;
  cluster.network.heal(lanes);
  return { gapS, resyncS: await untilResynced(cluster) };
}

async function measure(name: string, cut: Cut, kind: Kind, context: PartContext): Promise<readonly Figure[]> {
  const folder = path.join(context.folder, `${name}-${kind}`);
  await using cluster = await startServers({ kind, folder, servers: 3, tickMs, syncLimit, initLimit, hasProxies: true });
  await makeZnode(cluster.clientPorts[0]);
  const writers = new Writers(cluster.clientPorts);
  writers.start();
  const count = context.rounds ?? (kind === 'ours' ? roundsOfOurs : roundsOfJavas);
  const rounds: Round[] = [];
  for (let round = 0; round < count; round++) {
    rounds.push(await cutOnce(cluster, writers, cut, round));
    const { gapS, resyncS } = rounds.at(-1)!;
    context.say(`    ${name}, ${kind}: ${gapS.toFixed(2)} s without an answer, in step after ${resyncS.toFixed(2)} s`);
    if (gapS > context.timeLimit(writeGapLimitS) || resyncS > context.timeLimit(resyncLimitS)) context.say(await cluster.evidence());
    if (resyncS === Infinity) break;
    await cluster.untilServing();
  }
  await writers.stop();
  const within = rounds.filter(({ gapS, resyncS }) => gapS <= writeGapLimitS && resyncS <= resyncLimitS).length;
  return [
    atMost('no answer for', Math.max(...rounds.map(({ gapS }) => gapS)), context.timeLimit(writeGapLimitS), 's'),
    atMost('in step after', Math.max(...rounds.map(({ resyncS }) => resyncS)), context.timeLimit(resyncLimitS), 's'),
    shown('within the limits', `${within} of ${rounds.length}`),
  ];
}

export async function runCuts(context: PartContext): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [name, cut] of Object.entries(cuts)) {
    if (context.isBounded && !boundedCuts.includes(name)) continue;
    const row = { part: 'cuts', name, limit: `${writeGapLimitS} s without an answer, in step ${resyncLimitS} s after the heal` };
    rows.push(...(await measureRow(context, row, (kind) => measure(name, cut, kind, context))));
  }
  return rows;
}
