/** Tests what docs/guides/recipes/leases.md says, in virtual time. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { forgetful } from '../support/faults.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';
import { Program } from '../support/troubles.ts';
import * as guide from './leases.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

test('the job stays with its host until that fails', async () => {
  const done: string[] = [];
  const hourly = (host: string) => t.until(guide.hourly(t.zk, host, () => Promise.resolve(void done.push(host))));
  expect(await hourly('one')).toBe(true);
  expect(await hourly('two')).toBe(false);
  await t.pass(60 * 60_000, 60_000);
  expect(await hourly('one')).toBe(true);
  await t.pass(71 * 60_000, 60_000);
  expect(await hourly('two')).toBe(true);
  expect(done).toEqual(['one', 'one', 'two']);
});

test('all parts are done though together they take longer than the lease', async () => {
  const aborted: boolean[] = [];
  const part = async (signal: AbortSignal) => {
    await new Promise<void>((resolve) => t.world.clock.after(50_000, resolve));
    aborted.push(signal.aborted);
  };
  await t.until(guide.allParts(t.zk, 'one', [part, part, part]), 200_000);
  expect(aborted).toEqual([false, false, false]);
});

test('three of four hosts may crawl at a time', async () => {
  const may: boolean[] = [];
  for (const host of ['a', 'b', 'c', 'd']) may.push(await t.until(guide.mayCrawl(t.zk, host)));
  expect(may).toEqual([true, true, true, false]);
});

// --- Failures while the lease is held

test('the job is done through a cut and an expired session, and stays with its host', async () => {
  const program = await Program.start(t);
  for (const trouble of ['cut', 'expire'] as const) {
    let hasBegun = false;
    let goOn = (): void => {};
    const working = guide.hourly(program.sessions, 'one', () => {
      hasBegun = true;
      return new Promise<void>((resolve) => (goOn = resolve));
    });
    await t.world.untilSo(() => hasBegun);
    await program[trouble]();
    expect(await t.until(guide.hourly(t.zk, 'two', () => Promise.resolve())), trouble).toBe(false);
    goOn();
    expect(await t.until(working), trouble).toBe(true);
  }
  await t.until(program.sessions.close());
});

test('all parts are done when the connection is cut at any moment', async () => {
  // 0 .. the number of requests to acquire a lease, renew it twice and release it.
  for (let at = 0, isHit = true; isHit; at++) {
    const forgets = await forgetful(t);
    forgets.loseAt(at);
    let done = 0;
    const part = () => Promise.resolve(void done++);
    const failure = await t.until(failureOf(guide.allParts(forgets.zk, `host ${at}`, [part, part])));
    expect([done, String(failure)], `request ${at}`).toEqual([2, 'Error: it did not fail, but gave undefined']);
    isHit = forgets.lost === 1;
    await t.until(forgets.zk.close());
  }
});

test('parts continue in the next session, and their lease is released there', async () => {
  const program = await Program.start(t);
  const aborted: boolean[] = [];
  let goOn: (() => void) | undefined;
  const part = async (signal: AbortSignal) => {
    await new Promise<void>((resolve) => (goOn = resolve));
    aborted.push(signal.aborted);
  };
  const working = guide.allParts(program.sessions, 'one', [part, part]);
  for (const trouble of ['cut', 'expire'] as const) {
    await t.world.untilSo(() => goOn !== undefined);
    await program[trouble]();
    const next = goOn!;
    goOn = undefined;
    next();
  }
  await t.until(working);
  expect(aborted).toEqual([false, false]);
  // Released: the next holder need not wait for its end.
  const begun = t.world.clock.now().elapsedMs;
  await t.until(guide.allParts(t.zk, 'two', []));
  expect(t.world.clock.now().elapsedMs - begun).toBeLessThan(10_000);
  await t.until(program.sessions.close());
});

test('no further part begins when the lease is over before its renewal is answered', async () => {
  const program = await Program.start(t);
  let begun = 0;
  const part = async () => {
    begun++;
    await new Promise<void>((resolve) => t.world.clock.after(50_000, resolve));
  };
  const working = failureOf(guide.allParts(program.sessions, 'one', [part, part]));
  await t.world.untilSo(() => begun === 1);
  // It reaches no server from here on.
  t.world.wire.name('server', []);
  t.world.break();
  await t.pass(65_000, 1000);
  expect([begun, await t.until(working)]).toMatchObject([1, { name: 'RecipeError', code: 'Lost' }]);
  t.world.wire.name('server', [t.world.address]);
  await t.until(program.sessions.close());
});

test('a host that may crawl keeps its lease through a cut and an expired session', async () => {
  const program = await Program.start(t);
  for (const trouble of ['cut', 'expire'] as const) {
    for (const host of ['a', 'b', 'c']) expect(await t.until(guide.mayCrawl(program.sessions, host)), `${host}, ${trouble}`).toBe(true);
    await program[trouble]();
    expect(await t.until(guide.mayCrawl(t.zk, 'd')), trouble).toBe(false);
  }
  await t.until(program.sessions.close());
});
