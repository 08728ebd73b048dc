/**
 * Tries other ways to trace doubtful txns: those that can have come from one of several requests, none of which was answered. What nobody was told
 * cannot be told apart by anybody, so a story is true if one way to trace them makes it so.
 */
import type { DoubtfulTxn, Tracing } from './replay.ts';

export interface Judged<F> {
  readonly doubtful: readonly DoubtfulTxn[];
  readonly findings: readonly F[];
}

/** How many tracings are tried. A recording that is really wrong costs so many replays. */
const triesMax = 64;

/** The findings of the best tracing that was found, starting from `first`; each step changes the request of one txn and must leave fewer findings. */
export function fewestFindings<F>(first: Judged<F>, judge: (tracing: Tracing) => Judged<F>): F[] {
  let best = first;
  let tracing: Tracing = new Map();
  for (let triesLeft = triesMax; best.findings.length > 0;) {
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
