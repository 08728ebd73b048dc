/**
 * Rules for leases:
 *
 * - two: no running process has a lease in the moment in which another has acquired it, unless it
 *   was broken by hand, or both use one holder name, or another process of its name had taken it
 *   over before: then the end of that one decides.
 */
import type { HeldLease } from '@tskeeper/recipes';
import { parentOf } from '../../record/parent-of.ts';
import type { ZnodeHistory } from '../znode-history.ts';
import type { RecipeProcess } from '../recipe-process.ts';

/** A lease, as its holder believed to have it. */
export interface LeaseHold {
  readonly process: Pick<RecipeProcess, 'name' | 'isDead' | 'pausedUntilMs' | 'nowMs'>;
  readonly holder: string;
  readonly lease: Pick<HeldLease, 'path' | 'fencingToken' | 'state'>;
  readonly fromMs: number;
  /** Those who believed to have the lease in that moment under another holder name. */
  readonly concurrent: readonly LeaseHold[];
}

/** The holds of the lease while this process acquires it. */
export function concurrentHolds(
  { process, holder, lease }: Pick<LeaseHold, 'process' | 'holder' | 'lease'>,
  holds: readonly LeaseHold[],
): LeaseHold[] {
  if (lease.state !== 'held') return [];
  // A paused process does nothing, and finds its lease over when it continues.
  const isAtIt = (other: LeaseHold) =>
    !other.process.isDead && other.process.pausedUntilMs <= process.nowMs && other.lease.state === 'held';
  return holds.filter((other) => other.holder !== holder && isSameLease(other.lease, lease) && isAtIt(other));
}

export function isSameLease(one: LeaseHold['lease'], other: LeaseHold['lease']): boolean {
  return parentOf(one.path) === parentOf(other.path);
}

export function checkLeases(holds: readonly LeaseHold[], history: ZnodeHistory): string[] {
  return holds.flatMap((hold) => {
    const { process, lease, fromMs, concurrent } = hold;
    const { path, fencingToken } = lease;
    if (history.createdBy(path, fencingToken) === undefined)
      return [`two: ${process.name} has ${path} by token ${fencingToken}, which no txn created`];
    return concurrent
      .filter((other) => {
        // A process may learn late that it has the lease, after another has rightly taken it.
        const [older, newer] = other.lease.fencingToken < fencingToken ? [other, hold] : [hold, other];
        return !isBroken(older, fromMs, history) && !isTakenOver(older, newer.lease.fencingToken, history);
      })
      .map(
        (other) => `two: ${process.name} has ${path} at ${fromMs.toFixed(3)}, while ${other.process.name} still had ${other.lease.path}`,
      );
  });
}

/** Whether the record of the holder was deleted by hand. */
function isBroken({ lease: { path, fencingToken } }: LeaseHold, untilMs: number, history: ZnodeHistory): boolean {
  const own = history.createdBy(path, fencingToken);
  const record = `${parentOf(path)}/lease_holder`;
  const written = history.writes.find(
    (write) => write.path === record && write.zxid > Number(fencingToken) && write.session === own?.session,
  );
  const life = history.lives.find((each) => each.path === record && each.czxid <= written!.zxid && each.deletedZxid > written!.zxid);
  return life !== undefined && life.deletedMs <= untilMs && life.deletedBy !== own?.session;
}

/**
 * By another process of its name, before the holder with `token`: it writes nothing itself after
 * its znode is gone.
 */
function isTakenOver({ holder, lease: { path, fencingToken } }: LeaseHold, token: bigint, history: ZnodeHistory): boolean {
  const own = history.createdBy(path, fencingToken);
  const record = `${parentOf(path)}/lease_holder`;
  return history.writes.some(
    (write) =>
      own !== undefined &&
      write.path === record &&
      write.zxid >= own.deletedZxid &&
      write.zxid < Number(token) &&
      write.data.includes(`"holder":${JSON.stringify(holder)}`),
  );
}
