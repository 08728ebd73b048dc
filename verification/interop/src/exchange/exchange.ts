/**
 * The exchange of data folders: one kind of server writes a folder and ends; another starts from
 * it, must hold the same, writes more, and ends for the first to start again.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { OpCode } from '@tskeeper/protocol';

import { RawClient, record, type ServerKind, type ServerProcess, startServer } from '@tskeeper/harness';
import type { Report } from '../report.ts';
import { noContainerChecks, superDigestProperty } from '../settings.ts';
import { differencesBetween, dump, type Dump } from './dump.ts';
import { fixedWorkload, type OpenSession, randomWorkload } from './workload.ts';

export interface ExchangeScenario {
  readonly from: ServerKind;
  readonly to: ServerKind;
  /** How a server ends before the other one starts. */
  readonly end: 'stop' | 'kill';
  /** snapshot.compression.method of both. */
  readonly compression: '' | 'gz' | 'snappy';
  /**
   * Small, so that there are several snapshots and logs; or the default, so that everything is in
   * the log.
   */
  readonly snapCount: number;
  readonly seed: number;
}

export function nameOf({ from, to, end, compression, snapCount }: ExchangeScenario): string {
  return `${from} -> ${to} -> ${from}, ${end}, ${compression === '' ? 'plain' : compression}, snapCount ${snapCount}`;
}

/**
 * The variants for one pair of kinds: each way of ending, each snapshot format, with and without
 * snapshots in between.
 */
export function scenariosFor(from: ServerKind, to: ServerKind, seed: number): ExchangeScenario[] {
  const variants = [
    { end: 'stop', compression: '', snapCount: 100_000 },
    { end: 'kill', compression: '', snapCount: 300 },
    { end: 'kill', compression: 'gz', snapCount: 300 },
    { end: 'stop', compression: 'snappy', snapCount: 300 },
    { end: 'kill', compression: '', snapCount: 100_000 },
  ] as const;
  return variants.map((variant, index) => ({ from, to, seed: seed + index, ...variant }));
}

/**
 * Killed before any snapshot except the first: everything is replayed, so both servers pass the
 * zxids at which digests are kept.
 */
function replaysWholeLog({ end, snapCount }: ExchangeScenario): boolean {
  return end === 'kill' && snapCount === 100_000;
}

export const randomRequests = 1500;

export async function runExchange(scenario: ExchangeScenario, report: Report): Promise<void> {
  const name = nameOf(scenario);
  const folder = await mkdtemp(path.join(tmpdir(), 'tskeeper-exchange-'));
  let server: ServerProcess | undefined;
  try {
    let sessions: OpenSession[] = [];
    let before: Dump | undefined;
    for (const [turn, kind] of [scenario.from, scenario.to, scenario.from].entries()) {
      const turnFolder = path.join(folder, `turn-${turn}`);
      await mkdir(turnFolder);
      server = await startServer({
        kind,
        folder: turnFolder,
        dataDir: path.join(folder, 'data'),
        config: {
          extendedTypesEnabled: true,
          enforceQuota: true,
          maxSessionTimeout: 1_200_000,
          snapCount: scenario.snapCount,
          ...(scenario.compression === '' ? {} : { 'snapshot.compression.method': scenario.compression }),
        },
        properties: { ...superDigestProperty, ...noContainerChecks, 'log.level': 'ERROR' },
      });
      if (before !== undefined) {
        const after = await dump(server, { treeFirst: false });
        const differences = differencesBetween(before, after);
        const step = `${name}: turn ${turn + 1}, ${kind} reads what ${turn === 1 ? scenario.from : scenario.to} wrote`;
        if (differences.length === 0) report.pass(`${step} (${before.znodes.size} znodes, ${before.sessions.size} sessions)`);
        else report.fail(step, `\n    ${differences.join('\n    ')}`);
        const shared = [...after.digests.keys()].filter((zxid) => before?.digests.has(zxid)).length;
        if (after.digestMismatches !== '0') report.fail(step, `zk_digest_mismatches_count is ${after.digestMismatches}`);
        else if (shared === 0 && replaysWholeLog(scenario))
          report.fail(step, 'the servers had no tree digest in common, so none was compared');
        else report.pass(`${step}, ${shared} tree digests agreeing`);
        await resumeSessions(server.port, sessions, step, report);
      }
      if (turn === 2) break;
      sessions = await fixedWorkload(server.port, `turn-${turn}`);
      const readableBy38 = scenario.from === 'java-3.8.0' || scenario.to === 'java-3.8.0';
      await randomWorkload(server.port, scenario.seed * 10 + turn, randomRequests, { exactDigests: true, readableBy38 });
      before = await dump(server, { treeFirst: true });
      await (scenario.end === 'stop' ? server.stop() : server.kill());
    }
  } catch (error) {
    report.fail(name, error instanceof Error ? error.message : String(error));
  } finally {
    if (server?.alive === true) await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Sessions left open on one server must be resumable on the other by id and password, with their
 * ephemeral znodes, and must close properly.
 */
export async function resumeSessions(port: number, sessions: readonly OpenSession[], step: string, report: Report): Promise<void> {
  for (const { sessionId, passwd, ephemerals } of sessions) {
    const name = `${step}, session with ${ephemerals.length} ephemerals continues`;
    const client = await RawClient.connect(port, { timeOut: 600_000, sessionId, passwd });
    if (client === undefined) {
      report.fail(name, 'the server rejected it');
      continue;
    }
    const { value } = await client.call(OpCode.getEphemerals, record.pathOnly('/'));
    const held = new Set(value.ephemerals);
    await client.close();
    const witness = await RawClient.connectOrThrow(port, 10_000);
    const left: string[] = [];
    for (const ephemeral of ephemerals) {
      const { err } = await witness.call(OpCode.exists, record.pathAndWatch(ephemeral, false));
      if (err !== -101) left.push(ephemeral);
    }
    await witness.close();
    if (held.size !== ephemerals.length || ephemerals.some((ephemeral) => !held.has(ephemeral))) {
      report.fail(name, `it holds ${[...held].join(', ')}, not ${ephemerals.join(', ')}`);
    } else if (left.length > 0) report.fail(name, `${left.join()} still exists after its end`);
    else report.pass(name);
  }
}
