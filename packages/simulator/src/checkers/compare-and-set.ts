import { ErrorCode, type SetDataRequest, type StatReply } from '@tskeeper/protocol';
import type { Request } from '../record/recording.ts';
import { nameRequest } from '../replay/replay.ts';
import type { Checker } from './checker.ts';

export const compareAndSet: Checker = {
  property: 'P12',
  promise: 'Of those who change a znode on the condition that it has one version, one succeeds at most.',
  check({ cnxns }) {
    const faults: string[] = [];
    const winners = new Map<string, Request>();
    for (const { requests } of cnxns) {
      for (const request of requests) {
        if (request.name !== 'setData' || request.reply?.err !== ErrorCode.Ok) continue;
        const { path, version } = request.record as SetDataRequest;
        const { stat } = request.reply.body as StatReply;
        if (version === -1) continue;
        if (stat.version !== ((version + 1) | 0)) faults.push(`${nameRequest(request)} went through, and made version ${stat.version}`);
        // The same path is another znode after it was deleted and made anew.
        const key = `${path} made by ${stat.czxid}, version ${version}`;
        const other = winners.get(key);
        if (other !== undefined) faults.push(`${nameRequest(request)} went through, and so did ${nameRequest(other)}`);
        winners.set(key, request);
      }
    }
    return faults;
  },
};
