import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkClaims, claims } from '../../bench/clients/claims.js';
import { clientsMarkdown, fillsReadme, readmeTable, withMeasurements } from '../../bench/clients/report.js';
import { rows } from '../../bench/clients/rows.js';
import { verdicts } from '../../bench/report.js';

const repository = path.resolve(import.meta.dirname, '../..');

/** CPU per operation of each client, round by round. */
function result(server: string, ...rounds: readonly Readonly<Record<string, number>>[]) {
  const row = rows.find(({ name }) => name === 'getData-16')!;
  const demands = row.demands.filter((demand: { readonly server: string }) => demand.server === server);
  const measured = (cpuUsPerOp: number) => ({ cpuUsPerOp, throughput: 1000, p50Us: 500, p99Us: 1500 });
  return {
    ...row,
    demands,
    server,
    rounds: rounds.map((round) => Object.fromEntries(Object.entries(round).map(([client, cpu]) => [client, measured(cpu)]))),
  };
}

function page(results: readonly ReturnType<typeof result>[]): string {
  const environment = { date: '2026-01-01T00:00:00Z', node: 'v20.20.2' };
  const settings = { rounds: 2, seconds: 1, warmUp: 1 };
  return clientsMarkdown({ environment, settings, versions: { ours: '0.1.0', kazoo: '2.11.0' }, results, failures: [] });
}

describe('the page of the clients', () => {
  it('shows medians, and ratios within each round', () => {
    const text = page([result('ours', { ours: 4, kazoo: 100 }, { ours: 8, kazoo: 400 }, { ours: 6, kazoo: 120 })]);
    expect(text).toContain('| @tskeeper/client | 6.00 | 1,000 | 0.50 | 1.50 |  |');
    expect(text).toContain('| kazoo | 120 | 1,000 | 0.50 | 1.50 | 0.04 x |');
  });

  it("requires half of the CPU of other clients, and accepts little more than a bare socket needs with Apache's server", () => {
    const of = (server: string, round: Readonly<Record<string, number>>) =>
      verdicts([result(server, round)]).map(({ against, verdict }) => [against, verdict]);
    const [met, missed] = ['met', 'missed'];
    expect(of('ours', { ours: 10, 'node-zookeeper-client': 20, kazoo: 19, bare: 1 })).toEqual([
      ['node-zookeeper-client', met],
      ['kazoo', missed],
    ]);
    const nearTheSocket = { ours: 10, 'node-zookeeper-client': 15, kazoo: 15, bare: 8 };
    expect(of('ours', nearTheSocket)).toEqual([
      ['node-zookeeper-client', missed],
      ['kazoo', missed],
    ]);
    expect(of('java', nearTheSocket)).toEqual([
      ['node-zookeeper-client', met],
      ['kazoo', met],
    ]);
  });

  it("has tripwires with our server, and goals with Apache's, which sends replies one by one", () => {
    const levels = (server: string) => [...new Set(verdicts([result(server, { ours: 1 })]).map(({ level }) => level))];
    expect([levels('ours'), levels('java')]).toEqual([['tripwire'], ['goal']]);
  });
});

describe('the table in the README of the client', () => {
  it('has the numbers of the last run', async () => {
    const report = JSON.parse(await readFile(path.join(repository, 'bench/results/clients.json'), 'utf8'));
    const readme = await readFile(path.join(repository, 'packages/client/README.md'), 'utf8');
    expect(fillsReadme(report)).toBe(true);
    expect(readme).toContain(readmeTable(report));
    expect(withMeasurements(readme, report)).toBe(readme);
    expect(withMeasurements(readme, { ...report, dependencies: { ...report.dependencies, ours: 7 } })).not.toBe(readme);
  });

  it('is not written by an incomplete run', () => {
    expect(fillsReadme({ results: [], versions: { ours: '0.1.0' } })).toBe(false);
  });
});

describe('claims about other clients', () => {
  it('are patterns that match the source, or must not match', () => {
    for (const { has, lacks } of claims) expect([has, lacks].filter((pattern) => pattern !== undefined)).toHaveLength(1);
  });

  it('fail the run when they are not true', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'tskeeper-'));
    try {
      await mkdir(path.join(folder, 'lib', 'deep'), { recursive: true });
      await writeFile(path.join(folder, 'lib', 'deep', 'a.js'), 'function addWatch() {}\n');
      const claimed = (claim: object) => ({ client: 'other', says: 'so it is', in: ['lib'], ...claim });
      const faults = (claim: object) => checkClaims([{ kind: 'other', sourceFolder: folder }], [claimed(claim)]);
      expect(await faults({ has: /addWatch/ })).toEqual([]);
      expect(await faults({ lacks: /removeWatches/ })).toEqual([]);
      expect(await faults({ lacks: /addWatch/ })).toEqual(['other: it is not true that so it is: something is like /addWatch/']);
      expect(await faults({ has: /removeWatches/ })).toEqual(['other: it is not true that so it is: nothing is like /removeWatches/']);
      expect(await faults({ in: ['src'], has: /x/ })).toEqual(['other: it is not true that so it is: there is no src to look at']);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});
