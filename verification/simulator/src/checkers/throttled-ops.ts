import { ErrorCode } from '@tskeeper/protocol';
import { isThrottled } from '../record/request-kinds.ts';
import { requestText } from '../record/request-text.ts';
import type { Checker } from './checker.ts';

export const throttledOps: Checker = {
  property: 'P3',
  promise: 'A server answers ThrottledOp to a write only when it reports that it has no room, once for each such report.',
  check(recording) {
    const violations: string[] = [];
    for (const { key, requests } of recording.cnxns) {
      const reported = [...(recording.throttledOps.get(key) ?? [])];
      for (const request of requests) {
        if (request.reply?.err !== ErrorCode.ThrottledOp || !isThrottled(request)) continue;
        const at = reported.indexOf(request.opCode);
        if (at === -1) violations.push(`${requestText(request)} was turned away, though ${key} had room for it`);
        else reported.splice(at, 1);
      }
    }
    return violations;
  },
};
