import type { Millis, Zxid } from '@tskeeper/protocol';
import { isAnsweredOutOfOrder } from '../record/request-kinds.ts';
import { lastZxidServed } from '../record/committed-history.ts';
import type { Checker } from './checker.ts';

export const singleSystemImage: Checker = {
  property: 'P7',
  promise:
    'The zxids that a session sees never decrease, on any server or connection, and a server refuses a client that has seen a later zxid than its own.',
  check(recording, { lastZxid }) {
    const { cnxns } = recording;
    const endZxid = lastZxidServed(recording, lastZxid);
    const violations: string[] = [];
    /** By session: what its connections so far were shown, and when. */
    const shownTo = new Map<bigint, { readonly atMs: Millis; readonly zxid: Zxid }[]>();
    for (const { session, items, handshake, key, openedMs } of cnxns.toSorted((a, b) => a.handshakeMs - b.handshakeMs)) {
      if (session === undefined) continue;
      const claimed = handshake?.lastZxidSeen ?? 0;
      if (claimed > endZxid) violations.push(`${key} had seen ${claimed}, after the end of the log at ${endZxid}, but was served`);
      if (session === 0n) continue;
      const shown = shownTo.get(session) ?? [];
      shownTo.set(session, shown);
      // An older connection, perhaps to another server, may still deliver items after this one
      // began.
      let seen = shown.reduce((last, { atMs, zxid }) => (atMs < openedMs ? Math.max(last, zxid) : last), 0);
      for (const item of items) {
        if (item.zxid === -1 || (item.kind === 'reply' && isAnsweredOutOfOrder(item.request))) continue;
        if (item.zxid < seen) violations.push(`session 0x${session.toString(16)} has seen ${seen}, but was shown ${item.zxid}`);
        seen = Math.max(seen, item.zxid);
        shown.push(item);
      }
    }
    return violations;
  },
};
