/**
 * The differential part of interop: starts the two servers, runs the stream, and evaluates the
 * result.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { type ServerKind, type ServerProcess, startServer } from '@tskeeper/harness';
import type { Report } from '../report.ts';
import { noContainerChecks, superDigestProperty } from '../settings.ts';
import type { Difference } from './compare.ts';
import { type DifferentialResult, runDifferential } from './differential.ts';
import { type Justification, justifiedDifferences, knownVersionDifferences } from './justified-differences.ts';

export const reference: ServerKind = 'java-3.9.5';
/** Enough requests to show each known difference between two ZooKeeper versions many times. */
const canaryOperations = 5000;
/** Differences printed in full; the rest are counted. */
const printedMax = 25;

async function withServers<T>(kinds: readonly ServerKind[], use: (servers: readonly ServerProcess[]) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(path.join(tmpdir(), 'tskeeper-differential-'));
  const servers: ServerProcess[] = [];
  try {
    for (const [index, kind] of kinds.entries()) {
      const own = path.join(folder, String(index));
      await mkdir(own);
      servers.push(
        await startServer({
          kind,
          folder: own,
          config: { extendedTypesEnabled: true, enforceQuota: true, maxSessionTimeout: 1_200_000 },
          properties: { ...superDigestProperty, ...noContainerChecks, 'log.level': 'OFF' },
        }),
      );
    }
    return await use(servers);
  } finally {
    for (const server of servers) if (server.alive) await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Proves that the comparison detects differences: runs two versions of ZooKeeper, whose differences
 * are known.
 */
export async function runCanary(seed: number, report: Report): Promise<void> {
  const result = await withServers([reference, 'java-3.8.0'], ([a, b]) =>
    runDifferential({ portA: a!.port, portB: b!.port, seed, operations: canaryOperations }),
  );
  for (const known of knownVersionDifferences) {
    const count = result.differences.filter(known.shows).length;
    const name = `differential, canary: ${reference} and java-3.8.0 differ in that ${known.id}`;
    if (count > 0) report.pass(`${name} (${count} times)`);
    else report.fail(name, `not seen in ${result.operations} operations`);
  }
}

export async function runComparison(kind: ServerKind, seed: number, operations: number, report: Report): Promise<void> {
  const name = `differential: ${operations} operations against ${reference} and ${kind}, seed ${seed}`;
  const { result, ended } = await withServers([reference, kind], async ([a, b]) => {
    const outcome = await runDifferential({ portA: a!.port, portB: b!.port, seed, operations, stopWhen: () => !a!.alive || !b!.alive });
    return { result: outcome, ended: [a!, b!].filter((server) => !server.alive).map((server) => server.kind) };
  });
  describe(result, report);
  for (const server of ended) report.fail(name, `${server} ended during the run`);
  // Between two servers of one kind nothing is justified.
  reportComparison({ name, result, operations, rules: kind === 'ours' ? justifiedDifferences : [], a: reference, b: kind }, report);
}

export interface ComparisonRun {
  readonly name: string;
  readonly result: DifferentialResult;
  /** The number of requested operations. */
  readonly operations: number;
  /** The allowed differences. */
  readonly rules: readonly Justification[];
  /** Names of the two sides. */
  readonly a: string;
  readonly b: string;
}

/** Passes or fails a run, and prints the differences. */
export function reportComparison({ name, result, operations, rules, a: nameA, b: nameB }: ComparisonRun, report: Report): void {
  const explained = new Map<string, number>();
  const unexplained: Difference[] = [];
  for (const difference of result.differences) {
    const rule = rules.find((candidate) => candidate.explains(difference));
    if (rule === undefined) unexplained.push(difference);
    else explained.set(rule.id, (explained.get(rule.id) ?? 0) + 1);
  }
  for (const [id, count] of explained) report.note(`${count} differences justified by ${id}`);
  for (const { round, client, op, text, field, a, b } of unexplained.slice(0, printedMax)) {
    report.note(`round ${round}, client ${client}, ${op} ${field}: ${nameA} ${a}, ${nameB} ${b}\n      ${text}`);
  }
  if (unexplained.length > printedMax) {
    const kinds = new Map<string, number>();
    for (const { op, field } of unexplained) kinds.set(`${op} ${field}`, (kinds.get(`${op} ${field}`) ?? 0) + 1);
    for (const [what, count] of [...kinds].toSorted((x, y) => y[1] - x[1])) report.note(`${count} x ${what}`);
  }
  if (unexplained.length === 0 && result.operations >= operations) report.pass(`${name}, no unexplained difference`);
  else report.fail(name, `${unexplained.length} unexplained differences after ${result.operations} operations`);
}

function describe({ operations, rounds, replies, events, byOpcode }: DifferentialResult, report: Report): void {
  const opcodes = [...byOpcode].toSorted((a, b) => b[1] - a[1]).map(([op, count]) => `${op} ${count}`);
  report.note(`${operations} operations in ${rounds} rounds; ${replies} replies and ${events} events compared`);
  report.note(`by opcode, those inside a multi included: ${opcodes.join(', ')}`);
}
