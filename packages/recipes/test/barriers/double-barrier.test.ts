import type { Client } from '@tskeeper/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DoubleBarrier, type Participation } from '../../src/index.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

const path = '/b';

/** The participants inside, at the index of their client. */
function entering(clients: readonly Client[], size: number): Participation[] {
  const inside: Participation[] = [];
  for (const [index, zk] of clients.entries()) void new DoubleBarrier(zk, path, size).enter().then((each) => (inside[index] = each));
  return inside;
}

const clients = (count: number) => Promise.all(Array.from({ length: count }, () => t.client()));

describe('entering a double barrier', () => {
  it('C1-7, C1-8: takes the six steps of the page in their order, and wakes each waiter once', async () => {
    await t.until(t.zk.create(path));
    const [first, second, last] = [await t.recorded(), await t.recorded(), await t.recorded()];
    const inside: Participation[] = [];
    const enter = async (zk: Client) => void inside.push(await new DoubleBarrier(zk, path, 3).enter());
    const entered = [enter(first.zk)];
    await t.settle();
    entered.push(enter(second.zk));
    await t.pass(10_000);
    expect(inside).toEqual([]);
    const steps = [
      'exists /b/ready watch',
      'create /b/guid-p ephemeral',
      // Notices when another client deletes the participant's own znode.
      'exists /b/guid-p watch',
      'getChildren /b',
    ];
    expect(first.lines).toEqual(steps);
    expect(second.lines).toEqual(steps);
    entered.push(enter(last.zk));
    await t.until(Promise.all(entered));
    const opening = 'multi: create /b/ready persistent, check /b/guid-p, check /b/guid-p, check /b/guid-p';
    expect(last.lines.slice(0, 5)).toEqual([...steps, opening]);
    expect(first.lines).toEqual([...steps, 'getData /b/ready']);
    expect(second.lines).toEqual([...steps, 'getData /b/ready']);
    expect(last.lines.slice(5)).toEqual([]);
  });

  it('C1-9: succeeds at once during a round', async () => {
    const inside = entering(await clients(2), 2);
    await t.settle();
    expect(inside.length).toBe(2);
    const { zk, lines } = await t.recorded();
    const late = await t.until(new DoubleBarrier(zk, path, 2).enter());
    expect(lines).toEqual([
      'exists /b/ready watch',
      'create /b/guid-p ephemeral',
      'exists /b/guid-p watch',
      'getData /b/ready',
      'getChildren /b',
      'multi: setData /b/guid-p, check /b/guid-p',
      // Its own znode has changed, by itself.
      'exists /b/guid-p watch',
      'removeWatches /b/ready',
    ]);
    expect(late.state).toBe('held');
  });

  it('C1-2, C1-8: sends as many requests for each of 100 participants as for one, and receives one event', async () => {
    await t.until(t.zk.create(path));
    const { zk, lines } = await t.recorded();
    const inside = entering(
      Array.from({ length: 99 }, () => zk),
      100,
    );
    await t.settle();
    expect(lines.length).toBe(4 * 99);
    lines.length = 0;
    await t.pass(5000);
    expect(lines).toEqual([]);
    const last = await t.until(new DoubleBarrier(t.zk, path, 100).enter());
    await t.settle();
    expect(inside.length).toBe(99);
    expect(lines).toEqual(Array.from({ length: 99 }, () => 'getData /b/ready'));
    lines.length = 0;
    await t.until(Promise.all([last, ...inside].map((each) => each.leave())));
    // List, delete, watch one other, and list again when it has gone; the lowest once more.
    expect(lines.length).toBeLessThanOrEqual(4 * 99 + 2);
  });

  it('ends at its timeout or when the signal is aborted, and others do not count a participant that has given up', async () => {
    const [one, two, three] = await clients(3);
    const late = failureOf(new DoubleBarrier(one!, path, 2).enter({ timeoutMs: 500 }));
    await t.pass(1000);
    expect(await t.until(late)).toMatchObject({ name: 'RecipeError', code: 'TimedOut' });
    const abort = new AbortController();
    const unwanted = failureOf(new DoubleBarrier(two!, path, 2).enter({ signal: abort.signal }));
    await t.settle();
    abort.abort(new Error('no longer wanted'));
    expect(await t.until(unwanted)).toMatchObject({ message: 'no longer wanted' });
    await t.settle();
    expect(await t.childrenOf(path)).toEqual([]);
    const inside = entering([three!], 2);
    await t.pass(1000);
    expect(inside).toEqual([]);
  });

  it('leaves no watch behind when the znode of the participant cannot be created', async () => {
    await t.until(t.zk.create(path, null, { acl: [{ perms: 1, id: { scheme: 'world', id: 'anyone' } }] }));
    const { zk, lines } = await t.recorded();
    expect(await t.until(failureOf(new DoubleBarrier(zk, path, 2).enter()))).toMatchObject({ code: 'NoAuth' });
    await t.settle();
    expect(lines).toEqual(['exists /b/ready watch', 'create /b/guid-p ephemeral', 'removeWatches /b/ready']);
  });

  it("fails when the participant's znode is deleted by hand", async () => {
    const waiting = failureOf(new DoubleBarrier(await t.client(), path, 2).enter());
    await t.settle();
    const [name] = await t.childrenOf(path);
    await t.until(t.zk.delete(`${path}/${name}`));
    expect(await t.until(waiting)).toMatchObject({ name: 'RecipeError', code: 'Lost' });
  });

  it('requires a size of 1, 2, 3 and so on', () => {
    for (const size of [0, -1, 1.5, NaN]) expect(() => new DoubleBarrier(t.zk, path, size)).toThrow(RangeError);
  });

  it('C1-13: ignores and deletes a `ready` that a crash has left, and keeps the data of the barrier', async () => {
    await t.until(t.zk.create(path, 'mine'));
    const crashed = await clients(2);
    const before = entering(crashed, 2);
    await t.settle();
    expect(before.length).toBe(2);
    for (const zk of crashed) t.killed(zk);
    expect((await t.childrenOf(path)).length).toBe(3);
    await t.pass(2 * crashed[0]!.sessionTimeoutMs, 1000);
    expect(await t.childrenOf(path)).toEqual(['ready']);
    const { zk, lines } = await t.recorded();
    const inside = entering([zk], 2);
    await t.pass(1000);
    expect(inside).toEqual([]);
    expect(lines).toEqual([
      'exists /b/ready watch',
      'create /b/guid-p ephemeral',
      'exists /b/guid-p watch',
      'getData /b/ready',
      'getChildren /b',
      'getData /b',
      'exists /b/ready',
      'multi: setData /b, delete /b/ready',
      'exists /b/ready watch',
      'getChildren /b',
    ]);
    expect(new TextDecoder().decode((await t.until(t.zk.getData(path))).data ?? undefined)).toBe('mine');
    await t.until(new DoubleBarrier(t.zk, path, 2).enter());
    await t.settle();
    expect(inside.length).toBe(1);
  });

  it('does not count a participant of the previous round that still works', async () => {
    const inside = entering(await clients(2), 2);
    await t.settle();
    const late = await t.until(new DoubleBarrier(await t.client(), path, 2).enter());
    await t.until(Promise.all(inside.map((each) => t.zk.delete(each.path))));
    const next = entering(await clients(1), 2);
    await t.pass(1000);
    expect(next).toEqual([]);
    next.push(...entering(await clients(1), 2));
    await t.pass(1000);
    expect(next.length).toBe(1);
    expect((await t.childrenOf(path)).length).toBe(4);
    await t.until(t.zk.delete(late.path));
  });
});

describe('leaving a double barrier', () => {
  /** In the order of their names. */
  async function sorted(count: number): Promise<{ readonly lines: string[]; readonly inside: Participation }[]> {
    const recorded = await Promise.all(Array.from({ length: count }, () => t.recorded()));
    const all = await t.until(
      Promise.all(recorded.map(async ({ zk, lines }) => ({ lines, inside: await new DoubleBarrier(zk, path, count).enter() }))),
    );
    await t.settle();
    for (const { lines } of all) lines.length = 0;
    return all.sort((one, other) => (one.inside.path < other.inside.path ? -1 : 1));
  }

  it('C1-10, C1-11: makes the lowest wait for the highest and the others for the lowest; each leave wakes one waiter, the last leave all', async () => {
    const [lowest, middle, highest] = await sorted(3);
    const left: string[] = [];
    const leave = (who: string, { inside }: typeof lowest & {}) => void inside.leave().then(() => left.push(who));
    leave('lowest', lowest!);
    await t.settle();
    expect(lowest!.lines).toEqual(['getChildren /b', 'exists /b/guid-p watch']);
    leave('middle', middle!);
    await t.settle();
    // Not the one that the lowest waits for.
    expect(lowest!.lines.length).toBe(2);
    expect(middle!.lines).toEqual(['getChildren /b', 'delete /b/guid-p', 'exists /b/guid-p watch']);
    await t.pass(5000);
    expect(left).toEqual([]);
    leave('highest', highest!);
    await t.settle();
    expect(highest!.lines.slice(0, 3)).toEqual(['getChildren /b', 'delete /b/guid-p', 'exists /b/guid-p watch']);
    expect(lowest!.lines.slice(2)).toEqual(['getChildren /b', 'multi: delete /b/guid-p, delete /b/ready']);
    expect(middle!.lines.slice(3)).toEqual(['getChildren /b']);
    expect(left.toSorted()).toEqual(['highest', 'lowest', 'middle']);
    expect(await t.childrenOf(path)).toEqual([]);
  });

  it('C1-12: is not blocked by a participant that dies inside', async () => {
    const all = await clients(3);
    const inside = entering(all, 3);
    await t.settle();
    let haveLeft = false;
    const leaving = Promise.all([inside[0]!.leave(), inside[1]!.leave()]).then(() => (haveLeft = true));
    t.killed(all[2]!);
    await t.pass(all[2]!.sessionTimeoutMs - 2000, 1000);
    expect([haveLeft, all[2]!.endReason]).toEqual([false, undefined]);
    await t.until(leaving);
    expect(all[2]!.endReason).toBe(undefined);
    await t.world.untilSo(() => inside[2]!.state === 'lost');
    await expect(t.until(inside[2]!.leave())).rejects.toMatchObject({ name: 'RecipeError', code: 'Lost' });
  });

  it('C1-13: ends a round, so that the next begins when all have arrived again; ten rounds of five', async () => {
    const all = await clients(5);
    const rounds = all.map(async (zk) => {
      const seen: number[] = [];
      for (let round = 0; round < 10; round++) {
        await new DoubleBarrier(zk, path, 5).run(() => seen.push(round));
      }
      return seen;
    });
    expect((await t.until(Promise.all(rounds))).flat().length).toBe(50);
    expect(await t.childrenOf(path)).toEqual([]);
  });

  it('allows a participant to enter again while another is slow to read', async () => {
    const fast = await t.client();
    t.world.wire.conditionsOf = () => ({ delayMs: 300 });
    const slow = await t.client();
    const rounds = [fast, slow].map(async (zk) => {
      for (let round = 0; round < 8; round++) await new DoubleBarrier(zk, path, 2).run(() => undefined);
    });
    await t.until(Promise.all(rounds));
    expect(await t.childrenOf(path)).toEqual([]);
  });

  it('waits until the own znode is deleted, if no server can be reached at first', async () => {
    t.world.wire.conditionsOf = () => ({ delayMs: 100 });
    const { zk, lines } = await t.recorded();
    const inside = await t.until(new DoubleBarrier(zk, path, 1).enter());
    let isOver = false;
    const leaving = inside.leave().then(() => (isOver = true));
    await t.world.untilSo(() => lines.at(-1) === 'multi: delete /b/guid-p, delete /b/ready');
    const { address } = t.world;
    t.world.wire.name('server', []);
    t.world.break();
    await t.pass(3000);
    expect((await t.childrenOf(path)).length).toBe(2);
    expect(isOver).toBe(false);
    t.world.wire.name('server', [address]);
    await t.until(leaving);
    expect(await t.childrenOf(path)).toEqual(['ready']);
  });

  it('succeeds for a latecomer while others wait for the next round, and those block no participant', async () => {
    const [one, two] = await clients(2);
    const inside = entering([one!, two!], 2);
    await t.settle();
    const late = await t.until(new DoubleBarrier(await t.client(), path, 2).enter());
    await t.until(Promise.all([one!.close(), two!.close()]));
    expect(inside.map(({ state }) => state)).toEqual(['lost', 'lost']);
    const waiting = entering(await clients(1), 2);
    await t.pass(1000);
    await t.until(late.leave(), 1000);
    expect(waiting).toEqual([]);
    await t.until(new DoubleBarrier(t.zk, path, 2).enter());
    await t.settle();
    expect(waiting.length).toBe(1);
  });

  it('times out when another participant stays inside, and still deletes the znode', async () => {
    const inside = entering(await clients(2), 2);
    await t.settle();
    const late = failureOf(inside[0]!.leave({ timeoutMs: 500 }));
    expect(await t.until(late)).toMatchObject({ name: 'RecipeError', code: 'TimedOut' });
    await t.until(inside[1]!.leave());
    expect(inside.map(({ state }) => state)).toEqual(['released', 'released']);
  });

  it('does not wait for the others when the work fails', async () => {
    const [one, two] = await clients(2);
    const failing = failureOf(
      new DoubleBarrier(one!, path, 2).run(() => {
        throw new Error('no luck');
      }),
    );
    const inside = entering([two!], 2);
    expect(await t.until(failing)).toMatchObject({ message: 'no luck' });
    await t.until(inside[0]!.leave());
  });

  it('is not caused by a lost connection: a participant is suspended, held after a reconnect, and lost with its session', async () => {
    const client = await t.client({ sessionTimeoutMs: 4000 });
    const inside = entering([t.zk, client], 2);
    await t.settle();
    const own = inside[1]!;
    const states: string[] = [];
    own.onStateChange((state) => states.push(state));
    t.world.break();
    await t.pass(1000);
    expect(states).toEqual(['suspended', 'held']);
    await t.until(client.close());
    expect(own.signal.reason).toMatchObject({ name: 'RecipeError', code: 'Lost' });
    await t.until(inside[0]!.leave());
  });
});
