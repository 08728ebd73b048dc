/** Tests what docs/guides/recipes/queues.md says, in virtual time. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { DelayQueue, IdQueue, PriorityQueue, Queue } from '../../src/index.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';
import { Program } from '../support/troubles.ts';
import * as guide from './queues.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

const textOf = (data: Uint8Array | null) => new TextDecoder().decode(data ?? undefined);

test('announcements are received in order, until the signal is aborted', async () => {
  const reports: string[] = [];
  const stop = new AbortController();
  const listening = failureOf(guide.listen(await t.client(), (text) => reports.push(text), stop.signal));
  await t.until(guide.announce(t.zk, ['one', 'two', 'three']));
  await t.pass(500);
  stop.abort(new Error('enough'));
  expect(await t.until(listening)).toMatchObject({ message: 'enough' });
  expect(reports).toEqual(['one', 'two', 'three']);
  expect(await t.childrenOf('/news-aside/marks')).toEqual([]);
});

test('failed work is repeated, and finally put aside', async () => {
  await t.until(new Queue(t.zk, '/jobs').putAll(['good', 'bad']));
  const done: string[] = [];
  const stop = new AbortController();
  const job = (text: string): Promise<void> => {
    done.push(text);
    return text === 'bad' ? Promise.reject(new Error('it cannot be done')) : Promise.resolve();
  };
  const working = failureOf(guide.work((await Program.start(t)).sessions, job, stop.signal));
  await t.pass(1000);
  stop.abort(new Error('enough'));
  await t.until(working);
  expect(done).toEqual(['good', 'bad', 'bad', 'bad']);
  const [name] = await t.childrenOf('/failed');
  expect(textOf((await t.until(t.zk.getData(`/failed/${name!}`))).data)).toBe('bad');
  expect(await t.until(new Queue(t.zk, '/jobs').size())).toBe(0);
});

test('items are counted once, though they are claimed twice', async () => {
  await t.until(t.zk.create('/total', '0'));
  const queue = new Queue(t.zk, '/amounts');
  await t.until(queue.put('5'));
  const lost = await t.until(queue.claim());
  await t.until(t.zk.delete(lost.claimPath));
  const again = await t.until(new Queue(await t.client(), '/amounts').claim());
  await t.until(guide.count(t.zk, again));
  expect(await t.until(failureOf(guide.count(t.zk, lost)))).toMatchObject({ code: 'Lost' });
  expect(textOf((await t.until(t.zk.getData('/total'))).data)).toBe('5');
});

test('urgent items are delivered first, reminders later, and cancelled items never', async () => {
  await t.until(guide.report(t.zk, 'slow', false));
  await t.until(guide.report(t.zk, 'down', true));
  expect(textOf((await t.until(new PriorityQueue(t.zk, '/troubles').take())).data)).toBe('down');
  await t.until(guide.remind(t.zk, 'order 12'));
  const reminders = new DelayQueue(t.zk, '/reminders');
  expect(await t.until(reminders.tryTake())).toBe(undefined);
  await t.world.pass(60_000, 1000);
  expect(textOf((await t.until(reminders.take())).data)).toBe('order 12');
  await t.until(new IdQueue(t.zk, '/orders').put('a book', { id: 'order 12' }));
  expect(await t.until(guide.cancel(t.zk, 'order 12'))).toBe(1);
});

test('a queue can be listed', async () => {
  const queue = new Queue(t.zk, '/jobs');
  await t.until(queue.putAll(['a', 'b']));
  await t.until(queue.claim());
  expect(await t.until(guide.shows(t.zk, '/jobs'))).toEqual(['queue-0000000000 (in process)', 'queue-0000000001']);
});

test("letters in Curator's format are delivered, however many one znode has, and claimed meanwhile", async () => {
  const several = Buffer.from('0001000101000000036f6e65010000000374776f02', 'hex');
  await t.until(t.zk.create('/mail/queue-', several, { mode: 'persistentSequential', parents: true }));
  const delivered: string[] = [];
  const deliver = async (letter: string): Promise<void> => {
    delivered.push(`${letter}, below ${(await t.childrenOf('/mail-locks')).join()}`);
  };
  for (let turn = 0; turn < 2; turn++) await t.until(guide.relay(t.zk, `of ours ${turn}`, deliver));
  expect(delivered).toEqual(['one, below queue-0000000000', 'two, below queue-0000000000', 'of ours 0, below queue-0000000001']);
  expect(await t.childrenOf('/mail')).toEqual(['queue-0000000002']);
  expect(await t.childrenOf('/mail-locks')).toEqual([]);
});

test('news are announced and received through cut connections and new sessions, each at most once', async () => {
  const [speaker, listener] = [await Program.start(t), await Program.start(t)];
  const reports: string[] = [];
  const stop = new AbortController();
  const listening = failureOf(guide.listen(listener.sessions, (line) => reports.push(line), stop.signal));
  for (const trouble of [() => speaker.cut(), () => listener.cut(), () => speaker.expire(), () => listener.expire()]) {
    await trouble();
    await t.until(guide.announce(speaker.sessions, ['one', 'two']));
    await t.world.untilSo(() => reports.length % 2 === 0 && reports.length > 0);
  }
  await t.world.untilSo(() => reports.length === 8);
  expect(reports.join(' ')).toBe('one two one two one two one two');
  stop.abort(new Error('enough'));
  expect(await t.until(listening)).toMatchObject({ message: 'enough' });
  await t.until(Promise.all([speaker.sessions.close(), listener.sessions.close()]));
});

test('a job that is in process when the connection is cut, or the session expires, is still done', async () => {
  const program = await Program.start(t);
  const jobs = new Queue(t.zk, '/jobs');
  const done: string[] = [];
  const stop = new AbortController();
  let finish: (() => void) | undefined;
  const job = async (text: string) => {
    await new Promise<void>((resolve) => (finish = resolve));
    done.push(text);
  };
  const working = failureOf(guide.work(program.sessions, job, stop.signal));
  for (const [text, trouble] of [
    ['cut', () => program.cut()],
    ['expired', () => program.expire()],
  ] as const) {
    finish = undefined;
    const other = new Queue(await t.client(), '/jobs');
    await t.until(other.put(text));
    await t.world.untilSo(() => finish !== undefined);
    await trouble();
    // The job that ends now began before the failure; after the end of the session it begins again.
    const first = finish!;
    finish = undefined;
    first();
    if (text === 'expired') {
      await t.world.untilSo(() => finish !== undefined);
      finish!();
    }
    await t.world.untilSo(() => done.at(-1) === text);
    await t.settle();
    expect(await t.until(other.size())).toBe(0);
  }
  expect(done).toEqual(['cut', 'expired', 'expired']);
  stop.abort(new Error('enough'));
  expect(await t.until(working)).toMatchObject({ message: 'enough' });
  await t.until(Promise.all([jobs.close(), program.sessions.close()]));
});
