import { ErrorCode } from '@tskeeper/protocol';
import { requestText } from '../record/request-text.ts';
import type { Checker } from './checker.ts';

export const access: Checker = {
  property: 'P33',
  promise: 'No request succeeds that the ACL denies, and none is denied that it permits.',
  check(_recording, { writes, reads }) {
    const violations: string[] = [];
    for (const { request, answer } of [...writes, ...reads]) {
      const got = request.reply?.err;
      if (got === undefined || (got === ErrorCode.NoAuth) === (answer.err === ErrorCode.NoAuth)) continue;
      violations.push(`${requestText(request)} at ${request.reply!.zxid} returned error ${got}; by the ACL it must return ${answer.err}`);
    }
    return violations;
  },
};
