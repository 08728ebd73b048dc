/**
 * Every read shows the tree exactly as it was at the zxid in its reply, and that is never before the session's own last acknowledged
 * write. So ephemerals are there for as long as their session, no longer and no shorter, and a multi is seen whole or not at all.
 */
import type { Recording } from '../recording.ts';
import { nameRequest, type Replay, textOf, writeNames } from '../replay.ts';

export function reads(recording: Recording, { reads: expected }: Replay): string[] {
  const faults: string[] = [];
  for (const { request, answer } of expected) {
    const { err, body, zxid } = request.reply!;
    const got = textOf({ err, body });
    const wanted = textOf({ err: answer.err, body: answer.body });
    if (got !== wanted) faults.push(`${nameRequest(request)} at ${zxid} got\n  ${got}, not\n  ${wanted}`);
  }
  for (const { items } of recording.cnxns) {
    let ownWrite = 0;
    for (const item of items) {
      if (item.kind !== 'reply') continue;
      if (writeNames.has(item.request.name)) ownWrite = item.zxid;
      else if (item.zxid < ownWrite) faults.push(`${nameRequest(item.request)} shows ${item.zxid}, before its session's write ${ownWrite}`);
    }
  }
  return faults;
}
