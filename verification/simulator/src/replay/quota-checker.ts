/**
 * Quotas in a recording. A server checks a request against its tree, which lags the proposals by an
 * amount that the recording does not show. So the model takes the decision from the log, and the
 * checker validates it: it must be right for the tree at some moment after the last txn that the
 * server had certainly applied when the request was sent, and before the request was proposed.
 */
import { epochOf, ErrorCode, type TxnLogEntry, type Millis, type Zxid } from '@tskeeper/protocol';
import { exceedsQuota, type QuotaCheck, type Quotas } from '../model/quotas.ts';
import { type LeaderEpoch, leaderEpochsOf } from '../record/committed-history.ts';
import type { Recording, Request } from '../record/recording.ts';

export interface QuotaDecision {
  readonly request: Request;
  readonly zxid: Zxid;
  readonly path: string;
  readonly isRefused: boolean;
  readonly isCorrect: boolean;
}

export class QuotaChecker {
  readonly decisions: QuotaDecision[] = [];
  readonly #recording: Recording;
  readonly #leaderEpochs: readonly LeaderEpoch[];
  /**
   * What the deciding server applied when, in order: by server of an ensemble, or under '' for a
   * standalone server.
   */
  readonly #applied = new Map<string, { readonly atMs: Millis; readonly zxid: Zxid }[]>();
  /** The quotas from each txn on that changed them. */
  readonly #history: { readonly fromZxid: Zxid; readonly quotas: Quotas; readonly text: string }[] = [];

  constructor(recording: Recording) {
    this.#recording = recording;
    this.#leaderEpochs = leaderEpochsOf(recording);
    const note = (server: string, atMs: Millis, zxid: Zxid) => {
      const known = this.#applied.get(server);
      if (known === undefined) this.#applied.set(server, [{ atMs, zxid }]);
      else known.push({ atMs, zxid });
    };
    for (const event of recording.peerEvents) if (event.kind === 'applied') note(event.server, event.atMs, event.zxid);
    if (recording.ensemble.size > 0) return;
    const items = recording.cnxns.flatMap((cnxn) => cnxn.items).toSorted((a, b) => a.atMs - b.atMs);
    for (const { atMs, zxid } of items) if (zxid > 0) note('', atMs, zxid);
  }

  /** Records the quotas after the txn `zxid`. */
  recordQuotas(zxid: Zxid, quotas: Quotas): void {
    if (quotas.size === 0 && this.#history.length === 0) return;
    const text = JSON.stringify([...quotas]);
    if (text !== this.#history.at(-1)?.text) this.#history.push({ fromZxid: zxid, quotas, text });
  }

  /**
   * Returns the log's decision on this request, or on this operation of a multi, and validates it.
   */
  check(request: Request, { header, txn }: TxnLogEntry, question: QuotaCheck): boolean {
    const { zxid } = header;
    const isRefused = errorOf(txn, question.part) === ErrorCode.QuotaExceeded;
    const fromZxid = Math.min(zxid - 1, this.#appliedAt(request.sentMs, zxid));
    const last = this.#history.findLastIndex((state) => state.fromZxid <= fromZxid);
    const meanwhile = this.#history.slice(Math.max(0, last)).filter((state) => state.fromZxid < zxid);
    const isCorrect = (last === -1 && !isRefused) || meanwhile.some(({ quotas }) => exceedsQuota(quotas, question) === isRefused);
    this.decisions.push({ request, zxid, path: question.path, isRefused, isCorrect });
    return isRefused;
  }

  /** The last zxid that the deciding server had certainly applied. */
  #appliedAt(ms: Millis, zxid: Zxid): Zxid {
    const leaderEpoch = this.#leaderEpochs.find(({ epoch }) => epoch === epochOf(zxid));
    if (this.#recording.ensemble.size > 0 && leaderEpoch === undefined) return 0;
    // A leader that is a quorum by itself may apply the request itself at the same moment.
    const applied = this.#applied.get(leaderEpoch?.server ?? '')?.findLast(({ atMs }) => atMs < ms)?.zxid ?? 0;
    return Math.max(leaderEpoch?.historyEnd ?? 0, applied);
  }
}

/** The error of this operation if it was the first of the multi to fail, or that of the request. */
function errorOf(txn: TxnLogEntry['txn'], part: number): number {
  if (txn.kind === 'error') return txn.err;
  if (txn.kind !== 'multi') return ErrorCode.Ok;
  const failed = txn.txns.findIndex((each) => each.txn.kind === 'error');
  const { txn: member } = txn.txns[failed] ?? {};
  return failed === part && member?.kind === 'error' ? member.err : ErrorCode.Ok;
}
