/**
 * Zab's invariants, in the words of the specifications of ZooKeeper, held in every state that an ensemble goes through: they are looked at
 * behind each event that its servers tell of, in the order in which the events happened.
 */
import { counterOf, epochOf, formatZxid, makeZxid, type Zxid } from '@tskeeper/protocol';
import type { PeerEvent } from '../record/peer-event.ts';
import type { Checker } from './checker.ts';

type Serving = Extract<PeerEvent, { kind: 'serves' }>;

export const zab: Checker = {
  property: 'P30',
  promise:
    'One server leads an epoch, with everything that was committed before; txns are committed in one order, and applied where they are committed.',
  check({ peers }) {
    const run = new Run();
    for (const event of peers) run.take(event);
    return run.faults;
  },
};

class Run {
  readonly faults: string[] = [];
  /** By epoch: who has led it, and the history it began with. */
  readonly #reigns = new Map<number, Serving>();
  /** Where each server serves at the moment, and the last txn it has applied there. */
  readonly #terms = new Map<string, { readonly serving: Serving; last: Zxid }>();
  /** By epoch, the last txn that its leader has committed. */
  readonly #commits = new Map<number, Zxid>();
  readonly #logged = new Map<string, Zxid>();
  /** The last txn that anyone has committed. */
  #committed: Zxid = 0;

  take(event: PeerEvent): void {
    switch (event.kind) {
      case 'serves':
        this.#serves(event);
        return;
      case 'applied':
        this.#applied(event.server, event.zxid);
        return;
      case 'logged':
        if (event.zxid <= (this.#logged.get(event.server) ?? 0)) this.#fault('TotalOrder', event.server, 'logs', event.zxid);
        this.#logged.set(event.server, event.zxid);
        return;
      case 'replaced':
        this.#logged.set(event.server, event.zxid);
        return;
      case 'ended':
        this.#terms.delete(event.server);
        return;
      case 'gone':
      case 'wiped':
        this.#terms.delete(event.server);
        this.#logged.delete(event.server);
        return;
      default:
    }
  }

  #serves(event: Serving): void {
    const { server, role, epoch, historyEnd } = event;
    this.#terms.set(server, { serving: event, last: historyEnd });
    const reign = this.#reigns.get(epoch);
    // It has served in an epoch that came to an end without a txn.
    const end = this.#lastTxn(historyEnd);
    if (role !== 'leader') {
      if (reign === undefined) this.faults.push(`Leadership: ${server} serves in epoch ${epoch}, which nobody leads`);
      else if (end < this.#lastTxn(reign.historyEnd)) this.#fault('ProcessConsistency', server, `serves in epoch ${epoch} with`, end);
      return;
    }
    if (reign !== undefined) this.faults.push(`Leadership: ${server} leads epoch ${epoch}, which ${reign.server} has led`);
    if (end < this.#committed) this.#fault('LeaderLogCompleteness', server, `leads epoch ${epoch} with`, end, this.#committed);
    this.#reigns.set(epoch, event);
  }

  /** Where a history ends of which the beginning of an epoch is told. */
  #lastTxn(zxid: Zxid): Zxid {
    if (counterOf(zxid) > 0) return zxid;
    const reign = this.#reigns.get(epochOf(zxid));
    return reign === undefined || reign.historyEnd >= zxid ? zxid : this.#lastTxn(reign.historyEnd);
  }

  #applied(server: string, zxid: Zxid): void {
    const term = this.#terms.get(server);
    if (term === undefined) {
      this.#fault('Serving', server, 'applies for clients, though it does not serve,', zxid);
      return;
    }
    const { epoch, role } = term.serving;
    const expected = epochOf(term.last) === epochOf(zxid) ? term.last + 1 : makeZxid(epochOf(zxid), 1);
    if (zxid !== expected) this.#fault('LocalPrimaryOrder', server, 'applies', zxid, term.last);
    term.last = zxid;
    if (role !== 'leader') {
      if (zxid > (this.#commits.get(epoch) ?? this.#reigns.get(epoch)?.historyEnd ?? 0)) {
        this.#fault('PrefixConsistency', server, 'applies what its leader has not committed,', zxid);
      }
      return;
    }
    if (epochOf(zxid) !== epoch) this.#fault('GlobalPrimaryOrder', server, `commits as the leader of epoch ${epoch}`, zxid);
    for (const later of this.#reigns.values()) {
      // What it began with may hold the txn: then that was committed, though the old leader hears of it late.
      if (later.epoch > epoch && this.#lastTxn(later.historyEnd) < zxid)
        this.#fault('PrimaryIntegrity', server, `commits behind epoch ${later.epoch}`, zxid);
    }
    this.#commits.set(epoch, zxid);
    this.#committed = Math.max(this.#committed, zxid);
  }

  #fault(name: string, server: string, what: string, zxid: Zxid, other?: Zxid): void {
    const besides = other === undefined ? '' : `, and ${formatZxid(other)} had been committed or applied`;
    this.faults.push(`${name}: ${server} ${what} ${counterOf(zxid) === 0 ? 'the end before ' : ''}${formatZxid(zxid)}${besides}`);
  }
}
