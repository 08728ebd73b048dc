import type { Millis, Zxid } from '@tskeeper/protocol';
import { isWrite } from '../record/request-kinds.ts';
import { requestText } from '../record/request-text.ts';
import type { Checker } from './checker.ts';

export const syncThenRead: Checker = {
  property: 'P9',
  promise: 'A sync returns a zxid not lower than that of any write acknowledged to any client before the sync was sent.',
  check({ cnxns }) {
    const violations: string[] = [];
    const acknowledged: { readonly atMs: Millis; readonly zxid: Zxid }[] = [];
    for (const { requests } of cnxns) {
      for (const request of requests) {
        if (isWrite(request) && request.reply !== undefined) acknowledged.push({ atMs: request.reply.atMs, zxid: request.reply.zxid });
      }
    }
    acknowledged.sort((a, b) => a.atMs - b.atMs);
    const syncs = cnxns.flatMap(({ requests }) => requests.filter(({ name, reply }) => name === 'sync' && reply !== undefined));
    let next = 0;
    let highest: Zxid = 0;
    for (const sync of syncs.toSorted((a, b) => a.sentMs - b.sentMs)) {
      for (; next < acknowledged.length && acknowledged[next]!.atMs < sync.sentMs; next++)
        highest = Math.max(highest, acknowledged[next]!.zxid);
      const { zxid } = sync.reply!;
      if (zxid < highest) violations.push(`${requestText(sync)} was answered at ${zxid}, but ${highest} had been acknowledged before`);
    }
    return violations;
  },
};
