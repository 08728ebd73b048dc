/**
 * Leases for a fixed time, one alone and two of which either will do: acquired, renewed, released,
 * left to expire, taken over by the next process with the same holder name.
 */
import { type CallOptions, type Client, KeeperError, op } from '@tskeeper/client';
import { type HeldLease, Lease, MultiLease } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import { parentOf } from '../../record/parent-of.ts';
import type { Evidence, Family, FamilyRun } from '../family.ts';
import { checkFencing } from '../mutual-exclusion.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { drawWaitOptions } from './work-under-hold.ts';
import { concurrentHolds, isSameLease, checkLeases, type LeaseHold } from './lease-rules.ts';
import { deleteAsOperator, childPaths, storePath } from './family-helpers.ts';

export const leases: Family = {
  description: 'processes hold leases for a time, whatever becomes of their sessions',
  marks: [
    'a timed lease was acquired',
    'a timed lease was not available',
    'one of several leases was acquired',
    'a lease was renewed',
    'a lease was not renewed',
    'a lease expired',
    'an expired lease was acquired by another',
    'a lease was taken over by an owner of the same name',
    'an operator broke a lease',
  ],
  drawRun: (random) => new LeaseRun(random),
};

const onePath = '/leases/one';
const severalPath = '/leases/several';
const count = 2;
const paths = [onePath, ...Array.from({ length: count }, (_, at) => `${severalPath}/${at}`)];

class LeaseRun implements FamilyRun {
  /** Leases count by the clock of the leader, so all leaders must have the same time. */
  readonly wallClocksAgree = true;
  readonly processes: number;
  readonly pauseMsMax: number;
  readonly #durationMsMax: number;
  readonly #holds: LeaseHold[] = [];

  constructor(random: SeededRandom) {
    this.processes = 2 + random.below(4);
    this.pauseMsMax = 1 + random.below(300);
    this.#durationMsMax = 400 + random.below(2500);
  }

  async prepare(zk: Client): Promise<void> {
    for (const path of paths) await zk.ensurePath(storeOf(path));
  }

  async turn(process: RecipeProcess, zk: Client): Promise<boolean> {
    const holder = `host-${process.number}`;
    const lease = await this.#acquire(process, zk, holder);
    if (lease === undefined) {
      process.hitMark('a timed lease was not available');
      return false;
    }
    this.#enter(process, holder, lease);
    process.holdCount++;
    try {
      await this.#work(process, lease);
    } finally {
      process.holdCount--;
      if (process.isHealed || process.below(3) > 0) await lease.release();
      else process.hitMark('a lease expired');
    }
    return true;
  }

  async #acquire(process: RecipeProcess, zk: Client, holder: string): Promise<HeldLease | undefined> {
    const durationMs = 200 + process.below(this.#durationMsMax);
    const limits = { signal: process.stopping, ...drawWaitOptions(process) };
    if (process.below(4) === 0) {
      const lease = await new MultiLease(zk, severalPath, { count, durationMs, holder }).tryAcquire(limits);
      if (lease !== undefined) process.hitMark('one of several leases was acquired');
      return lease;
    }
    const lease = new Lease(zk, onePath, { durationMs, holder });
    return process.below(3) === 0 ? await lease.tryAcquire(limits) : await lease.acquire(limits);
  }

  #enter(process: RecipeProcess, holder: string, lease: HeldLease): void {
    process.hitMark('a timed lease was acquired');
    const before = this.#holds.findLast((other) => isSameLease(other.lease, lease));
    if (before?.holder === holder && before.lease.state === 'held') process.hitMark('a lease was taken over by an owner of the same name');
    if (before !== undefined && before.holder !== holder && before.lease.state === 'lost')
      process.hitMark('an expired lease was acquired by another');
    const hold = { process, holder, lease, fromMs: process.nowMs };
    this.#holds.push({ ...hold, concurrent: concurrentHolds(hold, this.#holds) });
  }

  async #work(process: RecipeProcess, lease: HeldLease): Promise<void> {
    if (!process.isHealed && process.below(4) === 0) await renewRepeatedly(process, lease);
    for (let parts = 1 + process.below(3); parts > 0; parts--) {
      await process.sleep(process.below(process.isHealed || process.below(4) > 0 ? 150 : 3000));
      if (process.below(2) === 0) {
        await renew(process, lease);
      }
      // Sometimes a process continues although its lease has expired: its writes count until
      // another process has the lease.
      if (lease.state !== 'held' && process.below(3) > 0) return;
      await lease.multi([op.setData(storeOf(parentOf(lease.path)), `${lease.path} ${lease.fencingToken}`)]);
    }
    if (process.below(2) === 0) return;
    while (!process.isHealed && lease.remainingMs > 0 && process.below(20) > 0) await process.sleep(100);
  }

  async operatorAction(operator: RecipeProcess, zk: Client): Promise<void> {
    const path = paths[operator.below(paths.length)]!;
    if (operator.below(2) === 0) return;
    const victim = (await childPaths(zk, path))[operator.below(4)];
    if (victim === undefined) return;
    operator.hitMark('an operator broke a lease');
    await deleteAsOperator(zk, victim);
  }

  /** The next holder cleans up, also after those that had no time to. */
  async leftovers(zk: Client): Promise<readonly string[]> {
    const left = await Promise.all(
      paths.map(async (path) => {
        const lease = await new Lease(zk, path, { holder: 'operator', durationMs: 10_000 }).acquire();
        await lease.release();
        return await childPaths(zk, path);
      }),
    );
    return left.flat();
  }

  check({ history }: Evidence): readonly string[] {
    const fenced = paths.flatMap((path) =>
      checkFencing({ path, kinds: ['lease-'], storePath: storeOf(path), goesFirst: () => true }, history),
    );
    return [...fenced, ...checkLeases(this.#holds, history)];
  }
}

/**
 * Renews repeatedly, whether that succeeds or not; after a failure half of the processes hold the
 * lease to its end.
 */
async function renewRepeatedly(process: RecipeProcess, lease: HeldLease): Promise<void> {
  const endMs = process.nowMs + process.below(8000);
  while (!process.isHealed && lease.state === 'held' && process.nowMs < endMs) {
    await process.sleep(process.below(Math.ceil(lease.remainingMs) + 1));
    if (process.below(6) === 0) process.wire?.forward.resetAfter(0);
    try {
      await renew(process, lease, process.below(3) === 0 ? { timeoutMs: process.below(30) } : {});
    } catch (error) {
      if (!isRetryable(error)) throw error;
      process.hitMark('a lease was not renewed');
      if (process.below(2) === 0) continue;
      while (!process.isHealed && lease.remainingMs > 0) await process.sleep(50);
    }
  }
}

async function renew(process: RecipeProcess, lease: HeldLease, options: CallOptions = {}): Promise<void> {
  await lease.renew(options);
  process.hitMark('a lease was renewed');
}

/** The lease is held as long as before, and the call may be repeated. */
function isRetryable(error: unknown): boolean {
  return KeeperError.is(error) && error.retryable;
}

/** One store per lease, as each has tokens of its own. */
function storeOf(path: string): string {
  return `${storePath}${path}`;
}
