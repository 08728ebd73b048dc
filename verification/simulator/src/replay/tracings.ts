/**
 * Tries other tracings of doubtful txns: those that can have come from one of several requests
 * without a reply. Requests without a reply to any client cannot be distinguished, so a recording
 * is right if one tracing makes it so.
 */
import type { DoubtfulTxn, Tracing } from './replay-result.ts';

export interface Judged<F> {
  readonly doubtful: readonly DoubtfulTxn[];
  readonly findings: readonly F[];
}

/** Maximum number of tracings tried. A recording with a real violation costs this many replays. */
const triesMax = 64;
/**
 * How many txns are replayed for that, at most: a long recording takes seconds for each tracing.
 */
const replayedTxnsMax = 10_000;

/** How many tracings of a recording with so many txns are tried. */
export function triesOf(txns: number): number {
  return Math.min(triesMax, Math.ceil(replayedTxnsMax / Math.max(1, txns)));
}

/**
 * The findings of the best tracing that was found, starting from `first`, among `tries` of them.
 * Each step changes the request of one txn and must leave fewer findings.
 */
export function fewestFindings<F>(first: Judged<F>, tries: number, judge: (tracing: Tracing) => Judged<F>): F[] {
  let best = first;
  let tracing: Tracing = new Map();
  for (let triesLeft = tries; best.findings.length > 0;) {
    const others = best.doubtful.flatMap(({ zxid, others: cnxns }) => cnxns.map((cnxn) => new Map([...tracing, [zxid, cnxn]])));
    let isBetter = false;
    for (const next of others) {
      if (triesLeft-- <= 0) return [...best.findings];
      const judged = judge(next);
      if (judged.findings.length >= best.findings.length) continue;
      [best, tracing, isBetter] = [judged, next, true];
      break;
    }
    if (!isBetter) break;
  }
  return [...best.findings];
}
