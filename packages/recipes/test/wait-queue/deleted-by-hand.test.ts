/**
 * The znode of a contender is deleted by hand before each of its requests, and after each before
 * the reply is read; also when the reply to the create of the znode was lost. The contender learns
 * of it, by a RecipeError, Lost, or by its hold; or the deletion was too early to matter, and it
 * acquires. It never believes in a hold that is gone.
 */
import { type Client, KeeperError } from '@tskeeper/client';
import { OpCode } from '@tskeeper/protocol';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { breadth } from '../../../../test/breadth.ts';
import {
  AtomicNumber,
  DoubleBarrier,
  Election,
  EventHandle,
  Group,
  type Hold,
  Lease,
  Lock,
  MultiLock,
  PersistentNode,
  PriorityLock,
  Queue,
  Semaphore,
  ReadWriteLock,
  SimpleBarrier,
  type WaitOptions,
} from '../../src/index.ts';
import { type Fate, fated } from '../support/fates.ts';
import { RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

/** The result of a recipe, and how it shows that it is over. */
interface Had {
  readonly paths: readonly string[];
  readonly signal: AbortSignal;
  readonly giveBack: () => Promise<unknown>;
}

type Coming = (zk: Client, path: string, options: WaitOptions) => Promise<Had>;

const hold = (held: Pick<Hold, 'path' | 'signal' | 'release'>): Had => ({
  paths: [held.path],
  signal: held.signal,
  giveBack: () => held.release(),
});

const comings: Record<string, Coming> = {
  Lock: async (zk, path, options) => {
    const held = await new Lock(zk, path).acquire(options);
    return hold(held);
  },
  'Lock, revocable': async (zk, path, options) => {
    const held = await new Lock(zk, path).acquire({ ...options, onRevocation: () => undefined });
    return hold(held);
  },
  'Lock.tryAcquire': async (zk, path, options) => {
    const held = (await new Lock(zk, path).tryAcquire(options))!;
    return hold(held);
  },
  ReadWriteLock: async (zk, path, options) => {
    const held = await new ReadWriteLock(zk, path).readLock.acquire(options);
    return hold(held);
  },
  Semaphore: async (zk, path, options) => {
    const held = await new Semaphore(zk, path, { size: 2 }).acquire(options);
    return hold(held);
  },
  'Semaphore.tryAcquire': async (zk, path, options) => {
    const held = (await new Semaphore(zk, path, { size: 2 }).tryAcquire(options))!;
    return hold(held);
  },
  PriorityLock: async (zk, path, options) => {
    const held = await new PriorityLock(zk, path).writeLock(7).acquire(options);
    return hold(held);
  },
  MultiLock: async (zk, path, options) => {
    const held = await new MultiLock([new Lock(zk, `${path}/a`), new Lock(zk, `${path}/b`)]).acquire(options);
    return { paths: held.holds.map((each) => each.path), signal: held.signal, giveBack: () => held.release() };
  },
  Election: async (zk, path, options) => {
    const leadership = await new Election(zk, path).lead(options);
    return { paths: [leadership.path], signal: leadership.signal, giveBack: () => leadership.resign() };
  },
  Lease: async (zk, path, options) => {
    const held = (await new Lease(zk, path, { holder: 'one', durationMs: 60_000 }).tryAcquire(options))!;
    // Its znode is not watched: `renew` and `multi` notice.
    return { ...hold(held), paths: [] };
  },
  'EventHandle with autoReset': async (zk, path, options) => {
    await t.zk.create(`${path}/set`, null, { idempotent: true, parents: 'container', retry: true }).catch(() => undefined);
    await new EventHandle(zk, path, { autoReset: true }).wait(options);
    return { paths: [], signal: new AbortController().signal, giveBack: () => Promise.resolve() };
  },
  DoubleBarrier: async (zk, path, options) => {
    const inside = await new DoubleBarrier(zk, path, 1).enter(options);
    return { paths: [inside.path], signal: inside.signal, giveBack: () => inside.leave().catch(() => undefined) };
  },
  SimpleBarrier: async (zk, path, options) => {
    const inside = await (await SimpleBarrier.create(zk, path, 1)).enter(options);
    return { paths: [inside.path], signal: inside.signal, giveBack: () => inside.leave().catch(() => undefined) };
  },
};

/** The znodes with a guid in their name. */
async function ownBelow(path: string): Promise<readonly string[]> {
  const own: string[] = [];
  await t.zk.sync(path);
  try {
    for await (const each of t.zk.walk(path)) if (each.path.includes('/_c_')) own.push(each.path);
  } catch (error) {
    if (!KeeperError.is(error, 'NoNode')) throw error;
  }
  return own;
}

/** What happens at a step. */
type Act = (path: string) => Promise<unknown>;

const deleteByHand: Act = async (path) => {
  for (const each of await ownBelow(path)) await t.zk.delete(each);
};

const deleteWithParents: Act = async (path) => {
  for (const each of await ownBelow(path)) {
    await t.zk.delete(each);
    await t.zk.delete(each.slice(0, each.lastIndexOf('/'))).catch(() => undefined);
  }
};

type When = 'ahead' | 'behind';

/**
 * Calls `run` with clients to which `act` happens at each step in turn, before the request or after
 * it; also when the reply to one of their creates is lost. Afterwards no znode and no watch of
 * theirs is left.
 */
async function atEachStep(
  act: Act,
  cases: readonly (readonly [when: When, unanswered?: number])[],
  run: (zk: Client, path: string, label: string) => Promise<void>,
): Promise<void> {
  for (const [when, unanswered] of cases) {
    let isReached = true;
    // In `npm test` at every fifth step.
    for (let step = breadth(1, 0); isReached; step += breadth(5, 1)) {
      isReached = false;
      const path = `/${act.name}-${unanswered}-${when}-${step}`;
      let creates = 0;
      let isOver = false;
      let hasWatches = false;
      const happen = () => act(path);
      const fateOf = ({ at, opCode }: { at: number; opCode: number }): Fate => {
        if (isOver) hasWatches ||= opCode === OpCode.setWatches || opCode === OpCode.setWatches2;
        else isReached ||= at >= step;
        if (opCode === OpCode.create2 && creates++ === unanswered) return 'answer';
        if (at !== step) return undefined;
        return when === 'ahead' ? { ahead: happen } : { behind: happen };
      };
      const zk = await fated(t, fateOf);
      await run(zk, path, `step ${step}, ${when}, create without an answer: ${unanswered}`);
      await t.pass(300, 300);
      expect(await t.until(ownBelow(path)), path).toEqual([]);
      // With the next connection it would set any remaining watches again.
      isOver = true;
      t.world.break();
      await t.world.untilSo(() => zk.state === 'connected');
      expect(hasWatches, path).toBe(false);
      await t.until(zk.close());
    }
  }
}

it.each(Object.keys(comings))('a client whose znode is deleted by hand is notified, at whichever step: %s', async (name) => {
  const received = { lost: 0, had: 0 };
  const come = async (zk: Client, path: string, label: string) => {
    const had = await t.until(comings[name]!(zk, path, {}).catch((error: unknown) => error));
    await t.pass(300, 300);
    if (had instanceof Error) {
      expect(had, label).toMatchObject({ name: 'RecipeError', code: 'Lost' });
      received.lost++;
      return;
    }
    const { paths, signal, giveBack } = had as Had;
    const areThere = await t.until(Promise.all(paths.map((each) => t.zk.exists(each))));
    expect(signal.aborted, label).toBe(areThere.includes(null));
    await t.until(giveBack());
    received.had++;
  };
  await atEachStep(deleteByHand, [['ahead'], ['behind'], ['ahead', 1]], come);
  // NoNode reports the loss of the root of a simple barrier, which the program creates itself.
  if (name !== 'SimpleBarrier') await atEachStep(deleteWithParents, [['ahead']], come);
  expect(received.lost).toBeGreaterThan(breadth(0, 1));
  expect(received.had).toBeGreaterThan(breadth(0, 1));
});

it.each(Object.keys(comings))(
  'a client that gives up, at whichever step, leaves no znode behind, and has taken nothing: %s',
  async (name) => {
    let given = 0;
    let abort!: AbortController;
    const giveUp = () => Promise.resolve(abort.abort(new Error('given up')));
    await atEachStep(giveUp, [['behind']], async (zk, path, label) => {
      abort = new AbortController();
      const had = await t.until(comings[name]!(zk, path, { signal: abort.signal }).catch((error: unknown) => error));
      if (!(had instanceof Error)) {
        await t.until((had as Had).giveBack());
        return;
      }
      expect(had, label).toMatchObject({ message: 'given up' });
      await t.pass(300, 300);
      if (name.startsWith('EventHandle')) expect(await t.until(t.zk.exists(`${path}/set`)), label).not.toBe(null);
      if (name === 'Lease') {
        const next = await t.until(new Lease(t.zk, path, { holder: 'two', durationMs: 60_000 }).tryAcquire());
        expect(next, label).toBeDefined();
        await t.until(next!.release());
      }
      given++;
    });
    expect(given).toBeGreaterThan(breadth(0, 2));
  },
);

/** Recipes that create a deleted znode again. Each shows the result, and how to end it. */
const goings: Record<
  string,
  (zk: Client, path: string) => Promise<readonly [result: () => Promise<unknown>, end: () => Promise<unknown>]>
> = {
  'a persistent node': async (zk, path) => {
    const node = new PersistentNode(zk, `${path}/a-`, null, { mode: 'ephemeralSequential' });
    await node.ready();
    return [async () => (await ownBelow(path)).length, () => node.close()];
  },
  'a member of a party': async (zk, path) => {
    const member = await new Group(zk, path, { naming: 'party' }).join('alice');
    return [async () => (await ownBelow(path)).length, () => member.close()];
  },
  'a queue': async (zk, path) => {
    const queue = new Queue(zk, `${path}/q`);
    await queue.put('a');
    await queue.put('b');
    return [async () => (await queue.contents()).length - 1, () => queue.close()];
  },
  'a number': async (zk, path) => {
    const number = new AtomicNumber(zk, `${path}/n`);
    await number.increment();
    return [async () => Number(await number.get()), () => number.close()];
  },
};

it.each(Object.keys(goings))('C1-3: a znode that is deleted by hand is created again, at whichever step, by %s', async (name) => {
  await atEachStep(
    deleteByHand,
    [
      ['ahead', 1],
      ['ahead', 2],
    ],
    async (zk, path, label) => {
      const going = await t.until(goings[name]!(zk, path).catch((error: unknown) => error));
      await t.pass(300, 300);
      if (going instanceof Error) throw new Error(label, { cause: going });
      const [result, end] = going as Awaited<ReturnType<(typeof goings)[string]>>;
      expect(await t.until(result()), label).toBe(1);
      await t.until(end());
    },
  );
});
