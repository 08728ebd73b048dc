/**
 * Leases for a fixed time, one alone and two of which either will do: acquired, renewed, released,
 * left to expire, taken over by the next process with the same holder name.
 */
import { type CallOptions, type Client, KeeperError, op } from '@tskeeper/client';
import { type HeldLease, Lease, MultiLease } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import { parentOf } from '../../replay/replay.ts';
import type { Evidence, Family, RecipeStory } from '../family.ts';
import { fences } from '../holds.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { drawWait } from './holding.ts';
import { besides, isOfOne, judgeLeases, type LeaseHold } from './lease-rules.ts';
import { deleteByHand, pathsBelow, storePath } from './line-of-story.ts';

export const leases: Family = {
  what: 'processes hold leases for a time, whatever becomes of their sessions',
  marks: [
    'a lease for a time was had',
    'a lease for a time was not to be had',
    'one of several leases was had',
    'a lease was renewed',
    'a lease was not renewed',
    'a lease was left to its end',
    'a lease that was over was had by another',
    'a lease was taken over by the next of the same name',
    'a lease was broken by hand',
  ],
  draw: (random) => new LeaseStory(random),
};

const onePath = '/leases/one';
const severalPath = '/leases/several';
const count = 2;
const paths = [onePath, ...Array.from({ length: count }, (_, at) => `${severalPath}/${at}`)];

class LeaseStory implements RecipeStory {
  /** Leases count by the clock of the leader, so all leaders must have the same time. */
  readonly wallClocksAgree = true;
  readonly processes: number;
  readonly restMsMax: number;
  readonly #durationMsMax: number;
  readonly #holds: LeaseHold[] = [];

  constructor(random: SeededRandom) {
    this.processes = 2 + random.below(4);
    this.restMsMax = 1 + random.below(300);
    this.#durationMsMax = 400 + random.below(2500);
  }

  async prepare(zk: Client): Promise<void> {
    for (const path of paths) await zk.ensurePath(storeOf(path));
  }

  async turn(process: RecipeProcess, zk: Client): Promise<boolean> {
    const holder = `host-${process.number}`;
    const lease = await this.#had(process, zk, holder);
    if (lease === undefined) {
      process.note('a lease for a time was not to be had');
      return false;
    }
    this.#enter(process, holder, lease);
    process.holds++;
    try {
      await this.#work(process, lease);
    } finally {
      process.holds--;
      if (process.isHealed || process.below(3) > 0) await lease.release();
      else process.note('a lease was left to its end');
    }
    return true;
  }

  async #had(process: RecipeProcess, zk: Client, holder: string): Promise<HeldLease | undefined> {
    const durationMs = 200 + process.below(this.#durationMsMax);
    const limits = { signal: process.stopping, ...drawWait(process) };
    if (process.below(4) === 0) {
      const lease = await new MultiLease(zk, severalPath, { count, durationMs, holder }).tryAcquire(limits);
      if (lease !== undefined) process.note('one of several leases was had');
      return lease;
    }
    const lease = new Lease(zk, onePath, { durationMs, holder });
    return process.below(3) === 0 ? await lease.tryAcquire(limits) : await lease.acquire(limits);
  }

  #enter(process: RecipeProcess, holder: string, lease: HeldLease): void {
    process.note('a lease for a time was had');
    const before = this.#holds.findLast((other) => isOfOne(other.lease, lease));
    if (before?.holder === holder && before.lease.state === 'held') process.note('a lease was taken over by the next of the same name');
    if (before !== undefined && before.holder !== holder && before.lease.state === 'lost')
      process.note('a lease that was over was had by another');
    const hold = { process, holder, lease, fromMs: process.nowMs };
    this.#holds.push({ ...hold, beside: besides(hold, this.#holds) });
  }

  async #work(process: RecipeProcess, lease: HeldLease): Promise<void> {
    if (!process.isHealed && process.below(4) === 0) await renewed(process, lease);
    for (let parts = 1 + process.below(3); parts > 0; parts--) {
      await process.pause(process.below(process.isHealed || process.below(4) > 0 ? 150 : 3000));
      if (process.below(2) === 0) {
        await renew(process, lease);
      }
      // Sometimes a process continues although its time is over: its writes count until another
      // process has the lease.
      if (lease.state !== 'held' && process.below(3) > 0) return;
      await lease.multi([op.setData(storeOf(parentOf(lease.path)), `${lease.path} ${lease.fencingToken}`)]);
    }
    if (process.below(2) === 0) return;
    while (!process.isHealed && lease.leftMs > 0 && process.below(20) > 0) await process.pause(100);
  }

  async meddle(operator: RecipeProcess, zk: Client): Promise<void> {
    const path = paths[operator.below(paths.length)]!;
    if (operator.below(2) === 0) return;
    const victim = (await pathsBelow(zk, path))[operator.below(4)];
    if (victim === undefined) return;
    operator.note('a lease was broken by hand');
    await deleteByHand(zk, victim);
  }

  /** The next holder cleans up, also after those that had no time to. */
  async left(zk: Client): Promise<readonly string[]> {
    const left = await Promise.all(
      paths.map(async (path) => {
        const lease = await new Lease(zk, path, { holder: 'operator', durationMs: 10_000 }).acquire();
        await lease.release();
        return await pathsBelow(zk, path);
      }),
    );
    return left.flat();
  }

  judge({ history }: Evidence): readonly string[] {
    const fenced = paths.flatMap((path) => fences({ path, kinds: ['lease-'], store: storeOf(path), goesFirst: () => true }, history));
    return [...fenced, ...judgeLeases(this.#holds, history)];
  }
}

/**
 * Renews repeatedly, whether that succeeds or not; after a failure half of the processes hold the
 * lease to its end.
 */
async function renewed(process: RecipeProcess, lease: HeldLease): Promise<void> {
  const endMs = process.nowMs + process.below(8000);
  while (!process.isHealed && lease.state === 'held' && process.nowMs < endMs) {
    await process.pause(process.below(Math.ceil(lease.leftMs) + 1));
    if (process.below(6) === 0) process.wire?.forward.resetAfter(0);
    try {
      await renew(process, lease, process.below(3) === 0 ? { timeoutMs: process.below(30) } : {});
    } catch (error) {
      if (!isOpen(error)) throw error;
      process.note('a lease was not renewed');
      if (process.below(2) === 0) continue;
      while (!process.isHealed && lease.leftMs > 0) await process.pause(50);
    }
  }
}

async function renew(process: RecipeProcess, lease: HeldLease, options: CallOptions = {}): Promise<void> {
  await lease.renew(options);
  process.note('a lease was renewed');
}

/** The lease is held as long as before, and the call may be repeated. */
function isOpen(error: unknown): boolean {
  return KeeperError.is(error) && error.retryable;
}

/** One store per lease, as each has tokens of its own. */
function storeOf(path: string): string {
  return `${storePath}${path}`;
}
