import { ErrorCode, type SetDataRequest, type StatReply } from '@tskeeper/protocol';
import type { Request } from '../record/recording.ts';
import { requestText } from '../record/request-text.ts';
import type { Checker } from './checker.ts';

export const compareAndSet: Checker = {
  property: 'P12',
  promise: 'Of the requests that change a znode on condition of the same version, at most one succeeds.',
  check({ cnxns }) {
    const violations: string[] = [];
    const winners = new Map<string, Request>();
    for (const { requests } of cnxns) {
      for (const request of requests) {
        if (request.name !== 'setData' || request.reply?.err !== ErrorCode.Ok) continue;
        const { path, version } = request.record as SetDataRequest;
        const { stat } = request.reply.body as StatReply;
        if (version === -1) continue;
        if (stat.version !== ((version + 1) | 0)) violations.push(`${requestText(request)} succeeded and made version ${stat.version}`);
        // After a delete and a create the same path is another znode.
        const key = `${path} made by ${stat.czxid}, version ${version}`;
        const other = winners.get(key);
        if (other !== undefined) violations.push(`${requestText(request)} and ${requestText(other)} both succeeded`);
        winners.set(key, request);
      }
    }
    return violations;
  },
};
