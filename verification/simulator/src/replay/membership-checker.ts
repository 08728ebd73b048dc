/**
 * What a replay knows of the membership besides the txns: the version that the first leader gives
 * the operator's configuration, which no txn does; and the two refusals of a reconfig that depend on
 * what the servers did at that moment.
 */
import { ErrorCode, epochOf, makeZxid, OpCode, type TxnLogEntry, type Millis, type Zxid } from '@tskeeper/protocol';
import { membersOf, membershipText } from '../record/config-text.ts';
import { servingPeriodsOf } from '../record/committed-history.ts';
import { isQuorum, withoutFavourite } from '../record/quorum-rule.ts';
import type { Recording, Request } from '../record/recording.ts';

export class MembershipChecker {
  readonly #recording: Recording;
  /** What each leader had as its configuration when it began to serve, in the order of epochs. */
  readonly #epochConfigs: { readonly zxid: Zxid; readonly text: string }[];
  #next = 0;
  /** The last reconfig that was carried out, and when its leader had applied it. */
  #last: { readonly zxid: Zxid; readonly appliedMs: Millis } | undefined;

  constructor(recording: Recording) {
    this.#recording = recording;
    this.#epochConfigs = epochConfigsOf(recording).toSorted((a, b) => a.zxid - b.zxid);
  }

  /**
   * The text that clients see from the beginning of an epoch on, if it begins before `zxid` and was
   * not returned before. After a reconfig the text is that of the reconfig.
   */
  takeConfigBefore(zxid: Zxid): { readonly zxid: Zxid; readonly text: string } | undefined {
    for (;;) {
      const config = this.#epochConfigs[this.#next];
      if (config === undefined || config.zxid >= zxid) return undefined;
      this.#next++;
      if (this.#last === undefined && membershipText(config.text) === membershipText(this.#recording.configText ?? '')) return config;
    }
  }

  carriedOut({ header, txn }: TxnLogEntry): void {
    if (header.type !== OpCode.reconfig || txn.kind !== 'setData') return;
    this.#last = { zxid: header.zxid, appliedMs: this.#appliedMs(header.zxid) };
  }

  /** The refusal in the log, if only the servers can explain it and it can be true. */
  refusalOf({ record }: Request, { header, txn }: TxnLogEntry, atMs: Millis): number | undefined {
    const err = txn.kind === 'error' ? txn.err : ErrorCode.Ok;
    if (err === ErrorCode.ReconfigInProgress) return this.#isPendingAt(header.zxid, atMs) ? err : undefined;
    if (err === ErrorCode.NewConfigNoQuorum)
      return this.#mayLackQuorum((record as { newMembers: string | null }).newMembers, header.zxid, atMs) ? err : undefined;
    return undefined;
  }

  /** Times in a log are whole milliseconds. */
  #isPendingAt(zxid: Zxid, atMs: Millis): boolean {
    return this.#last !== undefined && epochOf(this.#last.zxid) === epochOf(zxid) && !(this.#last.appliedMs < atMs - 1);
  }

  /** False if a quorum of a whole configuration follows the leader, and nothing disturbed it. */
  #mayLackQuorum(newMembers: string | null, zxid: Zxid, atMs: Millis): boolean {
    if (newMembers === null) return true;
    const { disturbances, pauses, limits } = this.#recording;
    // What the oracle said to the leader at that moment is not known here.
    const members = withoutFavourite(membersOf(newMembers.replaceAll(',', '\n'), limits.oracleSid));
    const awhileMs = 2 * (limits.syncLimitTicks ?? 0) * limits.tickMs;
    const isMeanwhile = (each: { readonly fromMs: Millis; readonly toMs: Millis }) => each.fromMs <= atMs && each.toMs >= atMs - awhileMs;
    if (disturbances.some(isMeanwhile) || pauses.some(isMeanwhile)) return true;
    const inStep = servingPeriodsOf(this.#recording).filter(
      ({ epoch, role, fromMs, toMs }) =>
        epoch === epochOf(zxid) && role !== 'observer' && fromMs < atMs - awhileMs && toMs > atMs + awhileMs,
    );
    return !isQuorum(
      members,
      inStep.map(({ server }) => server),
    );
  }

  #appliedMs(zxid: Zxid): Millis {
    const { peerEvents } = this.#recording;
    const leader = servingPeriodsOf(this.#recording).find(({ epoch, role }) => epoch === epochOf(zxid) && role === 'leader')?.server;
    return peerEvents.find((event) => event.kind === 'applied' && event.server === leader && event.zxid === zxid)?.atMs ?? Infinity;
  }
}

function epochConfigsOf({ peerEvents }: Recording): { readonly zxid: Zxid; readonly text: string }[] {
  const texts = new Map<string, string>();
  return peerEvents.flatMap((event) => {
    if (event.kind === 'config') texts.set(event.server, event.text);
    const text = texts.get(event.server);
    return event.kind === 'serves' && event.role === 'leader' && text !== undefined ? [{ zxid: makeZxid(event.epoch, 0), text }] : [];
  });
}
