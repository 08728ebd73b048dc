import { answerText, isAnswered, nameRequest, replyText } from '../replay/replay.ts';
import type { Checker } from './checker.ts';

export const writeReplies: Checker = {
  property: 'P3',
  promise: 'Each reply to a write equals what the model gives: error, created path, every field of the Stat; the log records the same.',
  check(_recording, { writes, txns }) {
    const faults: string[] = [];
    for (const { request, answer } of writes) {
      if (request.reply === undefined || isAnswered(request, answer)) continue;
      faults.push(`${nameRequest(request)} at ${request.reply.zxid} got\n  ${replyText(request)}, not\n  ${answerText(answer)}`);
    }
    for (const { zxid, request, loggedErr, expectedErr } of txns) {
      if (loggedErr !== expectedErr && request !== undefined) {
        faults.push(`${nameRequest(request)} at ${zxid} is logged with error ${loggedErr}, expected ${expectedErr}`);
      }
    }
    return faults;
  },
};
