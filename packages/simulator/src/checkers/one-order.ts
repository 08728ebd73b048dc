import { formatZxid } from '@tskeeper/protocol';
import type { Checker } from './checker.ts';

export const oneOrder: Checker = {
  property: 'P1',
  promise: 'One total order: the log has no hole, no zxid twice, and nothing that nobody asked for.',
  check({ beginning }, { txns }) {
    const faults: string[] = [];
    let before = beginning.zxid;
    for (const { zxid, invented } of txns) {
      if (zxid !== before + 1) faults.push(`the log goes on with ${formatZxid(zxid)} where ${formatZxid(before + 1)} was expected`);
      if (invented) faults.push(`nobody asked for txn ${formatZxid(zxid)}`);
      before = zxid;
    }
    return faults;
  },
};
