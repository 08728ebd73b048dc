/**
 * The whole server, through one story per seed. `TSKEEPER_WORLD_SEED=7` runs that seed alone; `TSKEEPER_WORLD_SEEDS=5000` runs so many.
 */
import { expect, test } from 'vitest';
import { check } from './check.ts';
import { runSeed } from './scenario.ts';

const only = process.env['TSKEEPER_WORLD_SEED'];
const first = only === undefined ? 1 : Number(only);
const count = only === undefined ? Number(process.env['TSKEEPER_WORLD_SEEDS'] ?? 320) : 1;
/** The rare ways that a run must really have taken; without them it would prove less than it says. */
const marks = ['power', 'kill', 'stop', 'pause', 'cut', 'move', 'sleep', 'wire', 'slow disk', 'failed', 'EIO of sync', 'ENOSPC of write'];

test(`${count} seeds hold what a server promises, whatever happens`, { timeout: 60_000 + count * 2000 }, async () => {
  const struck = new Map<string, number>();
  for (let seed = first; seed < first + count; seed++) {
    const replay = `TSKEEPER_WORLD_SEED=${seed} npx vitest run --project unit packages/runtime/test/world/seeds.test.ts`;
    const outcome = await runSeed(seed).catch((error: unknown) => {
      throw new Error(`${replay}\nthe story broke off`, { cause: error });
    });
    const faults = check(outcome.recording);
    if (faults.length > 0) throw new Error(`${replay}\n${faults.slice(0, 20).join('\n')}\n${faults.length} in all`);
    for (const [kind, times] of outcome.struck) struck.set(kind, (struck.get(kind) ?? 0) + times);
  }
  expect(only === undefined ? marks.filter((mark) => !struck.has(mark)) : []).toEqual([]);
});

test('the same seed tells the same story, and another one another', async () => {
  const traces: number[] = [];
  for (const seed of [3, 3, 4]) traces.push((await runSeed(seed)).world.trace);
  expect(traces[1]).toBe(traces[0]);
  expect(traces[2]).not.toBe(traces[0]);
});
