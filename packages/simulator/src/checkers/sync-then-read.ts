import type { Millis, Zxid } from '@tskeeper/protocol';
import { isWrite, nameRequest } from '../replay/replay.ts';
import type { Checker } from './checker.ts';

export const syncThenRead: Checker = {
  property: 'P9',
  promise: 'A sync has behind it every write that was acknowledged, to anyone, before it was asked for.',
  check({ cnxns }) {
    const faults: string[] = [];
    const acknowledged: { readonly atMs: Millis; readonly zxid: Zxid }[] = [];
    for (const { requests } of cnxns) {
      for (const request of requests) {
        if (isWrite(request) && request.reply !== undefined) acknowledged.push({ atMs: request.reply.atMs, zxid: request.reply.zxid });
      }
    }
    for (const { requests } of cnxns) {
      for (const request of requests) {
        const { reply } = request;
        if (request.name !== 'sync' || reply === undefined) continue;
        const late = acknowledged.find(({ atMs, zxid }) => atMs < request.sentMs && zxid > reply.zxid);
        if (late !== undefined)
          faults.push(`${nameRequest(request)} was answered at ${reply.zxid}, and ${late.zxid} had been acknowledged before`);
      }
    }
    return faults;
  },
};
