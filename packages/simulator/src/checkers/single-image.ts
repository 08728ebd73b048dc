import type { Millis, Zxid } from '@tskeeper/protocol';
import { overtakes } from '../replay/replay.ts';
import type { Checker } from './checker.ts';

export const singleImage: Checker = {
  property: 'P7',
  promise:
    'Time does not run backwards for a session, on whatever connection; and who has seen a later zxid than the server is not served.',
  check({ cnxns }, { lastZxid }) {
    const faults: string[] = [];
    /** By session, what it was shown and when, on all of its connections so far. */
    const shownTo = new Map<bigint, { readonly atMs: Millis; readonly zxid: Zxid }[]>();
    for (const { session, items, handshake, key, openedMs } of cnxns.toSorted((a, b) => a.shakenMs - b.shakenMs)) {
      if (session === undefined) continue;
      const claimed = handshake?.lastZxidSeen ?? 0;
      if (claimed > lastZxid) faults.push(`${key} had seen ${claimed}, beyond the end of the log at ${lastZxid}, and was answered`);
      if (session === 0n) continue;
      const shown = shownTo.get(session) ?? [];
      shownTo.set(session, shown);
      // An older connection, to another server perhaps, may still tell something when this one has begun.
      let seen = shown.reduce((last, { atMs, zxid }) => (atMs < openedMs ? Math.max(last, zxid) : last), 0);
      for (const item of items) {
        if (item.zxid === -1 || (item.kind === 'reply' && overtakes(item.request))) continue;
        if (item.zxid < seen) faults.push(`session 0x${session.toString(16)} has seen ${seen}, and was shown ${item.zxid}`);
        seen = Math.max(seen, item.zxid);
        shown.push(item);
      }
    }
    return faults;
  },
};
