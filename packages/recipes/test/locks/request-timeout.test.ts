import type { Client } from '@tskeeper/client';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Lock } from '../../src/index.ts';
import { RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;
let impatient: Client;

beforeEach(async () => {
  t = await RecipeWorld.start();
  impatient = await t.client({ requestTimeoutMs: 500 });
});

afterEach(async () => {
  await t.close();
});

/** No server is reachable for longer than the client's request timeout. */
async function outage(doing: () => void): Promise<void> {
  const { world } = t;
  world.wire.name('server', []);
  world.break(world.cnxn);
  doing();
  await t.pass(2000);
  world.wire.name('server', [world.address]);
}

it("a wait lasts as long as its own timeout, not as long as the client's request timeout", async () => {
  const first = await t.until(new Lock(t.zk, '/locks/a').acquire());
  await t.until(impatient.sync());
  let waiting: ReturnType<Lock['acquire']> | undefined;
  await outage(() => {
    waiting = new Lock(impatient, '/locks/a').acquire();
    waiting.catch(() => undefined);
  });
  await t.pass(2000);
  await t.until(first.release());
  const held = await t.until(waiting!);
  expect(held.state).toBe('held');
  // Its own znode is watched, too.
  await t.until(t.zk.delete(held.path));
  await t.settle();
  expect(held.state).toBe('lost');
});
