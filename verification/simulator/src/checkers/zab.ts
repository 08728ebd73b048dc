/**
 * Zab's invariants, with the names of ZooKeeper's specifications, checked after each event that the
 * servers report, in the order in which the events happened.
 */
import { counterOf, epochOf, formatZxid, makeZxid, type Zxid } from '@tskeeper/protocol';
import { lastTxnOf } from '../record/committed-history.ts';
import type { PeerEvent } from '../record/peer-event.ts';
import type { Checker } from './checker.ts';

type Serving = Extract<PeerEvent, { kind: 'serves' }>;

export const zab: Checker = {
  property: 'P30',
  promise:
    'One server leads an epoch, with everything that was committed before. Txns are committed in one order without gaps. No server truncates a txn that it has applied for clients.',
  check({ peerEvents }) {
    const run = new ZabHistory();
    for (const event of peerEvents) run.onEvent(event);
    return run.violations;
  },
};

class ZabHistory {
  readonly violations: string[] = [];
  /** By epoch: its leader, and the history with which it began. */
  readonly #leaders = new Map<number, Serving>();
  /** Where each server serves, and the last txn that it applied there. */
  readonly #serving = new Map<string, { readonly serving: Serving; last: Zxid }>();
  readonly #logged = new Map<string, Zxid>();
  /** The last txn that each server has applied for clients: it is committed for good. */
  readonly #shown = new Map<string, Zxid>();
  /** By epoch: its last txn that a server applied. */
  readonly #committed = new Map<number, Zxid>();

  onEvent(event: PeerEvent): void {
    switch (event.kind) {
      case 'serves':
        this.#serves(event);
        return;
      case 'applied':
        this.#applied(event.server, event.zxid);
        return;
      case 'logged':
        if (event.zxid <= (this.#logged.get(event.server) ?? 0)) this.#violation('TotalOrder', event.server, 'logs', event.zxid);
        this.#logged.set(event.server, event.zxid);
        return;
      case 'replaced': {
        const shown = this.#shown.get(event.server) ?? 0;
        if (event.by === 'trunc' && event.zxid < shown)
          this.#violation('CommittedKept', event.server, 'truncates its log after', event.zxid, shown);
        this.#logged.set(event.server, event.zxid);
        return;
      }
      case 'roleEnded':
        this.#serving.delete(event.server);
        return;
      case 'processGone':
      case 'wiped':
        this.#serving.delete(event.server);
        this.#logged.delete(event.server);
        // An operator may have put an older folder in its place.
        this.#shown.delete(event.server);
        return;
      default:
    }
  }

  #serves(event: Serving): void {
    const { server, role, epoch, historyEnd } = event;
    this.#serving.set(server, { serving: event, last: historyEnd });
    const leaderEpoch = this.#leaders.get(epoch);
    // The server has served in an epoch that ended without a txn.
    const end = this.#lastTxn(historyEnd);
    if (role !== 'leader') {
      if (leaderEpoch === undefined) this.violations.push(`Leadership: ${server} serves in epoch ${epoch}, which no server leads`);
      else if (end < this.#lastTxn(leaderEpoch.historyEnd))
        this.#violation('ProcessConsistency', server, `serves in epoch ${epoch} with`, end);
      return;
    }
    if (leaderEpoch !== undefined) this.violations.push(`Leadership: ${server} leads epoch ${epoch}, which ${leaderEpoch.server} led`);
    const committed = this.#committedBefore(epoch);
    if (end < committed) this.#violation('LeaderLogCompleteness', server, `leads epoch ${epoch} with`, end, committed);
    this.#leaders.set(epoch, event);
  }

  /**
   * A paused leader may begin to lead after a later one has committed something; it cannot commit
   * anything itself.
   */
  #committedBefore(epoch: number): Zxid {
    let last: Zxid = 0;
    for (const [other, zxid] of this.#committed) if (other < epoch) last = Math.max(last, zxid);
    return last;
  }

  #lastTxn(zxid: Zxid): Zxid {
    return lastTxnOf([...this.#leaders.values()], zxid);
  }

  #applied(server: string, zxid: Zxid): void {
    const servingPeriod = this.#serving.get(server);
    if (servingPeriod === undefined) {
      this.#violation('Serving', server, 'does not serve, but applies for clients', zxid);
      return;
    }
    const { epoch, role } = servingPeriod.serving;
    const expected = epochOf(servingPeriod.last) === epochOf(zxid) ? servingPeriod.last + 1 : makeZxid(epochOf(zxid), 1);
    if (zxid !== expected) this.#violation('LocalPrimaryOrder', server, 'applies', zxid, servingPeriod.last);
    servingPeriod.last = zxid;
    this.#shown.set(server, Math.max(this.#shown.get(server) ?? 0, zxid));
    this.#committed.set(epochOf(zxid), Math.max(this.#committed.get(epochOf(zxid)) ?? 0, zxid));
    // A learner may apply before its leader, which has sent the commit and may be busy. Whether the
    // txn is committed is checked elsewhere.
    if (role !== 'leader') return;
    if (epochOf(zxid) !== epoch) this.#violation('GlobalPrimaryOrder', server, `commits as the leader of epoch ${epoch}`, zxid);
    for (const later of this.#leaders.values()) {
      // The later leader's initial history may hold the txn: then it was committed, though the old
      // leader learns of it late.
      if (later.epoch > epoch && this.#lastTxn(later.historyEnd) < zxid)
        this.#violation('PrimaryIntegrity', server, `commits after epoch ${later.epoch} began`, zxid);
    }
  }

  #violation(name: string, server: string, what: string, zxid: Zxid, other?: Zxid): void {
    const besides = other === undefined ? '' : `, but ${formatZxid(other)} had been committed or applied`;
    this.violations.push(`${name}: ${server} ${what} ${counterOf(zxid) === 0 ? 'the end before ' : ''}${formatZxid(zxid)}${besides}`);
  }
}
