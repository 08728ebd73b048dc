import { answerText, isAnswered, isWrite, nameRequest, overtakes, replyText } from '../replay/replay.ts';
import type { Checker } from './checker.ts';

export const reads: Checker = {
  property: 'P6',
  promise: 'Every read shows the tree as it was at the zxid in its reply, and that is not before the own last write.',
  check({ cnxns }, replay) {
    const faults: string[] = [];
    for (const { request, answer } of replay.reads) {
      if (isAnswered(request, answer)) continue;
      faults.push(`${nameRequest(request)} at ${request.reply!.zxid} got\n  ${replyText(request)}, not\n  ${answerText(answer)}`);
    }
    for (const { items } of cnxns) {
      let ownWrite = 0;
      for (const item of items) {
        if (item.kind !== 'reply' || overtakes(item.request)) continue;
        if (isWrite(item.request)) ownWrite = item.zxid;
        else if (item.zxid < ownWrite)
          faults.push(`${nameRequest(item.request)} shows ${item.zxid}, before its session's write ${ownWrite}`);
      }
    }
    return faults;
  },
};
