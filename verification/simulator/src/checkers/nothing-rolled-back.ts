import { counterOf, type Stat, type Zxid } from '@tskeeper/protocol';
import { lastZxidServed } from '../record/committed-history.ts';
import { requestText } from '../record/request-text.ts';
import type { Request } from '../record/recording.ts';
import type { Checker } from './checker.ts';

/** The first leader gives the operator's configuration a version without a txn: its epoch. */
function isFirstVersion({ record }: Request, zxid: Zxid): boolean {
  return counterOf(zxid) === 0 && (record as { readonly path?: string } | undefined)?.path === '/zookeeper/config';
}

export const nothingRolledBack: Checker = {
  property: 'P8',
  promise: 'Nothing that a client saw is rolled back: every zxid in a Stat or a header belongs to a txn of the final log.',
  check(recording, { txns, lastZxid }) {
    const { cnxns, seedState } = recording;
    const violations: string[] = [];
    const endZxid = lastZxidServed(recording, lastZxid);
    const known = new Set(txns.map(({ zxid }) => zxid));
    const isKnown = (zxid: Zxid) => zxid <= seedState.zxid || known.has(zxid);
    for (const { items } of cnxns) {
      for (const item of items) {
        if (item.zxid > endZxid) violations.push(`${item.kind} at ${item.zxid}, but the log ends at ${endZxid}`);
        if (item.kind !== 'reply') continue;
        const { stat } = (item.request.reply?.body ?? {}) as { readonly stat?: Stat };
        if (stat === undefined) continue;
        for (const field of ['czxid', 'mzxid', 'pzxid'] as const) {
          if (!isKnown(stat[field]) && !isFirstVersion(item.request, stat[field]))
            violations.push(`${requestText(item.request)} shows ${field} ${stat[field]}, which is not in the log`);
        }
      }
    }
    return violations;
  },
};
