/**
 * One answer is lost, at each step of each recipe that stands in a line: the request was carried out, and the connection breaks. After a create whose answer was lost
 * the client lists the children and looks for the guid. In each case the recipe goes on, with the znodes that there are without a loss, and leaves none behind.
 */
import { type Client, KeeperError } from '@tskeeper/client';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Candidate, Election, EventHandle, Lease, Lock, MultiLock, PriorityLock, Semaphore, SharedLock } from '../../src/index.ts';
import { forgetful } from '../support/faults.ts';
import { RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

/** Comes to hold, and tells how to give it back. */
type Recipe = (zk: Client, path: string) => Promise<() => Promise<unknown>>;

const recipes: Record<string, Recipe> = {
  Lock: async (zk, path) => {
    const held = await new Lock(zk, path).acquire();
    return () => held.release();
  },
  'SharedLock, reading, revocable': async (zk, path) => {
    const held = await new SharedLock(zk, path).reading.acquire({ onRevocation: () => undefined });
    return () => held.release();
  },
  'Lock, tried': async (zk, path) => {
    const held = await new Lock(zk, path).tryAcquire();
    return () => held!.release();
  },
  Semaphore: async (zk, path) => {
    const held = await new Semaphore(zk, path, { size: 3 }).acquireMany(2);
    return () => held.release();
  },
  'Semaphore, tried': async (zk, path) => {
    const held = await new Semaphore(zk, path, { size: 3 }).tryAcquire();
    return () => held!.release();
  },
  MultiLock: async (zk, path) => {
    const held = await new MultiLock([new Lock(zk, `${path}/b`), new SharedLock(zk, `${path}/a`).writing]).acquire();
    return () => held.release();
  },
  PriorityLock: async (zk, path) => {
    const held = await new PriorityLock(zk, path).writing(7).acquire();
    return () => held.release();
  },
  Election: async (zk, path) => {
    const leadership = await new Election(zk, path).lead();
    return () => leadership.resign();
  },
  Candidate: async (zk, path) => {
    const candidate = new Candidate(zk, path);
    await candidate.leading();
    return () => candidate.close();
  },
  Lease: async (zk, path) => {
    const held = await new Lease(zk, path, { holder: 'one', durationMs: 60_000 }).acquire();
    return () => held.release();
  },
  'EventHandle that resets itself': async (zk, path) => {
    const event = new EventHandle(zk, path, { autoReset: true });
    await event.set();
    await event.wait();
    return () => event.reset();
  },
};

/** What there is, without guids and numbers. */
async function shapeOf(path: string): Promise<readonly string[]> {
  const shape: string[] = [];
  try {
    for await (const { path: each } of t.zk.walk(path)) shape.push(each.slice(path.length).replaceAll(/_c_[0-9a-f-]{36}-|\d{10}/g, ''));
  } catch (error) {
    if (!KeeperError.is(error, 'NoNode')) throw error;
  }
  return shape.toSorted();
}

async function run(recipe: Recipe, zk: Client, path: string): Promise<readonly (readonly string[])[]> {
  const giveBack = await t.until(recipe(zk, path));
  await t.pass(1000);
  const held = await t.until(shapeOf(path));
  await t.until(giveBack());
  await t.pass(1000);
  return [held, await t.until(shapeOf(path))];
}

it.each(Object.keys(recipes))('C1-23, C1-3: the loss of any one answer leaves the znodes that there are without it: %s', async (name) => {
  const recipe = recipes[name]!;
  const { zk: counted, lines } = await t.recorded();
  const wanted = await run(recipe, counted, '/once');
  expect(wanted[0]!.length).toBeGreaterThan(0);
  const steps = lines.length;
  for (let step = 0; step < steps; step++) {
    const faulty = await forgetful(t);
    faulty.loseAt(step);
    const shapes = await run(recipe, faulty.zk, `/lost-${step}`);
    expect(shapes, `step ${step}: ${lines[step]}`).toEqual(wanted);
    expect(faulty.lost).toBe(1);
    await t.until(faulty.zk.close());
  }
});
