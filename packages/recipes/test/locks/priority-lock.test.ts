import { SeededRandom } from '@tskeeper/runtime';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { breadth } from '../../../../test/breadth.ts';
import { type Hold, PriorityLock } from '../../src/index.ts';
import { previousContender, QueueNode } from '../../src/wait-queue/wait-queue.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

const path = '/locks/table';

describe('a priority lock', () => {
  it('C1-41: is acquired by a place at the gate, a read of the gate, a read of the holders, and the requests of a shared lock', async () => {
    const first = await t.until(new PriorityLock(t.zk, path).readLock(20).acquire());
    const { zk, lines } = await t.recorded();
    const waiting = new PriorityLock(zk, path).writeLock(5).acquire();
    await t.settle();
    await t.until(first.release());
    const held = await t.until(waiting);
    expect(lines).toEqual([
      'create /locks/table/waiting/guid-write-05- ephemeral sequential',
      'exists /locks/table/waiting/guid-write-05-0000000001 watch',
      'getChildren /locks/table/waiting',
      'getChildren /locks/table/holding',
      'exists /locks/table/holding/guid-read-20-0000000000 watch',
      'getChildren /locks/table/waiting',
      'getChildren /locks/table/holding',
      'create /locks/table/holding/guid-write-05- ephemeral sequential',
      'exists /locks/table/holding/guid-write-05-0000000001 watch',
      'getChildren /locks/table/holding',
      'delete /locks/table/waiting/guid-write-05-0000000001',
    ]);
    await t.until(held.release());
    expect(await t.childrenOf(`${path}/holding`)).toEqual([]);
    expect(await t.childrenOf(`${path}/waiting`)).toEqual([]);
  });

  it('C1-41: includes contenders whose numbers have overflowed, whatever their length', async () => {
    const names = [
      'a-read-20-2147483647',
      'b-read-20--2147483648',
      'c-read-20--1000000000',
      'd-read-20--999999999',
      'e-read-20--000000001',
    ];
    for (const name of names.slice(1)) await t.until(t.zk.create(`${path}/waiting/${name}`, '', { parents: true }));
    const lock = new PriorityLock(t.zk, path);
    expect((await t.until(lock.contenders())).map(({ name }) => name)).toEqual(names.slice(1));
    await t.until(t.zk.delete(`${path}/waiting/e-read-20--000000001`));
    await t.until(t.zk.create(`${path}/waiting/${names[0]!}`, ''));
    expect((await t.until(lock.contenders())).map(({ name }) => name)).toEqual(names.slice(0, 4));
  });

  it('C1-41, C1-2: admits the most urgent contender first, one of 100 at a time, with a constant number of requests', async () => {
    const { zk, lines } = await t.recorded();
    const lock = new PriorityLock(zk, path);
    const order: number[] = [];
    const holds = [await t.until(lock.writeLock(0).acquire())];
    const acquiring = Array.from({ length: 100 }, async (_, who) => {
      const held = await lock.writeLock((who * 37) % 100).acquire();
      order.push((who * 37) % 100);
      holds.push(held);
    });
    const over = Promise.allSettled(acquiring);
    await t.pass(1000);
    expect(order).toEqual([]);
    const counts: number[] = [];
    for (let round = 0; round < 12; round++) {
      lines.length = 0;
      await t.until(holds.at(-1)!.release());
      await t.pass(100);
      expect(holds.length).toBe(round + 2);
      counts.push(lines.length);
    }
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    expect(new Set(counts)).toEqual(new Set([10]));
    await t.until(zk.close());
    await t.until(over);
  });

  it('C1-41: wakes once each contender that later, more urgent ones have overtaken, and then one at a time', async () => {
    const { zk, lines } = await t.recorded();
    const lock = new PriorityLock(zk, path);
    const holds = [await t.until(lock.writeLock(0).acquire())];
    const acquiring: Promise<unknown>[] = [];
    for (let priority = 30; priority > 0; priority--) {
      acquiring.push(
        lock
          .writeLock(priority)
          .acquire()
          .then((held) => holds.push(held)),
      );
      await t.settle();
    }
    const over = Promise.allSettled(acquiring);
    const counts: number[] = [];
    for (let round = 0; round < 4; round++) {
      lines.length = 0;
      await t.until(holds.at(-1)!.release());
      await t.pass(200);
      expect(holds.length).toBe(round + 2);
      counts.push(lines.length);
    }
    expect(counts).toEqual([68, 10, 10, 10]);
    await t.until(zk.close());
    await t.until(over);
  });

  it('C1-41: has the same holders as a plain model under arrivals and departures, over seeds', async () => {
    for (let seed = 1; seed <= breadth(3, 30); seed++) expect(await againstModel(seed)).toBe(20);
  });

  it('is detected by the model when it follows the order of arrival', async () => {
    const blocker = Object.getOwnPropertyDescriptor(QueueNode.prototype, 'currentBlocker')!.value as QueueNode['currentBlocker'];
    vi.spyOn(QueueNode.prototype, 'currentBlocker').mockImplementation(function (this: QueueNode, ahead, signal) {
      return blocker.call(this, this.path.includes('/waiting/') ? previousContender : ahead, signal);
    });
    const judge = async () => {
      for (let seed = 1; seed <= 10; seed++) await againstModel(seed);
    };
    await expect(judge()).rejects.toThrow(/seed \d+, step \d+/);
    vi.restoreAllMocks();
  });

  it('C1-41: preempts less urgent holders, which consent or lose it after a stated time, and no others', async () => {
    const lock = new PriorityLock(t.zk, path);
    const asked: string[] = [];
    let consent!: () => void;
    const onRevocation = (name: string) => () => {
      asked.push(name);
      return new Promise<void>((resolve) => (consent = resolve));
    };
    const consenting = await t.until(lock.readLock(50).acquire({ onRevocation: onRevocation('50') }));
    const silent = await t.until(lock.readLock(60).acquire());
    const urgent = await t.until(lock.readLock(10).acquire({ onRevocation: onRevocation('10') }));
    const writing = lock.writeLock(20, { preempt: { deleteAfterMs: 3000 } }).acquire();
    await t.pass(1000);
    expect(asked).toEqual(['50']);
    consent();
    await t.pass(1000);
    expect([consenting.state, silent.state, urgent.state]).toEqual(['released', 'held', 'held']);
    await t.pass(2000);
    expect([silent.state, urgent.state]).toEqual(['lost', 'held']);
    await t.until(urgent.release());
    const writer = await t.until(writing);
    expect(writer.state).toBe('held');
    // A contender that preempts waits for its equals.
    const equal = lock.writeLock(20, { preempt: true }).acquire();
    await t.pass(1000);
    await t.until(writer.release());
    await t.until((await t.until(equal)).release());
  });

  it('C1-41: keeps the place at the gate of a contender that is revoked during its last step', async () => {
    const lock = new PriorityLock(t.zk, path);
    const first = await t.until(lock.writeLock(10).acquire());
    // Two pass the gate at once, as the one with the first place has not seen the second arrive;
    // simulated by a place among the holders.
    const wedge = await t.until(t.zk.create(`${path}/holding/write-30-`, '', { mode: 'ephemeralSequential' }));
    const late = lock.writeLock(40).acquire({ onRevocation: () => undefined });
    await t.until(first.release());
    await t.settle();
    expect((await t.until(lock.contenders())).map(({ prefix }) => prefix)).toEqual(['write-40-']);
    await t.until(t.zk.delete(wedge.path));
    await t.until((await t.until(late)).release());
  });

  it('C1-41: is tried without waiting and without overtaking, and a wait that is cancelled leaves no znode', async () => {
    const lock = new PriorityLock(t.zk, path, { data: 'me' });
    const reader = (await t.until(lock.readLock(50).tryAcquire()))!;
    expect(await t.until(lock.writeLock(0).tryAcquire())).toBe(undefined);
    const writing = failureOf(lock.writeLock(40).acquire({ timeoutMs: 2000 }));
    await t.settle();
    expect(await t.until(lock.readLock(60).tryAcquire())).toBe(undefined);
    const urgent = (await t.until(lock.readLock(30).tryAcquire()))!;
    expect((await t.until(lock.holders())).map(({ prefix }) => prefix)).toEqual(['read-50-', 'read-30-']);
    expect(await t.until(writing)).toMatchObject({ code: 'TimedOut' });
    const broken = failureOf(lock.writeLock(40).run(() => undefined));
    await t.settle();
    const [contender] = await t.until(lock.contenders());
    await t.until(t.zk.delete(contender!.path));
    expect(await t.until(broken)).toMatchObject({ name: 'RecipeError', code: 'Lost' });
    const [holder] = await t.until(lock.holders());
    await t.until(lock.revoke(holder!, { deleteAfterMs: 100 }));
    await t.settle();
    expect(reader.state).toBe('lost');
    await t.until(urgent.release());
    expect(await t.childrenOf(`${path}/holding`)).toEqual([]);
    expect(await t.childrenOf(`${path}/waiting`)).toEqual([]);
    for (const priority of [-1, 100, 1.5])
      expect(() => lock.readLock(priority)).toThrow(`a priority must be an integer from 0 to 99, not ${priority}`);
  });
});

/** A waiter or holder, in the model and in the world. */
interface Party {
  readonly priority: number;
  readonly writes: boolean;
  readonly stop: AbortController;
  held: Hold | undefined;
}

/**
 * Admits the holders by the rules: in the order of priority and arrival, a writer alone, a reader
 * without a writer before it.
 */
function grant(waiting: Party[], holding: Party[]): void {
  const isAhead = (one: Party, other: Party) => one.priority - other.priority;
  let isWriterAhead = false;
  for (const party of waiting.toSorted(isAhead)) {
    const isFree = party.writes
      ? holding.length === 0 && !isWriterAhead && waiting.toSorted(isAhead)[0] === party
      : !holding.some((each) => each.writes) && !isWriterAhead;
    if (isFree) {
      waiting.splice(waiting.indexOf(party), 1);
      holding.push(party);
    }
    isWriterAhead ||= party.writes;
  }
}

/** The number of steps in which both were the same. */
async function againstModel(seed: number): Promise<number> {
  const random = new SeededRandom(seed);
  const lock = new PriorityLock(t.zk, `${path}-${seed}`);
  const waiting: Party[] = [];
  const holding: Party[] = [];
  const all: Party[] = [];
  let step = 0;
  for (; step < 20; step++) {
    const dice = random.below(10);
    if (dice < 5 || waiting.length + holding.length === 0) {
      const party: Party = { priority: random.below(5), writes: random.below(2) === 0, stop: new AbortController(), held: undefined };
      all.push(party);
      waiting.push(party);
      const side = party.writes ? lock.writeLock(party.priority) : lock.readLock(party.priority);
      void side.acquire({ signal: party.stop.signal }).then(
        (held) => (party.held = held),
        () => undefined,
      );
    } else if (dice < 9 && holding.length > 0) {
      const [party] = holding.splice(random.below(holding.length), 1);
      await t.until(party!.held!.release());
    } else if (waiting.length > 0) {
      const [party] = waiting.splice(random.below(waiting.length), 1);
      party!.stop.abort(new Error('given up'));
    }
    grant(waiting, holding);
    await t.pass(20, 10);
    const holds = (party: Party) => party.held?.state === 'held';
    const show = (parties: readonly Party[]) => parties.map((party) => all.indexOf(party)).toSorted((a, b) => a - b);
    expect(show(all.filter(holds)), `seed ${seed}, step ${step}`).toEqual(show(holding));
  }
  for (const party of waiting) party.stop.abort(new Error('the end'));
  await t.until(Promise.all(holding.map((party) => party.held!.release())));
  await t.settle();
  return step;
}
