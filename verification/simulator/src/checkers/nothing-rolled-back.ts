import type { Stat, Zxid } from '@tskeeper/protocol';
import { requestText } from '../record/request-text.ts';
import type { Checker } from './checker.ts';

export const nothingRolledBack: Checker = {
  property: 'P8',
  promise: 'Nothing that a client saw is rolled back: every zxid in a Stat or a header belongs to a txn of the final log.',
  check({ cnxns, seedState }, { txns, lastZxid }) {
    const violations: string[] = [];
    const known = new Set(txns.map(({ zxid }) => zxid));
    const isKnown = (zxid: Zxid) => zxid <= seedState.zxid || known.has(zxid);
    for (const { items } of cnxns) {
      for (const item of items) {
        if (item.zxid > lastZxid) violations.push(`${item.kind} at ${item.zxid}, but the log ends at ${lastZxid}`);
        if (item.kind !== 'reply') continue;
        const { stat } = (item.request.reply?.body ?? {}) as { readonly stat?: Stat };
        if (stat === undefined) continue;
        for (const field of ['czxid', 'mzxid', 'pzxid'] as const) {
          if (!isKnown(stat[field])) violations.push(`${requestText(item.request)} shows ${field} ${stat[field]}, which is not in the log`);
        }
      }
    }
    return violations;
  },
};
