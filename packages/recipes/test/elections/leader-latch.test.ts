import { connect } from '@tskeeper/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LeaderLatch, Election, type Leadership, Sessions } from '../../src/index.ts';
import { expire } from '../support/faults.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

const path = '/election';
const sessions = () => t.until(Sessions.start(() => connect('server:2181', t.world.options())));
const leader = async () => new TextDecoder().decode((await t.until(new Election(t.zk, path).leader()))?.data ?? undefined);

describe('a candidate', () => {
  it('is waited for until the timeout or an abort of the signal, also when it leads for a moment meanwhile', async () => {
    const other = new LeaderLatch(await t.client(), path);
    other.onChange((leadership) => leadership && t.zk.clock.after(300, () => void leadership.resign()));
    await t.until(other.waitForLeadership());
    const candidate = new LeaderLatch(t.zk, path);
    const heard: boolean[] = [];
    candidate.onChange((leadership) => {
      heard.push(leadership !== undefined);
      void leadership?.resign();
    });
    expect(await t.until(failureOf(candidate.waitForLeadership({ timeoutMs: 500 })), 550)).toMatchObject({ code: 'TimedOut' });
    expect(heard).toEqual([true, false]);
    await t.until(candidate.close());
    await t.until(other.close());
  });

  it('B16: leads until it is closed, and then the next candidate leads', async () => {
    const heard: (bigint | undefined)[] = [];
    const one = new LeaderLatch(await t.client(), path, { data: 'one' });
    one.onChange((leadership) => heard.push(leadership?.fencingToken));
    const first = await t.until(one.waitForLeadership());
    const two = new LeaderLatch(await t.client(), path, { data: 'two' });
    const next = two.waitForLeadership();
    await t.pass(5000);
    expect([await leader(), two.leadership, one.leadership === first]).toEqual(['one', undefined, true]);
    expect(await t.until(failureOf(two.waitForLeadership({ timeoutMs: 100 })))).toMatchObject({
      code: 'TimedOut',
      message: `timed out after 100 ms waiting for the leadership of ${path}`,
    });
    await t.until(one.close());
    await t.until(one.close());
    expect([first.state, one.leadership]).toEqual(['released', undefined]);
    expect(await t.until(failureOf(one.waitForLeadership()))).toMatchObject({ code: 'Closed' });
    expect((await t.until(next)).fencingToken > first.fencingToken).toBe(true);
    expect(heard).toEqual([first.fencingToken, undefined]);
    const waiting = new LeaderLatch(await t.client(), path);
    const inVain = failureOf(waiting.waitForLeadership());
    await t.settle();
    await t.until(waiting.close());
    expect(await t.until(inVain)).toMatchObject({ code: 'Closed' });
    await t.until(two.close());
    expect(await t.childrenOf(path)).toEqual([]);
  });

  it('B16, E29: queues again at the end when its session ends, and leads only in the new session', async () => {
    const mine = await sessions();
    const one = new LeaderLatch(mine, path, { data: 'one' });
    const first = await t.until(one.waitForLeadership());
    const other = await sessions();
    const two = new LeaderLatch(other, path, { data: 'two' });
    await t.settle();
    const before = mine.client;
    await expire(t, before);
    const second = await t.until(two.waitForLeadership());
    expect([first.state, one.leadership]).toEqual(['lost', undefined]);
    await t.pass(1000);
    expect(mine.client === before).toBe(false);
    await expire(t, other.client);
    const again = await t.until(one.waitForLeadership());
    expect((await t.until(t.zk.exists(again.path)))!.ephemeralOwner).toBe(mine.client.sessionId);
    expect(again.fencingToken > second.fencingToken && second.fencingToken > first.fencingToken).toBe(true);
    await t.until(Promise.all([one.close(), two.close()]));
    await t.until(Promise.all([mine.close(), other.close()]));
    expect(await t.childrenOf(path)).toEqual([]);
  });

  it('B16: queues again when its znode is deleted, whether it leads or waits', async () => {
    const one = new LeaderLatch(await t.client(), path, { data: 'one' });
    const first = await t.until(one.waitForLeadership());
    const two = new LeaderLatch(await t.client(), path, { data: 'two' });
    await t.settle();
    for (const at of [1, 0]) {
      const line = await t.until(new Election(t.zk, path).contenders());
      await t.until(t.zk.delete(line[at]!.path));
      await t.settle();
      expect((await t.until(new Election(t.zk, path).contenders())).length).toBe(2);
    }
    expect(first.state).toBe('lost');
    await t.until(two.waitForLeadership());
    expect(await leader()).toBe('two');
    await t.until(Promise.all([one.close(), two.close()]));
  });

  it('B16: ends with its client, and when a server rejects it', async () => {
    const client = await t.client();
    const one = new LeaderLatch(client, path);
    await t.until(one.waitForLeadership());
    await expire(t, client);
    await t.settle();
    expect([one.signal.aborted, one.leadership]).toEqual([true, undefined]);
    expect(one.signal.reason).toMatchObject({ code: 'Closed' });
    await t.until(one.close());
    await t.until(t.zk.create('/closed', '', { acl: [{ perms: 1, id: { scheme: 'world', id: 'anyone' } }] }));
    const refused = new LeaderLatch(t.zk, '/closed');
    expect(await t.until(failureOf(refused.waitForLeadership()))).toMatchObject({ code: 'NoAuth' });
    expect(refused.signal.reason).toMatchObject({ code: 'NoAuth' });
    expect(await t.until(failureOf(refused.run(() => undefined)))).toMatchObject({ code: 'NoAuth' });
  });

  it('B16: runs its work whenever it leads, in turn with others, until it is closed', async () => {
    const terms: string[] = [];
    let leading = 0;
    let stopped = 0;
    const candidates = await Promise.all(['one', 'two', 'three'].map(async (data) => new LeaderLatch(await t.client(), path, { data })));
    const running = candidates.map((candidate, who) =>
      candidate.run(async (leadership: Leadership, signal) => {
        expect(++leading).toBe(1);
        terms.push(String(who));
        await new Promise<void>((resolve) => t.world.clock.after(500, resolve));
        leading--;
        expect(leadership.state).toBe('held');
        if (signal.aborted) stopped++;
      }),
    );
    await t.pass(4900);
    // In the middle of a term: no other candidate leads before its work has stopped.
    for (const candidate of candidates) await t.until(candidate.close());
    await t.until(Promise.all(running));
    expect(stopped).toBeGreaterThan(0);
    expect(terms.length).toBeGreaterThan(8);
    terms.forEach((who, at) => expect(who).toBe(terms[at % 3]));
  });

  it('B16: resigns when its work fails, and stays in the election', async () => {
    const one = new LeaderLatch(await t.client(), path);
    const failed = failureOf(one.run(() => Promise.reject(new Error('no more coal'))));
    expect(await t.until(failed)).toEqual(new Error('no more coal'));
    await t.until(one.waitForLeadership());
    const stop = new AbortController();
    stop.abort(new Error('no longer wanted'));
    expect(await t.until(failureOf(one.run(() => undefined, { signal: stop.signal })))).toEqual(stop.signal.reason);
    await t.until(one.close());
  });

  it('B16: runs its work again after the work stopped, with any error, because the leadership was lost', async () => {
    const one = new LeaderLatch(await t.client(), path);
    const ways: ((leadership: Leadership, signal: AbortSignal) => Promise<unknown>)[] = [
      (_, signal) => new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
      (leadership, signal) => new Promise((resolve) => signal.addEventListener('abort', resolve)).then(() => leadership.multi([])),
      () => Promise.reject(new Error('no more coal')),
    ];
    let terms = 0;
    const running = failureOf(
      one.run(async (leadership, signal) => {
        await ways[terms++]!(leadership, signal);
      }),
    );
    for (const term of [1, 2]) {
      await t.world.untilSo(() => terms === term);
      await t.until(t.zk.delete(one.leadership!.path));
    }
    expect(await t.until(running)).toEqual(new Error('no more coal'));
    expect(terms).toBe(3);
    await t.until(one.close());
  });

  it('B16: aborts the signal of its work when the leadership is resigned elsewhere, and runs one function at a time', async () => {
    const one = new LeaderLatch(await t.client(), path);
    const heard: unknown[] = [];
    const running = one.run(async (_leadership, signal) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      heard.push(signal.reason);
    });
    await t.until(one.waitForLeadership());
    expect(await t.until(failureOf(one.run(() => undefined)))).toEqual(
      new TypeError(`the candidate for ${path} already runs a function, and resigns after it; do all work in that one`),
    );
    await t.until(one.leadership!.resign());
    await t.until(one.waitForLeadership());
    expect(heard).toEqual([expect.objectContaining({ code: 'Lost', message: 'the leadership was resigned while its work was running' })]);
    await t.until(one.close());
    await t.until(running);
  });

  it.each(['resigned', 'closed', 'unwanted'])(
    'B16: does not call its work when it is %s in the same turn in which it becomes the leader',
    async (what) => {
      const one = new LeaderLatch(await t.client(), path);
      const unwanted = new AbortController();
      const ways: Record<string, (leadership: Leadership) => unknown> = {
        resigned: (leadership) => leadership.resign(),
        closed: () => one.close(),
        unwanted: () => unwanted.abort(new Error('never mind')),
      };
      let early: Leadership | undefined;
      const spoil = async () => {
        early = await one.waitForLeadership();
        void ways[what]!(early);
      };
      const spoilt = spoil();
      const terms: boolean[] = [];
      const running = failureOf(
        one.run(
          (leadership, signal) => {
            terms.push(leadership === early || signal.aborted);
            void one.close();
          },
          { signal: unwanted.signal },
        ),
      );
      await t.until(spoilt);
      const outcome = await t.until(running);
      expect(terms).toEqual(what === 'resigned' ? [false] : []);
      expect(early!.state).toBe('released');
      if (what === 'unwanted') expect(outcome).toBe(unwanted.signal.reason);
      else expect(outcome).toEqual(new Error('it did not fail, but gave undefined'));
      await t.until(one.close());
      expect(await t.childrenOf(path)).toEqual([]);
    },
  );

  it('B16, C1-39: is the only one of 100 to wake when the leader is closed, with a constant number of requests', async () => {
    const { zk, lines } = await t.recorded();
    const candidates = Array.from({ length: 100 }, () => new LeaderLatch(zk, path));
    await t.pass(500);
    for (let round = 0; round < 4; round++) {
      expect(candidates.filter(({ leadership }) => leadership !== undefined).length).toBe(1);
      lines.length = 0;
      await t.until(candidates.find(({ leadership }) => leadership !== undefined)!.close());
      await t.pass(100);
      expect(lines).toEqual([expect.stringMatching(/^delete /), 'getChildren /election']);
    }
    await t.until(zk.close());
    await t.until(Promise.all(candidates.map((each) => each.close())));
  });
});
