/**
 * A call that is given up, at whichever step: its operation was applied and is reported, or was not
 * applied; and nothing is left behind.
 */
import { type Client, KeeperError } from '@tskeeper/client';
import { OpCode } from '@tskeeper/protocol';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { breadth } from '../../../../test/breadth.ts';
import { ClaimedItem, DelayQueue, type BaseQueue, Queue, type QueueItem, ShardedQueue, type WaitOptions } from '../../src/index.ts';
import { type Fate, fated } from '../support/fates.ts';
import { RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

interface Kind {
  readonly make: (zk: Client, path: string) => BaseQueue<never>;
  readonly put: (queue: never) => Promise<void>;
  readonly call: (queue: never, options: WaitOptions) => Promise<QueueItem | ClaimedItem | void>;
  /** How many items precede it. */
  readonly ahead: number;
}

const plain = { make: (zk: Client, path: string) => new Queue(zk, path), put: (queue: Queue) => queue.put('x') };
const kinds: Record<string, Kind> = {
  'a take that waits': { ...plain, call: (queue: Queue, options) => queue.take(options), ahead: 0 },
  'a claim that waits': { ...plain, call: (queue: Queue, options) => queue.claim(options), ahead: 0 },
  'a take of several znodes': {
    make: (zk, path) => new ShardedQueue(zk, path, { shards: 2 }),
    put: (queue: ShardedQueue) => queue.put('x'),
    call: (queue: ShardedQueue, options) => queue.take(options),
    ahead: 0,
  },
  'a take of a delay queue': {
    make: (zk, path) => new DelayQueue(zk, path),
    put: (queue: DelayQueue) => queue.put('x', { delayMs: 200 }),
    call: (queue: DelayQueue, options) => queue.take(options),
    ahead: 0,
  },
  'a put that waits for room': {
    make: (zk, path) => new Queue(zk, path, { maxItems: 1 }),
    put: async (queue: Queue) => void (await queue.tryTake()),
    call: (queue: Queue, options) => queue.put('x', options),
    ahead: 1,
  },
};

async function znodesBelow(path: string): Promise<readonly string[]> {
  const found: string[] = [];
  try {
    for await (const { path: each, stat } of t.zk.walk(path)) if (stat.ephemeralOwner !== 0n) found.push(each);
  } catch (error) {
    if (!KeeperError.is(error, 'NoNode')) throw error;
  }
  return found;
}

const ways: Record<string, (giveUp: () => void) => Fate> = {
  'when the request is sent': (giveUp) => ({ ahead: () => Promise.resolve(giveUp()) }),
  'when the reply arrives': (giveUp) => ({ behind: () => Promise.resolve(giveUp()) }),
  'when the reply is lost': (giveUp) => {
    giveUp();
    return 'answer';
  },
};

it.each(Object.entries(kinds))(
  'C1-3, B6: %s that is given up, at whichever step, leaves nothing behind',
  async (name, { make, put, call, ahead }) => {
    for (const [way, fateOf] of Object.entries(ways)) {
      let had = 0;
      let given = 0;
      let isOver = false;
      for (let step = breadth(1, 0); !isOver; step += breadth(4, 1)) {
        const label = `${name}, given up with request ${step}, ${way}`;
        const path = `/${way.replaceAll(' ', '-')}-${step}`;
        const other = make(t.zk, path);
        for (let count = 0; count < ahead; count++) await t.until((other as unknown as Queue).put('x'));
        const abort = new AbortController();
        let hasCome = false;
        const zk = await fated(t, ({ at, opCode }) => {
          if (at !== step || opCode === OpCode.ping) return undefined;
          hasCome = true;
          return fateOf(() => abort.abort(new Error('given up')));
        });
        const queue = make(zk, path);
        const calling = call(queue as never, { signal: abort.signal }).then(
          (result) => result ?? 'done',
          (error: unknown) => error as Error,
        );
        await t.pass(300);
        await t.until(put(other as never));
        await t.pass(500);
        const result = await t.until(calling);
        isOver = !hasCome;
        if (result instanceof Error) {
          expect(result.message, label).toBe('given up');
          given++;
        } else had++;
        if (result instanceof ClaimedItem) {
          expect(await t.until(other.size()), label).toBe(1);
          await t.until(result.release());
        }
        await t.pass(2000, 200);
        const isThere = result instanceof ClaimedItem || result instanceof Error !== name.startsWith('a put');
        expect(await t.until(other.size()), label).toBe(isThere ? 1 : 0);
        if (isThere) expect(await t.until(other.tryTake()), label).toBeDefined();
        await t.until(Promise.all([queue.close(), other.close()]));
        await t.settle();
        expect(await t.until(znodesBelow(`${path}-aside`)), label).toEqual([]);
        await t.until(zk.close());
      }
      expect(
        [had, given].every((count) => count > 0),
        `${name}, ${way}: had ${had}, given up ${given}`,
      ).toBe(true);
    }
  },
);
