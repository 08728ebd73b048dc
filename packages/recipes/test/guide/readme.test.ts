/** What the README at the root shows of recipes, in virtual time. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { RecipeWorld } from '../support/recipe-world.ts';
import * as readme from './readme.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

const textAt = async (path: string): Promise<string> => new TextDecoder().decode((await t.until(t.zk.getData(path))).data ?? undefined);

test('a lock: one at a time, and a write of whom it was lost by is refused', async () => {
  await t.until(t.zk.create('/report', 'none'));
  const steps: string[] = [];
  const make = (name: string) => async () => {
    steps.push(`${name} begins`);
    await new Promise<void>((resolve) => t.world.clock.after(1000, resolve));
    steps.push(`${name} ends`);
    return `by ${name}`;
  };
  const writing = ['anna', 'bert'].map(async (name) => readme.writeReport(await t.client(), make(name)));
  await t.until(Promise.all(writing));
  expect([steps[0]!.split(' ')[0], steps[2]!.split(' ')[0]]).toEqual([steps[1]!.split(' ')[0], steps[3]!.split(' ')[0]]);
  const before = await textAt('/report');
  const broken = readme.writeReport(t.zk, async () => {
    const [holder] = await t.childrenOf('/locks/report');
    await t.zk.delete(`/locks/report/${holder}`);
    return 'too late';
  });
  await expect(t.until(broken)).rejects.toMatchObject({ code: 'Lost' });
  expect(await textAt('/report')).toBe(before);
});

test('an election: the next one leads when the leader is gone', async () => {
  await t.until(t.zk.create('/leader'));
  const untilAborted = (signal: AbortSignal) => new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
  const anna = await t.client();
  const leads = readme.takePart(anna, 'anna', untilAborted);
  await t.settle();
  const next = readme.takePart(t.zk, 'bert', () => Promise.resolve());
  await t.settle();
  expect(await textAt('/leader')).toBe('anna');
  await t.until(anna.close());
  await t.until(next);
  await t.until(leads);
  expect(await textAt('/leader')).toBe('bert');
});

test('a barrier: rounds are begun and ended together', async () => {
  const lines: string[] = [];
  let ms = 0;
  const measure = (name: string) => async () => {
    lines.push(`${name} begins`);
    await new Promise<void>((resolve) => t.world.clock.after((ms += 100), resolve));
    lines.push(`${name} ends`);
  };
  const names = ['anna', 'bert', 'cleo'];
  await t.until(Promise.all(names.map(async (name) => readme.measureTogether(await t.client(), 3, 2, measure(name)))));
  const words = lines.map((line) => line.split(' ')[1]);
  expect(words).toEqual(['begins', 'begins', 'begins', 'ends', 'ends', 'ends', 'begins', 'begins', 'begins', 'ends', 'ends', 'ends']);
});
