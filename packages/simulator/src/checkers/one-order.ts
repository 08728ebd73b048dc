import { counterOf, epochOf, formatZxid, type Zxid } from '@tskeeper/protocol';
import { reignsOf } from '../record/committed-history.ts';
import type { Checker } from './checker.ts';

export const oneOrder: Checker = {
  property: 'P1',
  promise:
    'The history is one total order without holes, duplicate zxids or txns that no client requested, and each epoch counts its txns from 1.',
  check(recording, { txns }) {
    const faults: string[] = [];
    let before = recording.beginning.zxid;
    /** By epoch: the last txn of its leader's history when the epoch began. */
    const beginnings = new Map<number, Zxid>(reignsOf(recording).map(({ epoch, historyEnd }) => [epoch, historyEnd]));
    for (const { zxid, invented } of txns) {
      const isNewEpoch = recording.ensemble.size > 0 && epochOf(zxid) > epochOf(before);
      const expected = isNewEpoch ? zxid - counterOf(zxid) + 1 : before + 1;
      if (zxid !== expected) faults.push(`the log continues with ${formatZxid(zxid)}, expected ${formatZxid(expected)}`);
      const beginning = isNewEpoch ? beginnings.get(epochOf(zxid)) : undefined;
      if (beginning !== undefined && counterOf(beginning) > 0 && beginning !== before) {
        faults.push(
          `epoch ${epochOf(zxid)} begins after ${formatZxid(before)}, but its leader's history ended with ${formatZxid(beginning)}`,
        );
      }
      if (invented) faults.push(`txn ${formatZxid(zxid)} has no request`);
      before = zxid;
    }
    return faults;
  },
};
