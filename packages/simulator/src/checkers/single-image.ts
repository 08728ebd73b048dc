import { overtakes } from '../replay/replay.ts';
import type { Checker } from './checker.ts';

export const singleImage: Checker = {
  property: 'P7',
  promise:
    'Time does not run backwards for a session, on whatever connection; and who has seen a later zxid than the server is not served.',
  check({ cnxns }, { lastZxid }) {
    const faults: string[] = [];
    const seenOf = new Map<bigint, number>();
    for (const { session, items, handshake, key } of cnxns.toSorted((a, b) => a.shakenMs - b.shakenMs)) {
      if (session === undefined) continue;
      const claimed = handshake?.lastZxidSeen ?? 0;
      if (claimed > lastZxid) faults.push(`${key} had seen ${claimed}, beyond the end of the log at ${lastZxid}, and was answered`);
      if (session === 0n) continue;
      let seen = seenOf.get(session) ?? 0;
      for (const item of items) {
        if (item.zxid === -1 || (item.kind === 'reply' && overtakes(item.request))) continue;
        if (item.zxid < seen) faults.push(`session 0x${session.toString(16)} has seen ${seen}, and was shown ${item.zxid}`);
        seen = Math.max(seen, item.zxid);
      }
      seenOf.set(session, seen);
    }
    return faults;
  },
};
