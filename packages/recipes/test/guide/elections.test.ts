/** Tests what docs/guides/recipes/elections.md says, in virtual time. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Election, type Leadership } from '../../src/index.ts';
import { forgetful } from '../support/faults.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';
import { Program } from '../support/troubles.ts';
import * as guide from './elections.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

test('one candidate leads, and the next one does when its znode is deleted', async () => {
  await t.until(t.zk.create('/settings'));
  const stop = new AbortController();
  const received: string[] = [];
  const telling = guide.tellLeaders(t.zk, (leader) => received.push(leader), stop.signal);
  const work = (signal: AbortSignal) => new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
  const running = [];
  for (const id of ['one', 'two']) {
    running.push(guide.leadForever(await t.client(), id, work, stop.signal));
    await t.settle();
  }
  const [leader] = await t.until(new Election(t.zk, '/election').contenders());
  await t.until(t.zk.delete(leader!.path));
  await t.settle();
  expect(new TextDecoder().decode((await t.until(t.zk.getData('/settings'))).data ?? undefined)).toBe('led by two');
  expect(received).toEqual(['no leader', 'one, from now on', 'one', 'two, from now on', 'two']);
  stop.abort(new Error('the end'));
  await expect(telling).rejects.toThrow('the end');
  for (const each of await t.until(Promise.allSettled(running)))
    expect(each.status === 'fulfilled' || each.reason === stop.signal.reason).toBe(true);
});

test('a side task runs while one candidate leads, and another is done once by the leader', async () => {
  const steps: string[] = [];
  const start = () => {
    steps.push('start');
    return () => steps.push('stop');
  };
  const candidate = guide.whileLeading(await t.client(), 'one', start);
  await t.until(candidate.waitForLeadership());
  const once = guide.onceAsLeader(t.zk, 'two', () => Promise.resolve(void steps.push('once')));
  await t.settle();
  await t.until(candidate.close());
  await t.until(once);
  expect(steps).toEqual(['start', 'stop', 'once']);
});

/** Leads until its signal is aborted; `began` counts the terms. */
function workOf(began: () => void): (signal: AbortSignal) => Promise<void> {
  return (signal) => {
    began();
    return new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
  };
}

test('leadForever leads again after a cut at any moment of its leadership', async () => {
  await t.until(t.zk.create('/settings'));
  for (const sent of ['multi', 'create2', 'getChildren2', 'exists'] as const) {
    const forgets = await forgetful(t);
    const { zk } = forgets;
    forgets.lose(sent);
    const stop = new AbortController();
    let terms = 0;
    const leading = failureOf(
      guide.leadForever(
        zk,
        sent,
        workOf(() => terms++),
        stop.signal,
      ),
    );
    const isOver = leading.then(String);
    await t.world.untilSo(() => terms > 0);
    // Once more, while it leads.
    t.world.break();
    await t.pass(1000);
    expect([forgets.lost, await Promise.race([isOver, Promise.resolve('goes on')])], sent).toEqual([1, 'goes on']);
    stop.abort(new Error('the end'));
    expect(await t.until(leading)).toMatchObject({ message: 'the end' });
    await t.until(zk.close());
  }
});

test('leadForever leads again in the next session, and an observer sees it', async () => {
  await t.until(t.zk.create('/settings'));
  const program = await Program.start(t);
  const stop = new AbortController();
  const received: string[] = [];
  let terms = 0;
  const onlooker = await Program.start(t);
  const telling = failureOf(guide.tellLeaders(onlooker.sessions, (leader) => received.push(leader), stop.signal));
  const leading = failureOf(
    guide.leadForever(
      program.sessions,
      'one',
      workOf(() => terms++),
      stop.signal,
    ),
  );
  await t.world.untilSo(() => terms === 1);
  await program.cut();
  await onlooker.cut();
  await program.expire();
  await t.world.untilSo(() => terms === 2);
  await onlooker.expire();
  await t.settle();
  const once = guide.onceAsLeader(onlooker.sessions, 'once', () => Promise.resolve());
  await onlooker.expire();
  stop.abort(new Error('the end'));
  await t.until(once);
  expect(await t.until(Promise.all([leading, telling]))).toMatchObject([{ message: 'the end' }, { message: 'the end' }]);
  expect(received).toContain('no leader');
  expect(received.filter((line) => line === 'one, from now on').length).toBeGreaterThanOrEqual(2);
  await t.until(Promise.all([program.sessions.close(), onlooker.sessions.close()]));
});

test('a side task continues through a cut, stops when the session expires, and begins again in the next', async () => {
  const program = await Program.start(t);
  const steps: string[] = [];
  const start = (name: string) => (leadership: Leadership) => {
    steps.push(`${name} starts`);
    return () => void steps.push(`${name} stops, ${leadership.state}`);
  };
  const one = guide.whileLeading(program.sessions, 'one', start('one'));
  await t.until(one.waitForLeadership());
  const two = guide.whileLeading(await t.client(), 'two', start('two'));
  await t.settle();
  await program.cut();
  await t.pass(2000);
  expect(steps).toEqual(['one starts']);
  await program.expire();
  await t.until(two.waitForLeadership());
  expect(steps.toSorted()).toEqual(['one starts', 'one stops, lost', 'two starts']);
  // It queues again, and leads when the other has left.
  await t.until(two.close());
  await t.until(one.waitForLeadership());
  expect(steps.slice(-2)).toEqual(['two stops, held', 'one starts']);
  await program.expire();
  await t.until(one.waitForLeadership());
  expect(steps.slice(-2)).toEqual(['one stops, lost', 'one starts']);
  await t.until(one.close());
  expect(steps.at(-1)).toBe('one stops, held');
  await t.until(program.sessions.close());
});

test('a side task begins once after a cut at any moment before', async () => {
  for (const sent of ['create2', 'getChildren2'] as const) {
    const forgets = await forgetful(t);
    forgets.lose(sent);
    const steps: string[] = [];
    const candidate = guide.whileLeading(forgets.zk, sent, () => {
      steps.push('start');
      return () => steps.push('stop');
    });
    await t.until(candidate.waitForLeadership());
    await t.settle();
    expect([forgets.lost, steps], sent).toEqual([1, ['start']]);
    await t.until(candidate.close());
    expect(steps, sent).toEqual(['start', 'stop']);
    await t.until(forgets.zk.close());
  }
});
