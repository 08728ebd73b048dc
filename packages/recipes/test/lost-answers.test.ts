/**
 * Each request of a program that changes values, items and trees is lost once, and each reply, and
 * the connection with it: each operation is applied once.
 */
import { type Client, KeeperError, op } from '@tskeeper/client';
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  AtomicNumber,
  CachedAtomicNumber,
  EventHandle,
  Migrations,
  Model,
  PriorityQueue,
  Queue,
  SharedCount,
  SharedValue,
  textCodec,
  TwoPhaseCommit,
} from '../src/index.ts';
import { type Play, withEachLoss } from './support/each-loss.ts';
import { RecipeWorld } from './support/recipe-world.ts';

let t: RecipeWorld;
let other: Client;

beforeEach(async () => {
  // Containers stay, however long a story takes.
  t = await RecipeWorld.start({ containerCheckIntervalMs: 0 });
  other = await t.client();
});

afterEach(async () => {
  await t.close();
});

const utf8 = new TextDecoder();
const text = { encode: (value: string) => value, decode: (data: Uint8Array | null) => utf8.decode(data ?? undefined) };
const textOf = ({ data }: { readonly data: Uint8Array | null }) => utf8.decode(data ?? undefined);
const moment = () => new Promise<void>((resolve) => t.world.clock.after(300, resolve));

/**
 * For calls that report a lost reply, as those of the client do: reads the state, and repeats the
 * call if needed.
 */
async function unlessDone(isDone: () => Promise<boolean>, call: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await call();
      return;
    } catch (error) {
      if (!KeeperError.is(error, 'ConnectionLoss', 'RequestTimeout') || error.outcome !== 'unknown') throw error;
      if (await isDone()) return;
    }
  }
}

const plays: Record<string, Play> = {
  'a shared value': async (zk, path) => {
    await using value = new SharedValue(zk, `${path}/v`, text);
    const shows = async (wanted: string) => {
      while (value.current?.value !== wanted) await moment();
    };
    await value.ready();
    await value.set('one');
    const is = (wanted: string) => async () => textOf(await t.zk.getData(`${path}/v`, { linearizable: true })) === wanted;
    await unlessDone(is('two'), () => value.update(() => 'two'));
    await shows('two');
    await unlessDone(is('three'), () => value.compareAndSet(value.current, 'three'));
    await other.setData(`${path}/v`, 'four');
    await shows('four');
    return value.current!.stat.version;
  },
  'a shared count': async (zk, path) => {
    await using count = new SharedCount(zk, `${path}/c`);
    await count.ready();
    await count.set(7);
    while (count.count !== 7) await moment();
    return count.current!.stat.version;
  },
  'an atomic number': async (zk, path) => {
    await using number = new AtomicNumber(zk, `${path}/n`);
    await using others = new AtomicNumber(other, `${path}/n`);
    const made = await number.initialize(10n);
    const changes = [await number.increment(), await others.increment(), await number.add(5n)];
    const isSet = await number.compareAndSet(17n, 20n);
    return [made, changes, isSet, await number.get()];
  },
  'a cached number': async (zk, path) => {
    await using number = new AtomicNumber(zk, `${path}/n`);
    const cached = new CachedAtomicNumber(number, 2);
    return [await cached.next(), await cached.next(), await cached.next()];
  },
  'an event handle': async (zk, path) => {
    const [own, others] = [new EventHandle(zk, path), new EventHandle(other, path)];
    await own.set();
    const seen = await others.isSet();
    await own.reset();
    const waiting = own.wait().then(() => 'through');
    await moment();
    await others.set();
    return [seen, await own.isSet(), await waiting];
  },
  'a model': async (zk, path) => {
    const user = new Model('/users/{user}', { codec: textCodec }).at(zk.chroot(path), { user: 'a' });
    await unlessDone(
      async () => (await user.exists({ retry: true })) !== null,
      () => user.create('one', { retry: true }),
    );
    await user.set('two', { retry: true, idempotent: true });
    await user
      .put('three', { retry: true })
      .catch((error: unknown) => expect(KeeperError.is(error, 'ConnectionLoss', 'RequestTimeout')).toBe(true));
    await user.update(() => 'four', { retry: true, idempotent: true });
    return (await user.find({ retry: true }))!.value;
  },
  migrations: async (zk, path) => {
    const list = [
      { name: 'users', ops: [op.create(`${path}/users`)] },
      { name: 'admin', ops: [op.create(`${path}/users/admin`), op.create(`${path}/users/u-`, null, { mode: 'persistentSequential' })] },
    ];
    const migrations = new Migrations(zk, `${path}/migrations`, list);
    const names = await migrations.migrate();
    return [names, await migrations.migrate(), (await migrations.applied()).map((each) => each.number)];
  },
  'a queue': async (zk, path) => {
    const [own, others] = [new Queue(zk, `${path}/q`, { maxItems: 3 }), new Queue(other, `${path}/q`)];
    await own.putAll(['a', 'b']);
    const claimed = await own.claim();
    await claimed.release();
    const got: string[] = [];
    await own.process((item) => void got.push(textOf(item)));
    got.push(textOf((await others.tryTake())!));
    await Promise.all([own.close(), others.close()]);
    return got;
  },
  'a priority queue': async (zk, path) => {
    const queue = new PriorityQueue(zk, `${path}/q`);
    await queue.put('late', { priority: 9 });
    await queue.put('soon', { priority: 1 });
    const got = [textOf(await queue.take()), textOf(await queue.take())];
    await queue.close();
    return got;
  },
  'a transaction': async (zk, path) => {
    const own = new TwoPhaseCommit(zk, `${path}/tx`, { presence: true });
    await own.begin(['berlin', 'paris']);
    const site = async (each: Client, name: string) => {
      await using joined = await new TwoPhaseCommit(each, `${path}/tx`, { presence: true }).join(name);
      const vote = await joined.vote('commit');
      const outcome = await joined.outcome();
      await joined.acknowledge();
      return [vote, outcome];
    };
    return await Promise.all([site(zk, 'berlin'), site(other, 'paris')]);
  },
};

it.each(Object.keys(plays))('C1-3: the loss of any one request or reply changes nothing: %s', async (name) => {
  expect(await withEachLoss(t, plays[name]!)).toBeGreaterThan(2 * 3);
});
