import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Barrier } from '../../src/index.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

const path = '/barriers/release';

describe('a barrier', () => {
  it('C1-6: is waited for by exists with a watch, repeated at each event until its znode is deleted', async () => {
    const { zk, lines } = await t.recorded();
    await t.until(new Barrier(t.zk, path).set());
    let isOver = false;
    const waiting = new Barrier(zk, path).wait().then(() => (isOver = true));
    await t.settle();
    await t.until(t.zk.setData(path, 'still here'));
    await t.settle();
    expect(isOver).toBe(false);
    expect(lines).toEqual(['exists /barriers/release watch', 'exists /barriers/release watch']);
    await t.until(new Barrier(t.zk, path).remove());
    await t.until(waiting);
    // The watch of the last reply is removed.
    const last = ['exists /barriers/release watch', 'removeWatches /barriers/release'];
    expect(lines.slice(2)).toEqual(last);
    lines.length = 0;
    await t.until(new Barrier(zk, path).wait());
    expect(lines).toEqual(last);
  });

  it('B3: admits all 100 waiters, with two requests each', async () => {
    const { zk, lines } = await t.recorded();
    await t.until(new Barrier(t.zk, path).set());
    const waiting = Promise.all(Array.from({ length: 100 }, () => new Barrier(zk, path).wait()));
    await t.settle();
    await t.until(new Barrier(t.zk, path).remove());
    await t.until(waiting);
    expect(lines.filter((line) => line.startsWith('exists')).length).toBe(200);
  });

  it('is set once, and removed once, however many clients do so', async () => {
    const barrier = new Barrier(t.zk, path, { data: 'until ten' });
    await t.until(barrier.remove());
    await t.until(Promise.all([barrier.set(), new Barrier(await t.client(), path).set()]));
    await t.until(barrier.remove());
    await t.until(barrier.remove());
    expect(await t.until(t.zk.exists(path))).toBe(null);
  });

  it('is removed when the session that has set it ends, if it is ephemeral', async () => {
    const client = await t.client();
    await t.until(new Barrier(client, path, { ephemeral: true }).set());
    const waiting = new Barrier(t.zk, path).wait();
    await t.until(client.close());
    await t.until(waiting);
    expect(await t.until(t.zk.exists(path))).toBe(null);
  });

  it('is waited for until the timeout or an abort of the signal, through lost connections', async () => {
    await t.until(new Barrier(t.zk, path).set());
    const client = await t.client();
    const late = failureOf(new Barrier(client, path).wait({ timeoutMs: 3000 }));
    const abort = new AbortController();
    const unwanted = failureOf(new Barrier(client, path).wait({ signal: abort.signal }));
    const patient = new Barrier(client, path).wait();
    await t.settle();
    t.world.break();
    await t.pass(1000);
    abort.abort(new Error('no longer wanted'));
    expect(await t.until(unwanted)).toMatchObject({ message: 'no longer wanted' });
    expect(await t.until(late)).toMatchObject({ name: 'RecipeError', code: 'TimedOut' });
    await t.until(new Barrier(t.zk, path).remove());
    await t.until(patient);
  });
});
