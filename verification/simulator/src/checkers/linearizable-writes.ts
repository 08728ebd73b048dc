import type { Millis, Zxid } from '@tskeeper/protocol';
import type { Request } from '../record/recording.ts';
import { isWrite } from '../record/request-kinds.ts';
import { requestText } from '../record/request-text.ts';
import type { Checker } from './checker.ts';

interface WriteEndpoint {
  readonly atMs: Millis;
  readonly zxid: Zxid;
  readonly request: Request;
  readonly acknowledged: boolean;
}

export const linearizableWrites: Checker = {
  property: 'P2',
  promise: 'Writes follow real time: a write that was acknowledged before another was sent has the lower zxid.',
  check({ cnxns }) {
    const violations: string[] = [];
    const endpoints: WriteEndpoint[] = [];
    for (const { requests } of cnxns) {
      for (const request of requests) {
        if (request.reply === undefined || !isWrite(request) || request.reply.zxid <= 0) continue;
        const { zxid, atMs } = request.reply;
        endpoints.push({ atMs: request.sentMs, zxid, request, acknowledged: false }, { atMs, zxid, request, acknowledged: true });
      }
    }
    let highest = 0;
    // A request sent at the instant of an acknowledgement may be ordered either way.
    for (const { zxid, request, acknowledged } of endpoints.toSorted(
      (a, b) => a.atMs - b.atMs || Number(a.acknowledged) - Number(b.acknowledged),
    )) {
      if (acknowledged) highest = Math.max(highest, zxid);
      else if (zxid < highest)
        violations.push(`${requestText(request)} became ${zxid}, but ${highest} had been acknowledged before it was sent`);
    }
    return violations;
  },
};
