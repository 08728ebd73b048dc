import { counterOf, epochOf, formatZxid, type Zxid } from '@tskeeper/protocol';
import { reignsOf } from '../record/committed-history.ts';
import type { Checker } from './checker.ts';

export const oneOrder: Checker = {
  property: 'P1',
  promise: 'One total order: the history has no hole, no zxid twice, and nothing that nobody asked for; each epoch is counted from 1.',
  check(recording, { txns }) {
    const faults: string[] = [];
    let before = recording.beginning.zxid;
    /** By epoch, the txn that its leader says its history ended with. */
    const beginnings = new Map<number, Zxid>(reignsOf(recording).map(({ epoch, historyEnd }) => [epoch, historyEnd]));
    for (const { zxid, invented } of txns) {
      const isNewEpoch = recording.ensemble.size > 0 && epochOf(zxid) > epochOf(before);
      const expected = isNewEpoch ? zxid - counterOf(zxid) + 1 : before + 1;
      if (zxid !== expected) faults.push(`the log goes on with ${formatZxid(zxid)} where ${formatZxid(expected)} was expected`);
      const beginning = isNewEpoch ? beginnings.get(epochOf(zxid)) : undefined;
      if (beginning !== undefined && counterOf(beginning) > 0 && beginning !== before) {
        faults.push(`epoch ${epochOf(zxid)} begins behind ${formatZxid(before)}, and its leader had ${formatZxid(beginning)} last`);
      }
      if (invented) faults.push(`nobody asked for txn ${formatZxid(zxid)}`);
      before = zxid;
    }
    return faults;
  },
};
