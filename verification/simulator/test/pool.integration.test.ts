/** The processes that run seeds: one that loops or exits loses only its own seed. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { emptyReport, Pool, type SeedReport } from '../src/internal.ts';

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'tskeeper-pool-'))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** The findings of seeds 1, 2 and 3 with a program that does `work` for seed 2. */
async function findings(work: string, seedMaxMs: number): Promise<[number, readonly string[]][]> {
  const program = join(folder, 'worker.mjs');
  const answer = `process.send({ ...${JSON.stringify(emptyReport)}, seed, findings: [] })`;
  writeFileSync(program, `process.on('message', ({ seed }) => { if (seed === 2) { ${work} } ${answer}; });`);
  const seeds = [1, 2, 3];
  const reports: SeedReport[] = [];
  await new Pool({ jobs: 1, program, seedMaxMs }).run(
    () => seeds.shift(),
    (report) => reports.push(report),
  );
  return reports.map(({ seed, findings: found }) => [seed, found]);
}

test('a process that never ends is killed, and the next seeds run', async () => {
  const received = 'run: its process was killed because it was still running after 2000 ms';
  expect(await findings('for (;;);', 2000)).toEqual([
    [1, []],
    [2, [received]],
    [3, []],
  ]);
});

test('a process that exits is reported, and the next seeds run', async () => {
  expect(await findings('process.exit(7);', 120_000)).toEqual([
    [1, []],
    [2, ['run: its process ended with code 7']],
    [3, []],
  ]);
});
