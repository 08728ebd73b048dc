import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { EventHandle } from '../../src/index.ts';
import { forgetful } from '../support/faults.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

const path = '/events/loaded';

describe('an event', () => {
  it('C1-41: admits all waiters when it is set, and later ones, until it is reset', async () => {
    const event = new EventHandle(t.zk, path);
    const { zk, lines } = await t.recorded();
    const passed: number[] = [];
    const waiting = Array.from({ length: 50 }, (_, who) => new EventHandle(zk, path).wait().then(() => passed.push(who)));
    await t.pass(1000);
    expect(passed).toEqual([]);
    expect(lines).toEqual(Array.from({ length: 50 }, () => 'exists /events/loaded/set watch'));
    await t.until(event.set());
    await t.until(event.set());
    await t.until(Promise.all(waiting));
    await t.until(new EventHandle(zk, path).wait());
    expect(await t.until(event.isSet())).toBe(true);
    await t.until(event.reset());
    await t.until(event.reset());
    expect(await t.until(event.isSet())).toBe(false);
    const late = failureOf(event.wait({ timeoutMs: 1000 }));
    expect(await t.until(late)).toMatchObject({
      code: 'TimedOut',
      message: `timed out after 1000 ms waiting for the setting of event ${path}`,
    });
  });

  it('C1-41: admits the waiters that waited while it was set and reset at once', async () => {
    const event = new EventHandle(t.zk, path);
    // So that the znode exists, and both are one request each.
    await t.until(event.set());
    await t.until(event.reset());
    const waiting = new EventHandle(await t.client(), path).wait();
    await t.settle();
    await t.until(Promise.all([event.set(), event.reset()]));
    await t.until(waiting);
    expect(await t.until(event.isSet())).toBe(false);
  });

  it('C1-41: rejects a wait when the session ends, and does not resolve', async () => {
    const client = await t.client();
    const waiting = failureOf(new EventHandle(client, path).wait());
    await t.settle();
    await t.until(client.close());
    expect(await t.until(waiting)).toMatchObject({ code: 'SessionExpired' });
  });
});

describe('an event with autoReset', () => {
  it('C1-41: sends the expected requests, and admits one waiter each time that it is set', async () => {
    const event = new EventHandle(t.zk, path, { autoReset: true });
    const { zk, lines } = await t.recorded();
    const waiting = new EventHandle(zk, path, { autoReset: true }).wait();
    await t.settle();
    await t.until(event.set());
    await t.until(waiting);
    expect(lines.slice(-7)).toEqual([
      'create /events/loaded/guid-waiting- ephemeral sequential',
      'exists /events/loaded/guid-waiting-0000000000 watch',
      'getChildren /events/loaded',
      'exists /events/loaded/set watch',
      'multi: delete /events/loaded/set, setData /events/loaded/guid-waiting-0000000000',
      // The event of its own znode, which says that it has taken the event.
      'exists /events/loaded/guid-waiting-0000000000 watch',
      'delete /events/loaded/guid-waiting-0000000000',
    ]);
    expect(await t.until(event.isSet())).toBe(false);
    expect(await t.childrenOf(path)).toEqual([]);
  });

  it('C1-41, C1-3: admits one waiter each time that it is set, whichever reply to the setting client is lost', async () => {
    const passed: number[] = [];
    const count = 8;
    const over = Array.from({ length: count }, (_, who) =>
      new EventHandle(t.zk, path, { autoReset: true }).wait().then(() => passed.push(who)),
    );
    await t.settle();
    for (let at = 0; at < count; at++) {
      const client = await forgetful(t);
      client.loseAt(at);
      await t.until(new EventHandle(client.zk, path, { autoReset: true }).set());
      await t.pass(1000);
      expect(client.lost, `the answer to request ${at}`).toBe(at < 3 ? 1 : 0);
      expect(passed.length, `the answer to request ${at}`).toBe(at + 1);
    }
    await t.until(Promise.all(over));
    expect(await t.childrenOf(path)).toEqual([]);
  });

  it('C1-41: is set though all its znodes are deleted meanwhile', async () => {
    const { zk } = await t.recorded();
    const multi = zk.multi.bind(zk);
    zk.multi = (async (...args: Parameters<typeof multi>) => {
      zk.multi = multi;
      await t.zk.deleteRecursive(path);
      return multi(...args);
    }) as typeof zk.multi;
    await t.until(new EventHandle(zk, path, { autoReset: true }).set());
    expect(await t.childrenOf(path)).toEqual(['set']);
  });

  it('C1-41, C1-2: wakes one of 100 waiters each time, in the order of arrival, with a constant number of requests', async () => {
    const event = new EventHandle(t.zk, path, { autoReset: true });
    const { zk, lines } = await t.recorded();
    const passed: number[] = [];
    const over = Promise.allSettled(
      Array.from({ length: 100 }, (_, who) => new EventHandle(zk, path, { autoReset: true }).wait().then(() => passed.push(who))),
    );
    await t.pass(1000);
    for (let round = 0; round < 5; round++) {
      lines.length = 0;
      await t.until(event.set());
      await t.pass(100);
      expect(passed.length).toBe(round + 1);
      expect(lines.length).toBe(5);
    }
    expect(passed).toEqual([0, 1, 2, 3, 4]);
    await t.until(zk.close());
    await t.until(over);
  });

  it('C1-41: admits one waiter, however often it was set before; a waiter that gives up takes nothing', async () => {
    const event = new EventHandle(t.zk, path, { autoReset: true });
    expect(await t.until(failureOf(event.wait({ timeoutMs: 100 })))).toMatchObject({ code: 'TimedOut' });
    await t.until(event.set());
    await t.until(event.set());
    await t.until(event.wait());
    expect(await t.until(failureOf(event.wait({ timeoutMs: 100 })))).toMatchObject({ code: 'TimedOut' });
    const broken = failureOf(event.wait());
    await t.settle();
    const [place] = await t.childrenOf(path);
    await t.until(t.zk.delete(`${path}/${place!}`));
    expect(await t.until(broken)).toMatchObject({ name: 'RecipeError', code: 'Lost' });
    await t.until(event.set());
    expect(await t.until(event.isSet())).toBe(true);
  });
});
