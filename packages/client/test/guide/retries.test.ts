/** Tests docs/guides/retries.md in virtual time: the answer to the first attempt is lost each time. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Client } from '../../src/index.ts';
import { ClientWorld } from '../support/client-world.ts';
import { text } from '../support/outcomes.ts';
import * as guide from './retries.ts';

let world: ClientWorld;
let other: Client;
let zk: Client;

beforeEach(async () => {
  world = await ClientWorld.start();
  other = await world.connect();
  for (const path of ['/config', '/address', '/jobs', '/lock']) await world.until(other.create(path, 'old'));
  zk = await world.connect();
});

afterEach(async () => {
  await world.close();
});

/** Length, header, a buffer of one byte, Stat. */
const readAnswerBytes = 4 + 16 + (4 + 1) + 68;

/** The server has applied the request, and the client does not receive the answer. */
async function losingTheAnswer<Result>(call: () => Promise<Result>): Promise<Result> {
  world.cnxn.backward.cut();
  const made = call();
  made.catch(() => undefined);
  await world.settle();
  world.break();
  return world.until(made);
}

test('a read with a lost answer succeeds in the end', async () => {
  expect(await losingTheAnswer(() => guide.readConfig(zk))).toBe('old');
});

test('an idempotent write with a lost answer succeeds in the end', async () => {
  await losingTheAnswer(() => guide.publish(zk, '10.0.0.1'));
  expect(text((await world.until(other.getData('/address'))).data)).toBe('10.0.0.1');
});

test('a protected create with a lost answer creates one znode', async () => {
  const path = await losingTheAnswer(() => guide.enqueue(zk, 'a'));
  expect((await world.until(other.getChildren('/jobs'))).children).toEqual([path.slice('/jobs/'.length)]);
  expect(path).toMatch(/^\/jobs\/_c_[0-9a-f-]{36}-job-\d{10}$/);
});

test('an increment with a lost answer adds one', async () => {
  expect(await world.until(guide.increment(zk))).toBe(1);
  expect(await world.until(guide.increment(zk))).toBe(2);
  expect(text((await world.until(other.getData('/counter'))).data)).toBe('2');
});

test('an increment that may be another client’s rejects with the outcome unknown', async () => {
  await world.until(guide.increment(zk));
  const { backward } = world.cnxn;
  // The answer to the read arrives; of the answer to the write only one byte arrives.
  backward.resetAfter(backward.deliveredBytes + readAnswerBytes + 1);
  await expect(world.until(guide.increment(zk))).rejects.toMatchObject({ code: 'ConnectionLoss', outcome: 'unknown' });
  expect(text((await world.until(other.getData('/counter'))).data)).toBe('2');
});

test('a guaranteed delete that could not be sent is done in the background', async () => {
  world.kill();
  await world.untilSo(() => zk.state === 'suspended');
  await expect(world.until(guide.remove(zk, '/lock'))).rejects.toMatchObject({ code: 'ConnectionLoss' });
  await world.boot();
  await world.untilSo(() => zk.state === 'connected');
  await world.pass(20_000);
  expect(await world.until(zk.exists('/lock'))).toBe(null);
});

test('a custom policy repeats a call that is safe to repeat, and reports each failure', async () => {
  const reported: string[] = [];
  const pause = (ms: number) => new Promise<void>((resolve) => void world.clock.after(ms, resolve));
  const note = ({ code, outcome }: { code: string; outcome: string }, attempt: number) => reported.push(`${attempt} ${code} ${outcome}`);
  const read = await losingTheAnswer(() => guide.persistently(() => zk.getData('/config'), true, note, pause));
  expect(text(read.data)).toBe('old');
  expect(reported).toEqual(['1 ConnectionLoss unknown']);
  await expect(losingTheAnswer(() => guide.persistently(() => zk.create('/config'), false, note, pause))).rejects.toMatchObject({
    outcome: 'unknown',
  });
  await expect(world.until(guide.persistently(() => zk.create('/config'), true, note, pause))).rejects.toMatchObject({
    code: 'NodeExists',
  });
  expect(reported).toHaveLength(1);
});
