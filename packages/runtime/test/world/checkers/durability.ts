/**
 * What was acknowledged stays: every answered write is in the log that the last server left, under the zxid that was told, and nothing
 * was ever shown that the log does not reach to. The log itself has no hole.
 */
import type { Recording } from '../recording.ts';
import { nameRequest, type Replay, writeNames } from '../replay.ts';

export function durability(recording: Recording, { txns, sessions, lastZxid }: Replay): string[] {
  const faults: string[] = [];
  for (const [index, { zxid }] of txns.entries()) {
    const expected = index === 0 ? 1 : txns[index - 1]!.zxid + 1;
    if (zxid !== expected) faults.push(`the log goes on with ${zxid} where ${expected} was expected`);
  }
  const zxids = new Map(txns.map(({ request, zxid }) => [request, zxid]));
  for (const { requests, asked, session, key } of recording.cnxns) {
    if (asked === 0n && session !== undefined && !sessions.has(session)) {
      faults.push(`session 0x${session.toString(16)} was given to ${key}, and is not in the log`);
    }
    for (const request of requests) {
      const { reply } = request;
      if (reply === undefined) continue;
      if (reply.zxid > lastZxid) faults.push(`${nameRequest(request)} was answered at ${reply.zxid}, and the log ends at ${lastZxid}`);
      if (!writeNames.has(request.name)) continue;
      const logged = zxids.get(request);
      if (logged !== reply.zxid) {
        faults.push(
          `${nameRequest(request)} was acknowledged as ${reply.zxid}, and is ${logged === undefined ? 'not in the log' : `logged as ${logged}`}`,
        );
      }
    }
  }
  return faults;
}
