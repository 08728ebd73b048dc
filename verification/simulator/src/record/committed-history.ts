/**
 * Finds which of the txns in the logs of an ensemble are its history. A leader that serves begins
 * its epoch with a history that a quorum has, so everything in that is committed, and txns after it
 * in an earlier epoch never were. So the history is found backwards from its end, epoch by epoch,
 * without asking who acknowledged what.
 */
import { counterOf, epochOf, type Millis, type Zxid, makeZxid } from '@tskeeper/protocol';
import type { Recording } from './recording.ts';
import { ServersWithoutLog } from './servers-without-log.ts';

/** In the order in which they began. */
export function leaderEpochsOf(recording: Pick<Recording, 'peerEvents'>): LeaderEpoch[] {
  return servingPeriodsOf(recording).flatMap(({ role, ...term }) => (role === 'leader' ? [term] : []));
}

/** One server's time in an epoch, as its leader or as a learner that serves. */
export interface ServingPeriod {
  readonly epoch: number;
  readonly server: string;
  readonly role: 'leader' | 'follower' | 'observer';
  /**
   * The last txn of its history when it began. A leader's is the one with which the epoch begins.
   */
  readonly historyEnd: Zxid;
  readonly fromMs: Millis;
  /** When it ended; Infinity if it never did. */
  toMs: Millis;
}

export type LeaderEpoch = Omit<ServingPeriod, 'role'>;

/**
 * By the list of events in which they were found, valid until an event is added: many checkers ask,
 * for each session.
 */
const periodsCache = new WeakMap<Recording['peerEvents'], { readonly events: number; readonly terms: readonly ServingPeriod[] }>();

/** In the order in which they began. */
export function servingPeriodsOf({ peerEvents }: Pick<Recording, 'peerEvents'>): readonly ServingPeriod[] {
  const known = periodsCache.get(peerEvents);
  if (known?.events === peerEvents.length) return known.terms;
  const servingPeriods = findServingPeriods(peerEvents);
  periodsCache.set(peerEvents, { events: peerEvents.length, terms: servingPeriods });
  return servingPeriods;
}

function findServingPeriods(peers: Recording['peerEvents']): ServingPeriod[] {
  const servingPeriods: ServingPeriod[] = [];
  const current = new Map<string, ServingPeriod>();
  for (const event of peers) {
    if (event.kind === 'serves') {
      const { epoch, server, role, historyEnd, atMs } = event;
      const servingPeriod = { epoch, server, role, historyEnd, fromMs: atMs, toMs: Infinity };
      servingPeriods.push(servingPeriod);
      current.set(server, servingPeriod);
    } else if (event.kind === 'roleEnded' || event.kind === 'processGone') {
      const servingPeriod = current.get(event.server);
      if (servingPeriod !== undefined) servingPeriod.toMs = event.atMs;
      current.delete(event.server);
    }
  }
  return servingPeriods;
}

/** The epoch in which a server served at that moment; undefined if it did not. */
export function epochAt(servingPeriods: readonly ServingPeriod[], server: string, atMs: Millis): number | undefined {
  return servingPeriods.findLast(
    (servingPeriod) => servingPeriod.server === server && servingPeriod.fromMs <= atMs && servingPeriod.toMs >= atMs,
  )?.epoch;
}

/**
 * The last txn that any server served: the end of the history, once all servers are quiet. What a
 * leader begins with is committed when it serves, even if its epoch never has a txn.
 */
export function lastServed({ peerEvents, seedState }: Pick<Recording, 'peerEvents' | 'seedState'>): Zxid {
  let last = seedState.zxid;
  for (const event of peerEvents) {
    if (event.kind === 'applied') last = Math.max(last, event.zxid);
    else if (event.kind === 'serves' && event.role === 'leader') last = Math.max(last, event.historyEnd);
  }
  return last;
}

/**
 * The highest zxid that a client can be shown if the log ends with `lastZxid`: an epoch without a
 * txn is served with the zxid of its beginning.
 */
export function lastZxidServed(recording: Pick<Recording, 'peerEvents'>, lastZxid: Zxid): Zxid {
  return leaderEpochsOf(recording).reduce((last, { epoch }) => Math.max(last, makeZxid(epoch, 0)), lastZxid);
}

/** The last txn that each server has on its disk. */
export function lastLogged({ peerEvents }: Pick<Recording, 'peerEvents'>): Map<string, Zxid> {
  const last = new Map<string, Zxid>();
  const withoutLog = new ServersWithoutLog();
  for (const event of peerEvents) {
    withoutLog.onEvent(event);
    if (withoutLog.has(event.server)) continue;
    if (event.kind === 'logged' || event.kind === 'replaced') last.set(event.server, event.zxid);
    else if (event.kind === 'wiped') last.set(event.server, 0);
  }
  return last;
}

/**
 * The last txn of a history that ends with the beginning of an epoch: the server has served in an
 * epoch that ended without a txn.
 */
export function lastTxnOf(leaderEpochs: readonly Pick<LeaderEpoch, 'epoch' | 'historyEnd'>[], zxid: Zxid): Zxid {
  if (counterOf(zxid) > 0) return zxid;
  const leaderEpoch = leaderEpochs.find(({ epoch }) => epoch === epochOf(zxid));
  return leaderEpoch === undefined || leaderEpoch.historyEnd >= zxid ? zxid : lastTxnOf(leaderEpochs, leaderEpoch.historyEnd);
}

/**
 * By epoch, the counter of its last txn in the history that ends with `end`. Epochs without a txn
 * are left out.
 */
export function epochEnds(leaderEpochs: readonly LeaderEpoch[], end: Zxid, seedZxid: Zxid): Map<number, number> {
  const ends = new Map<number, number>();
  for (let last = end; last > seedZxid;) {
    const epoch = epochOf(last);
    if (ends.has(epoch)) break;
    if (counterOf(last) > 0) ends.set(epoch, counterOf(last));
    const leaderEpoch = leaderEpochs.findLast((each) => each.epoch === epoch);
    if (leaderEpoch === undefined) break;
    last = leaderEpoch.historyEnd;
  }
  return ends;
}

/** Whether a txn is part of the history whose epochs end like that. */
export function isCommitted(ends: ReadonlyMap<number, number>, zxid: Zxid): boolean {
  return counterOf(zxid) <= (ends.get(epochOf(zxid)) ?? 0);
}
