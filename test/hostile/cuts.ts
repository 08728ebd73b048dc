/**
 * Three servers with cut links, one way or both ways: how long no write is answered, and when all
 * servers are in sync again.
 */
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { makeZnode, Writers } from '../../bench/writers.js';
import { eventually } from '../chaos/real-clock.ts';
import { Cluster, type Kind, type Member } from './cluster.ts';
import { carryOut, type PartContext } from './part.ts';
import { atMost, type Figure, type Row, shown } from './report.ts';

const tickMs = 250;
const syncLimit = 4;
/** Equal to syncLimit in zoo_sample.cfg. */
const initLimit = 8;
const goesOnLimitS = (syncLimit * tickMs + 2000) / 1000;
const inStepLimitS = 1;
/**
 * A cut lasts as long as writes may be interrupted and, while they are, longer, to see whether they
 * ever continue.
 */
const cutMs = goesOnLimitS * 1000;
const cutMaxMs = 15_000;
const inStepMaxMs = 20_000;
const pollMs = 20;
/** Writes are interrupted after this time without a reply. */
const quietMs = 500;
const answersBefore = 20;
const answersMaxMs = 30_000;
const roundsOfOurs = 10;
const roundsOfJavas = 2;

interface Roles {
  readonly leader: Member;
  readonly one: Member;
  readonly other: Member;
}

/** Between which servers nothing passes, from the first to the second. */
type Cut = (roles: Roles) => readonly (readonly [Member, Member])[];

const apart = (a: Member, b: Member): [Member, Member][] => [
  [a, b],
  [b, a],
];

const cuts: Readonly<Record<string, Cut>> = {
  'leader-cut-off': ({ leader, one, other }) => [...apart(leader, one), ...apart(leader, other)],
  'leader-deaf': ({ leader, one, other }) => [
    [one, leader],
    [other, leader],
  ],
  'leader-mute': ({ leader, one, other }) => [
    [leader, one],
    [leader, other],
  ],
  'leader-and-follower': ({ leader, one }) => apart(leader, one),
  'follower-cut-off': ({ leader, one, other }) => [...apart(one, leader), ...apart(one, other)],
  'follower-deaf': ({ leader, one, other }) => [
    [leader, one],
    [other, one],
  ],
  'follower-mute': ({ leader, one, other }) => [
    [one, leader],
    [one, other],
  ],
  'leader-hears-who-does-not-hear-it': ({ leader, one }) => [[leader, one]],
  'followers-apart': ({ one, other }) => apart(one, other),
};

/** Rows of the bounded form. */
const cheap = ['leader-cut-off'];

async function rolesOf(cluster: Cluster, round: number): Promise<Roles> {
  const leader = await cluster.leader();
  const [one, other] = cluster.members.filter((member) => member !== leader).sort((a, b) => (round % 2 === 0 ? 1 : -1) * (a.sid - b.sid));
  return { leader, one: one!, other: other! };
}

/** Seconds until every server serves, and has everything that any of them has shown so far. */
async function untilInStep(cluster: Cluster): Promise<number> {
  const healedMs = performance.now();
  const zxids = (await Promise.all(cluster.members.map((member) => member.status()))).map((status) => status?.zxid ?? 0n);
  const goal = zxids.reduce((highest, zxid) => (zxid > highest ? zxid : highest));
  const isInStep = async (): Promise<boolean> => {
    const statuses = await Promise.all(cluster.members.map((member) => member.status()));
    const leads = statuses.filter((status) => status?.mode === 'leader').length;
    return leads === 1 && statuses.every((status) => status !== undefined && status.zxid >= goal);
  };
  return (await eventually(isInStep, inStepMaxMs, pollMs)) ? (performance.now() - healedMs) / 1000 : Infinity;
}

interface Round {
  readonly gapS: number;
  readonly inStepS: number;
}

async function cutOnce(cluster: Cluster, writers: Writers, cut: Cut, round: number): Promise<Round> {
  await writers.answers(answersBefore, performance.now(), answersMaxMs);
  const lanes = cut(await rolesOf(cluster, round)).map(([from, to]) => cluster.cables.lane(from.name, to.name));
  const cutAtMs = performance.now();
  for (const lane of lanes) lane.cut = true;
  await delay(cutMs);
  const gapS = (await eventually(() => writers.silentMs() < quietMs, cutMaxMs - cutMs, pollMs))
    ? writers.longestGap(cutAtMs) / 1000
    : Infinity;
  cluster.cables.heal(lanes);
  return { gapS, inStepS: await untilInStep(cluster) };
}

async function measure(name: string, cut: Cut, kind: Kind, context: PartContext): Promise<readonly Figure[]> {
  const folder = path.join(context.folder, `${name}-${kind}`);
  await using cluster = await Cluster.start({ kind, folder, servers: 3, tickMs, syncLimit, initLimit, isCabled: true });
  await makeZnode(cluster.ports[0]);
  const writers = new Writers(cluster.ports);
  writers.start();
  const count = context.rounds ?? (kind === 'ours' ? roundsOfOurs : roundsOfJavas);
  const rounds: Round[] = [];
  for (let round = 0; round < count; round++) {
    rounds.push(await cutOnce(cluster, writers, cut, round));
    const { gapS, inStepS } = rounds.at(-1)!;
    context.say(`    ${name}, ${kind}: ${gapS.toFixed(2)} s without an answer, in step after ${inStepS.toFixed(2)} s`);
    if (gapS > context.timeLimit(goesOnLimitS) || inStepS > context.timeLimit(inStepLimitS)) context.say(await cluster.evidence());
    if (inStepS === Infinity) break;
    await cluster.untilWhole();
  }
  await writers.stop();
  const within = rounds.filter(({ gapS, inStepS }) => gapS <= goesOnLimitS && inStepS <= inStepLimitS).length;
  return [
    atMost('no answer for', Math.max(...rounds.map(({ gapS }) => gapS)), context.timeLimit(goesOnLimitS), 's'),
    atMost('in step after', Math.max(...rounds.map(({ inStepS }) => inStepS)), context.timeLimit(inStepLimitS), 's'),
    shown('within the limits', `${within} of ${rounds.length}`),
  ];
}

export async function runCuts(context: PartContext): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [name, cut] of Object.entries(cuts)) {
    if (context.isBounded && !cheap.includes(name)) continue;
    const row = { part: 'cuts', name, limit: `${goesOnLimitS} s without an answer, in step ${inStepLimitS} s after the heal` };
    rows.push(...(await carryOut(context, row, (kind) => measure(name, cut, kind, context))));
  }
  return rows;
}
