/** Servers that reject for now: they are overloaded, or have lost their quorum. */
import { ErrorCode, OpCode } from '@tskeeper/protocol';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Election, Lock, PriorityLock, Semaphore } from '../../src/index.ts';
import { fated } from '../support/fates.ts';
import { RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

const path = '/busy';

it.each([
  ['is too busy', ErrorCode.ThrottledOp],
  ['has lost its quorum', ErrorCode.NotReadOnly],
])('a lock that is released while the server %s is free in the end', async (_why, error) => {
  const refusal = { isOn: false };
  const zk = await fated(t, ({ opCode }) => (refusal.isOn && opCode === OpCode.delete ? { refused: error } : undefined));
  const hads = [
    await t.until(new Lock(zk, `${path}/a`).acquire()),
    await t.until(new Semaphore(zk, `${path}/b`, { size: 1 }).acquire()),
    await t.until(new PriorityLock(zk, `${path}/c`).writeLock(1).acquire()),
  ];
  const leadership = await t.until(new Election(zk, `${path}/d`).lead());
  refusal.isOn = true;
  for (const had of hads) await t.until(had.release());
  await t.until(leadership.resign());
  await t.pass(1000);
  for (const had of hads) expect(await t.until(t.zk.exists(had.path))).not.toBe(null);
  refusal.isOn = false;
  await t.pass(6000);
  for (const had of [...hads, leadership]) expect(await t.until(t.zk.exists(had.path)), had.path).toBe(null);
});

it('a contender that fails or gives up while the server is overloaded leaves no znode behind', async () => {
  const refusal = { isOn: false };
  const zk = await fated(t, ({ opCode }) => (refusal.isOn && opCode === OpCode.delete ? { refused: ErrorCode.ThrottledOp } : undefined));
  const held = await t.until(new Lock(t.zk, path).acquire());
  refusal.isOn = true;
  expect(await t.until(new Lock(zk, path).tryAcquire())).toBe(undefined);
  await expect(t.until(new Lock(zk, path).acquire({ timeoutMs: 100 }))).rejects.toMatchObject({ code: 'TimedOut' });
  expect(await t.childrenOf(path)).toHaveLength(3);
  refusal.isOn = false;
  await t.pass(6000);
  expect(await t.childrenOf(path)).toEqual([held.path.slice(path.length + 1)]);
});
