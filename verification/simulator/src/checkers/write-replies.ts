import { requestText, replyText } from '../record/request-text.ts';
import { answerText, isAnsweredAs } from '../replay/answer.ts';
import type { Checker } from './checker.ts';

export const writeReplies: Checker = {
  property: 'P3',
  promise: 'Each reply to a write equals what the model gives: error, created path, every field of the Stat; the log records the same.',
  check(_recording, { writes, txns }) {
    const violations: string[] = [];
    for (const { request, answer } of writes) {
      if (request.reply === undefined || isAnsweredAs(request, answer)) continue;
      violations.push(`${requestText(request)} at ${request.reply.zxid} got\n  ${replyText(request)}, not\n  ${answerText(answer)}`);
    }
    for (const { zxid, request, loggedErr, expectedErr } of txns) {
      if (loggedErr !== expectedErr && request !== undefined) {
        violations.push(`${requestText(request)} at ${zxid} is logged with error ${loggedErr}, expected ${expectedErr}`);
      }
    }
    return violations;
  },
};
