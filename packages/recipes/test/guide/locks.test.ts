/** What docs/guides/recipes/locks.md says, in virtual time. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Lock, PriorityLock, SharedLock } from '../../src/index.ts';
import { RecipeWorld } from '../support/recipe-world.ts';
import { Program } from '../support/troubles.ts';
import * as guide from './locks.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

test('a counter that many count up misses nothing', async () => {
  await t.until(t.zk.create('/counter', '0'));
  const clients = await Promise.all([t.client(), t.client(), t.client()]);
  const counted = await t.until(Promise.all(clients.flatMap((zk) => [guide.countUp(zk), guide.countUp(zk)])));
  expect(counted.toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6]);
});

test('reports are written with a token, and no more of them when the lock is lost', async () => {
  const written: string[] = [];
  const running = guide.writeReport(t.zk, async (report) => {
    written.push(report);
    const [holder] = await new Lock(t.zk, '/locks/report').contenders();
    await t.zk.delete(holder!.path);
  });
  await expect(t.until(running)).rejects.toMatchObject({ name: 'RecipeError', code: 'Lost' });
  expect(written).toEqual(['january']);
});

test('lines that belong together stand together, whoever has the lock', async () => {
  await t.until(t.zk.create('/log'));
  const other = await t.client();
  await t.until(Promise.all([guide.appendBoth(t.zk, 'a', 'b'), guide.append(other, 'c'), guide.appendBoth(other, 'd', 'e')]));
  const lines = (await t.childrenOf('/log')).toSorted();
  const texts = await t.until(Promise.all(lines.map(async (name) => (await t.zk.getData(`/log/${name}`)).data)));
  expect(texts.map((text) => new TextDecoder().decode(text ?? undefined)).join('')).toMatch(/^(?:ab|c|de){3}$/);
});

test('things are moved to and fro by two at once', async () => {
  await t.until(t.zk.create('/things/a', '', { parents: true }));
  const other = await t.client();
  await t.until(Promise.allSettled([guide.move(t.zk, 'a', 'b'), guide.move(other, 'b', 'a'), guide.move(t.zk, 'a', 'b')]));
  expect((await t.childrenOf('/things')).length).toBe(1);
});

test('work stands still while there is no connection', async () => {
  const held = await t.until(new Lock(await t.client(), '/locks/a').acquire());
  const steps: string[] = [];
  guide.pauses(
    held,
    () => steps.push('pause'),
    () => steps.push('go on'),
  );
  t.world.break();
  await t.pass(1000);
  expect(steps).toEqual(['pause', 'go on']);
});

test('a writer gets the lock from readers that consent, and from one that does not', async () => {
  const queries: number[] = [];
  const query = async () => {
    await new Promise<void>((resolve) => t.world.clock.after(700, resolve));
    queries.push(queries.length);
  };
  const reading = guide.readUntilAsked(await t.client(), query);
  const silent = await t.until(new SharedLock(await t.client(), '/locks/index').reading.acquire());
  await t.pass(2000);
  const rebuilding = guide.rebuild(t.zk, () => Promise.resolve());
  await t.until(reading);
  expect(silent.state).toBe('held');
  await t.until(rebuilding);
  expect(silent.state).toBe('lost');
  expect(queries.length).toBeGreaterThan(2);
});

test('urgent work gets the lock from work that has time', async () => {
  const steps: string[] = [];
  const slow = guide.whenThereIsTime(await t.client(), async (asked) => {
    while (!asked.aborted) await new Promise<void>((resolve) => t.world.clock.after(100, resolve));
    const [holder] = await new PriorityLock(t.zk, '/locks/table').holders();
    steps.push(`asked, and holds by ${holder!.kind}`);
  });
  await t.pass(1000);
  await t.until(guide.urgently(t.zk, () => Promise.resolve(void steps.push('urgent'))));
  await t.until(slow);
  expect(steps).toEqual(['asked, and holds by read-90-', 'urgent']);
});

test('who has a lock can be seen', async () => {
  await t.until(new Lock(t.zk, '/locks/a', { data: 'one' }).acquire());
  void new Lock(t.zk, '/locks/a', { data: 'two' }).acquire().catch(() => undefined);
  await t.settle();
  expect(await t.until(guide.shows(t.zk, '/locks/a'))).toEqual(['one', 'two']);
});

test('counting, writing and moving go on after a cut, and in the next session', async () => {
  await t.until(Promise.all([t.zk.create('/counter', '0'), t.zk.create('/log'), t.zk.create('/things/a', '', { parents: true })]));
  const { sessions, ...program } = await Program.start(t).then((each) => ({
    sessions: each.sessions,
    cut: () => each.cut(),
    expire: () => each.expire(),
  }));
  const inTheWay = await t.client({ sessionTimeoutMs: 60_000 });
  for (const trouble of [program.cut, program.expire]) {
    const held = await t.until(
      Promise.all(['counter', 'log', 'a', 'report'].map((name) => new Lock(inTheWay, `/locks/${name}`).acquire())),
    );
    const reports: bigint[] = [];
    const all = [
      guide.countUp(sessions),
      guide.appendBoth(sessions, 'a', 'b'),
      guide.move(sessions, 'a', 'b').then(() => guide.move(sessions, 'b', 'a')),
      guide.writeReport(sessions, (_report, token) => Promise.resolve(void reports.push(token))),
    ];
    await t.settle();
    await trouble();
    await t.until(Promise.all(held.map((each) => each.release())));
    await t.until(Promise.all(all));
    expect(reports).toHaveLength(2);
  }
  expect(new TextDecoder().decode((await t.until(t.zk.getData('/counter'))).data ?? undefined)).toBe('2');
  expect(await t.childrenOf('/log')).toHaveLength(4);
  expect(await t.childrenOf('/things')).toEqual(['a']);
  await t.until(sessions.close());
});

test('the index is rebuilt, and the table worked on, in the next session', async () => {
  const program = await Program.start(t);
  const reader = await t.client({ sessionTimeoutMs: 60_000 });
  const reading = await t.until(new SharedLock(reader, '/locks/index').reading.acquire());
  const steps: string[] = [];
  const working = guide.whenThereIsTime(reader, async (asked) => {
    while (!asked.aborted) await new Promise<void>((resolve) => t.world.clock.after(100, resolve));
  });
  await t.pass(500);
  const both = [
    guide.rebuild(program.sessions, () => Promise.resolve(void steps.push('rebuilt'))),
    guide.urgently(program.sessions, () => Promise.resolve(void steps.push('urgent'))),
  ];
  await program.expire();
  await t.until(Promise.all([...both, working]));
  expect(steps.sort()).toEqual(['rebuilt', 'urgent']);
  expect(reading.state).toBe('lost');
  await t.until(program.sessions.close());
});
