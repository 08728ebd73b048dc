/** Servers restarted one after the other under load: how long after its start each serves again. */
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { buildDiskFaults, type EnsemblePeer, eventually, type ProcessEnsemble } from '@tskeeper/harness';
import { startServers, type Kind } from './ensemble.ts';
import { HelperProcess } from './helper-process.ts';
import type { LoadOptions, LoadReport } from './load.ts';
import { measureRow, type PartContext } from './part.ts';
import { atMost, type Figure, percentile, quantity, type Row, shown } from './report.ts';

const limitS = 2;
/** A server that takes longer does not come back. */
const restartMaxMs = 60_000;
const pollMs = 20;
/** Load before the first restart, and between two restarts. */
const warmUpMs = 3000;
const betweenMs = 500;
/** As in zoo_sample.cfg. */
const tickMs = 2000;
const javaRounds = 5;

interface Restarts {
  readonly name: string;
  readonly role: 'follower' | 'leader';
  readonly rounds: number;
  readonly load: Pick<LoadOptions, 'connections' | 'shape'>;
  readonly syncMs?: number;
  readonly isBounded?: boolean;
}

const manyConnections = { connections: 200, shape: { inFlight: 16 } };
const atFixedRate = (perSecond: number, isBounded = false): Restarts => ({
  isBounded,
  name: `follower-slow-syncs-${perSecond}`,
  role: 'follower',
  rounds: 20,
  load: { connections: 20, shape: { perSecond } },
  syncMs: 10,
});

const restartCases: readonly Restarts[] = [
  { name: 'follower-under-load', role: 'follower', rounds: 20, load: manyConnections },
  { name: 'leader-under-load', role: 'leader', rounds: 5, load: manyConnections },
  atFixedRate(250, true),
  atFixedRate(1000),
  atFixedRate(5000),
];

async function chooseServer(cluster: ProcessEnsemble, who: Restarts['role'], round: number): Promise<EnsemblePeer> {
  const found = await cluster.inMode(who);
  const member = found[round % found.length];
  if (member === undefined) throw new Error(`there is no ${who}:\n${await cluster.evidence()}`);
  return member;
}

/** Seconds from its start until it serves; alternately stopped and killed before. */
async function restart(cluster: ProcessEnsemble, member: EnsemblePeer, isKilled: boolean): Promise<number> {
  if (isKilled) await cluster.kill(member.sid);
  else await member.process!.stop();
  const startedMs = performance.now();
  await cluster.launch([member.sid]);
  const serves = await eventually(async () => (await member.status()) !== undefined, restartMaxMs, pollMs);
  return serves ? (performance.now() - startedMs) / 1000 : Infinity;
}

async function measure(restarts: Restarts, kind: Kind, context: PartContext): Promise<readonly Figure[]> {
  const { name, role, load, syncMs } = restarts;
  const diskFaults = syncMs === undefined ? {} : { diskFaults: await buildDiskFaults() };
  const folder = path.join(context.folder, `${name}-${kind}`);
  await using cluster = await startServers({ kind, folder, servers: 3, tickMs, config: { maxClientCnxns: 0 }, ...diskFaults });
  for (const { disk } of cluster.peers) disk?.set('slowSyncs', syncMs);
  const options: LoadOptions = { ports: cluster.clientPorts, ...load };
  using writers = await HelperProcess.start<'report', LoadReport>(new URL('load.ts', import.meta.url), options);
  await delay(warmUpMs);
  const rounds = context.rounds ?? (kind === 'ours' ? restarts.rounds : javaRounds);
  const seconds: number[] = [];
  const beganMs = performance.now();
  const before = (await writers.request('report')).acknowledged;
  for (let round = 0; round < rounds; round++) {
    await cluster.untilServing();
    seconds.push(await restart(cluster, await chooseServer(cluster, role, round), round % 2 === 1));
    context.say(`    ${name}, ${kind}: ${seconds.at(-1)!.toFixed(2)} s`);
    if (seconds.at(-1)! > context.timeLimit(limitS)) context.say(await cluster.evidence());
    if (seconds.at(-1) === Infinity) break;
    await delay(betweenMs);
  }
  const writes = (await writers.request('report')).acknowledged - before;
  const within = seconds.filter((each) => each <= limitS).length;
  return [
    atMost('slowest', Math.max(...seconds), context.timeLimit(limitS), 's'),
    shown('median', quantity(percentile(seconds, 50), 's')),
    shown('within the limit', `${within} of ${seconds.length}`),
    shown('writes', `${Math.round((writes / (performance.now() - beganMs)) * 1000)} /s`),
  ];
}

async function hasCompiler(say: (line: string) => void): Promise<boolean> {
  try {
    await buildDiskFaults();
    return true;
  } catch (error) {
    say(`  skipping rows with slow syncs, because gcc could not compile the library that slows them: ${String(error)}`);
    return false;
  }
}

export async function runRestarts(context: PartContext): Promise<Row[]> {
  const canSlow = await hasCompiler(context.say);
  const rows: Row[] = [];
  for (const restarts of restartCases) {
    if ((restarts.syncMs !== undefined && !canSlow) || (context.isBounded && restarts.isBounded !== true)) continue;
    const row = { part: 'restarts', name: restarts.name, limit: `${limitS} s from its start` };
    rows.push(...(await measureRow(context, row, (kind) => measure(restarts, kind, context))));
  }
  return rows;
}
