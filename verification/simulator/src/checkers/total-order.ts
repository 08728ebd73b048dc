import { counterOf, epochOf, formatZxid, type Zxid } from '@tskeeper/protocol';
import { leaderEpochsOf } from '../record/committed-history.ts';
import type { Checker } from './checker.ts';

export const totalOrder: Checker = {
  property: 'P1',
  promise:
    'The history is one total order without holes, duplicate zxids or txns that no client requested, and each epoch counts its txns from 1.',
  check(recording, { txns }) {
    const violations: string[] = [];
    let before = recording.seedState.zxid;
    /** By epoch: the last txn of its leader's history when the epoch began. */
    const historyEnds = new Map<number, Zxid>(leaderEpochsOf(recording).map(({ epoch, historyEnd }) => [epoch, historyEnd]));
    for (const { zxid, isUnexplained } of txns) {
      const isNewEpoch = recording.ensemble.size > 0 && epochOf(zxid) > epochOf(before);
      const expected = isNewEpoch ? zxid - counterOf(zxid) + 1 : before + 1;
      if (zxid !== expected) violations.push(`the log continues with ${formatZxid(zxid)}, expected ${formatZxid(expected)}`);
      const historyEnd = isNewEpoch ? historyEnds.get(epochOf(zxid)) : undefined;
      if (historyEnd !== undefined && counterOf(historyEnd) > 0 && historyEnd !== before) {
        violations.push(
          `epoch ${epochOf(zxid)} begins after ${formatZxid(before)}, but its leader's history ended with ${formatZxid(historyEnd)}`,
        );
      }
      if (isUnexplained) violations.push(`txn ${formatZxid(zxid)} has no request`);
      before = zxid;
    }
    return violations;
  },
};
