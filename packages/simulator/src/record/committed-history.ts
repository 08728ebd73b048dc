/**
 * Finds which of the txns in the logs of an ensemble are its history. A leader that serves begins
 * its epoch with a history that a quorum has, so everything in that is committed, and txns after it
 * in an earlier epoch never were. So the history is found backwards from its end, epoch by epoch,
 * without asking who acknowledged what.
 */
import { counterOf, epochOf, type Millis, type Zxid } from '@tskeeper/protocol';
import type { Recording } from './recording.ts';

/** In the order in which they began. */
export function reignsOf(recording: Pick<Recording, 'peers'>): Reign[] {
  return termsOf(recording).flatMap(({ role, ...term }) => (role === 'leader' ? [term] : []));
}

/** One server's time in an epoch, as its leader or as a learner that serves. */
export interface Term {
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

export type Reign = Omit<Term, 'role'>;

/**
 * By the list of events in which they were found, valid until an event is added: many checkers ask,
 * for each session.
 */
const knownTerms = new WeakMap<Recording['peers'], { readonly events: number; readonly terms: readonly Term[] }>();

/** In the order in which they began. */
export function termsOf({ peers }: Pick<Recording, 'peers'>): readonly Term[] {
  const known = knownTerms.get(peers);
  if (known?.events === peers.length) return known.terms;
  const terms = findTerms(peers);
  knownTerms.set(peers, { events: peers.length, terms });
  return terms;
}

function findTerms(peers: Recording['peers']): Term[] {
  const terms: Term[] = [];
  const current = new Map<string, Term>();
  for (const event of peers) {
    if (event.kind === 'serves') {
      const { epoch, server, role, historyEnd, atMs } = event;
      const term = { epoch, server, role, historyEnd, fromMs: atMs, toMs: Infinity };
      terms.push(term);
      current.set(server, term);
    } else if (event.kind === 'ended' || event.kind === 'gone') {
      const term = current.get(event.server);
      if (term !== undefined) term.toMs = event.atMs;
      current.delete(event.server);
    }
  }
  return terms;
}

/** The epoch in which a server served at that moment; undefined if it did not. */
export function epochAt(terms: readonly Term[], server: string, atMs: Millis): number | undefined {
  return terms.findLast((term) => term.server === server && term.fromMs <= atMs && term.toMs >= atMs)?.epoch;
}

/** The last txn that any server served: the end of the history, once all servers are quiet. */
export function lastServed({ peers, beginning }: Pick<Recording, 'peers' | 'beginning'>): Zxid {
  let last = beginning.zxid;
  for (const event of peers) if (event.kind === 'applied') last = Math.max(last, event.zxid);
  return last;
}

/** The last txn that each server has on its disk. */
export function lastLogged({ peers }: Pick<Recording, 'peers'>): Map<string, Zxid> {
  const last = new Map<string, Zxid>();
  for (const event of peers) {
    if (event.kind === 'logged' || event.kind === 'replaced') last.set(event.server, event.zxid);
    else if (event.kind === 'wiped') last.set(event.server, 0);
  }
  return last;
}

/**
 * The last txn of a history that ends with the beginning of an epoch: the server has served in an
 * epoch that ended without a txn.
 */
export function lastTxnOf(reigns: readonly Pick<Reign, 'epoch' | 'historyEnd'>[], zxid: Zxid): Zxid {
  if (counterOf(zxid) > 0) return zxid;
  const reign = reigns.find(({ epoch }) => epoch === epochOf(zxid));
  return reign === undefined || reign.historyEnd >= zxid ? zxid : lastTxnOf(reigns, reign.historyEnd);
}

/**
 * By epoch, the counter of its last txn in the history that ends with `end`. Epochs without a txn
 * are left out.
 */
export function epochEnds(reigns: readonly Reign[], end: Zxid, beginning: Zxid): Map<number, number> {
  const ends = new Map<number, number>();
  for (let last = end; last > beginning;) {
    const epoch = epochOf(last);
    if (ends.has(epoch)) break;
    if (counterOf(last) > 0) ends.set(epoch, counterOf(last));
    const reign = reigns.findLast((each) => each.epoch === epoch);
    if (reign === undefined) break;
    last = reign.historyEnd;
  }
  return ends;
}

/** Whether a txn is part of the history whose epochs end like that. */
export function isIn(ends: ReadonlyMap<number, number>, zxid: Zxid): boolean {
  return counterOf(zxid) <= (ends.get(epochOf(zxid)) ?? 0);
}
