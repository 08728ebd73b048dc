import { isWrite, isAnsweredOutOfOrder } from '../record/request-kinds.ts';
import { requestText, replyText } from '../record/request-text.ts';
import { answerText, isAnsweredAs } from '../replay/answer.ts';
import type { Checker } from './checker.ts';

export const reads: Checker = {
  property: 'P6',
  promise:
    'A read returns the tree at the zxid of its reply header, which is not lower than that of the last acknowledged write of its session.',
  check({ cnxns }, replay) {
    const violations: string[] = [];
    for (const { request, answer } of replay.reads) {
      if (isAnsweredAs(request, answer)) continue;
      violations.push(`${requestText(request)} at ${request.reply!.zxid} got\n  ${replyText(request)}, not\n  ${answerText(answer)}`);
    }
    for (const { items } of cnxns) {
      let ownWrite = 0;
      for (const item of items) {
        if (item.kind !== 'reply' || isAnsweredOutOfOrder(item.request)) continue;
        if (isWrite(item.request)) ownWrite = item.zxid;
        else if (item.zxid < ownWrite)
          violations.push(`${requestText(item.request)} shows ${item.zxid}, before its session's write ${ownWrite}`);
      }
    }
    return violations;
  },
};
