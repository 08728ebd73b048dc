import type { ReadOptions } from '@tskeeper/client';
import { SeededRandom } from '@tskeeper/runtime';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { breadth } from '../../../../test/breadth.ts';
import { SimpleBarrier } from '../../src/index.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

const path = '/b';

describe('a simple barrier', () => {
  it('C0-2: is a persistent znode without data, open to all, which two participants may create at the same time', async () => {
    const [one, two] = [await t.client(), await t.client()];
    await t.until(Promise.all([SimpleBarrier.create(one, path, 2), SimpleBarrier.create(two, path, 2)]));
    const { data, stat } = await t.until(t.zk.getData(path));
    expect([data?.length ?? 0, stat.ephemeralOwner]).toEqual([0, 0n]);
    expect((await t.until(t.zk.getACL(path))).acl).toEqual([{ perms: 31, id: { scheme: 'world', id: 'anyone' } }]);
  });

  it('C0-3, C0-4, C0-7: is entered and left by the requests of the page, with a different name for each participant', async () => {
    const { zk, lines } = await t.recorded();
    const barrier = await t.until(SimpleBarrier.create(zk, path, 2, { name: 'anna' }));
    const other = await t.until(SimpleBarrier.create(t.zk, path, 2, { name: 'bert' }));
    lines.length = 0;
    const entering = barrier.enter();
    await t.settle();
    expect(lines).toEqual([
      'create /b/guid-anna ephemeral',
      // Notices when another client deletes the participant's own znode.
      'exists /b/guid-anna watch',
      'getChildren /b watch',
    ]);
    const theirs = await t.until(other.enter());
    const own = await t.until(entering);
    expect(lines[3]).toBe('getChildren /b watch');
    lines.length = 0;
    let isOver = false;
    const leaving = own.leave().then(() => (isOver = true));
    await t.pass(1000);
    expect(isOver).toBe(false);
    expect(lines.slice(-2)).toEqual(['delete /b/guid-anna', 'getChildren /b watch']);
    await t.until(theirs.leave());
    await t.until(leaving);
    expect(await t.childrenOf(path)).toEqual([]);
  });

  it('C0-5: lets no participant begin the second half before all have ended the first, over random runs with lost connections', async () => {
    const all = await Promise.all([1, 2, 3, 4].map(() => t.client()));
    for (let seed = 1; seed <= breadth(8, 50); seed++) {
      const random = new SeededRandom(seed);
      const pause = () => new Promise<void>((resolve) => t.world.clock.after(random.below(300), () => resolve()));
      let ended = 0;
      let left = 0;
      const runs = all.map(async (zk) => {
        const barrier = await SimpleBarrier.create(zk, `${path}-${seed}`, 4);
        await pause();
        ended++;
        await barrier.run(async () => {
          expect(ended).toBe(4);
          await pause();
          left++;
        });
        expect(left).toBe(4);
      });
      for (let cut = random.below(3); cut > 0; cut--) {
        await t.pass(random.below(3) * 100);
        const open = [...t.world.wire.cnxns].filter(({ forward }) => !forward.from.isClosed);
        t.world.break(open[random.below(open.length)]);
      }
      await t.until(Promise.all(runs));
    }
  });

  it('C0-6: is left by the other participants when one dies inside', async () => {
    const all = await Promise.all([1, 2, 3].map(() => t.client()));
    const inside = await t.until(Promise.all(all.map(async (zk) => (await SimpleBarrier.create(zk, path, 3)).enter())));
    let haveLeft = false;
    const leaving = Promise.all(inside.slice(0, 2).map((each) => each.leave())).then(() => (haveLeft = true));
    // Its process is gone: the connection, which is the latest, breaks and never comes back, and
    // the session is not closed.
    t.world.wire.name('server', []);
    t.world.break();
    await t.pass(all[2]!.sessionTimeoutMs - 2000, 1000);
    expect([haveLeft, all[2]!.endReason]).toEqual([false, undefined]);
    await t.until(leaving);
    expect(all[2]!.endReason).toBe(undefined);
    await t.world.untilSo(() => inside[2]!.state === 'lost');
    expect(inside.map(({ state }) => state)).toEqual(['released', 'released', 'lost']);
  });

  it('admits a participant that is slow to read, when others have left again', async () => {
    t.world.wire.conditionsOf = () => ({ delayMs: 300 });
    const slow = await t.client();
    t.world.wire.conditionsOf = () => ({});
    const first = (await t.until(SimpleBarrier.create(slow, path, 2))).enter();
    await t.pass(3000);
    const second = await t.until((await t.until(SimpleBarrier.create(t.zk, path, 2))).enter());
    await t.until(t.zk.delete(second.path));
    const inside = await t.until(first);
    expect(inside.state).toBe('held');
    await t.until(inside.leave());
  });

  it('times out, and others do not count a participant that has given up', async () => {
    const barrier = await t.until(SimpleBarrier.create(t.zk, path, 2));
    expect(await t.until(failureOf(barrier.enter({ timeoutMs: 500 })))).toMatchObject({ name: 'RecipeError', code: 'TimedOut' });
    expect(await t.childrenOf(path)).toEqual([]);
    await expect(SimpleBarrier.create(t.zk, path, 0)).rejects.toThrow(RangeError);
  });

  it('is left also by a participant that reads after the empty root was deleted', async () => {
    const one = await t.client();
    const two = await t.client();
    const inside = await t.until(Promise.all([one, two].map(async (zk) => (await SimpleBarrier.create(zk, path, 2)).enter())));
    const list = two.getChildren.bind(two);
    let looks = 0;
    vi.spyOn(two, 'getChildren').mockImplementation(async (each: string, options?: ReadOptions) => {
      if (looks++ > 0) await one.delete(path);
      return list(each, options);
    });
    const slow = inside[1]!.leave();
    await t.settle();
    await t.until(inside[0]!.leave());
    await t.until(slow);
    expect(looks).toBe(2);
  });

  it('deletes its znode though another client has written to it', async () => {
    const inside = await t.until((await t.until(SimpleBarrier.create(t.zk, path, 1))).enter());
    await t.until(t.zk.setData(inside.path, 'x'));
    await t.until(inside.leave());
    expect(await t.childrenOf(path)).toEqual([]);
  });
});
