/**
 * Time does not run backwards for a session, on whatever connections and servers: the zxids it is shown never fall. And writes are in
 * the order of the real world: what was acknowledged before another was asked for comes before it.
 */
import type { Recording } from '../recording.ts';
import { nameRequest, writeNames } from '../replay.ts';

export function zxidOrder(recording: Recording): string[] {
  const faults: string[] = [];
  const seenOf = new Map<bigint, number>();
  const asked: { readonly atMs: number; readonly zxid: number; readonly text: string; readonly acknowledged: boolean }[] = [];
  for (const { session, items } of recording.cnxns.toSorted((a, b) => a.shakenMs - b.shakenMs)) {
    if (session === undefined || session === 0n) continue;
    let seen = seenOf.get(session) ?? 0;
    for (const item of items) {
      if (item.zxid < seen) faults.push(`session 0x${session.toString(16)} has seen ${seen}, and was shown ${item.zxid}`);
      seen = Math.max(seen, item.zxid);
      if (item.kind === 'event' || !writeNames.has(item.request.name)) continue;
      const text = nameRequest(item.request);
      asked.push({ atMs: item.request.sentMs, zxid: item.zxid, text, acknowledged: false });
      asked.push({ atMs: item.atMs, zxid: item.zxid, text, acknowledged: true });
    }
    seenOf.set(session, seen);
  }
  let highest = 0;
  // What is asked for at the instant of an acknowledgement may be either side of it.
  for (const { zxid, text, acknowledged } of asked.toSorted((a, b) => a.atMs - b.atMs || Number(a.acknowledged) - Number(b.acknowledged))) {
    if (acknowledged) highest = Math.max(highest, zxid);
    else if (zxid < highest) faults.push(`${text} became ${zxid}, though ${highest} had been acknowledged before it was asked for`);
  }
  return faults;
}
