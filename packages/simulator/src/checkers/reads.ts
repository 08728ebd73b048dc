import { answerText, isAnswered, isWrite, nameRequest, overtakes, replyText } from '../replay/replay.ts';
import type { Checker } from './checker.ts';

export const reads: Checker = {
  property: 'P6',
  promise:
    'A read returns the tree at the zxid of its reply header, which is not lower than that of the last acknowledged write of its session.',
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
