import type { Zxid } from '@tskeeper/protocol';
import { isAnsweredOutOfOrder } from '../record/request-kinds.ts';
import type { Checker } from './checker.ts';

/**
 * A client library reports the last zxid it saw to each server it reconnects to. That its view
 * never goes back depends on this.
 */
export const clientReconnects: Checker = {
  property: 'P7',
  promise:
    'A client that reconnects reports the last zxid it saw in a reply, and reports that its session expired only when a server has said so.',
  check({ clientDeliveries, libraryClients, ...recording }) {
    const cnxns = [...recording.cnxns, ...recording.readOnlyCnxns];
    const violations: string[] = [];
    for (const client of libraryClients) {
      const own = cnxns.filter((cnxn) => cnxn.client === client).toSorted((a, b) => a.openedMs - b.openedMs);
      const seen = new Map<bigint, Zxid>();
      const refused = new Set<bigint>();
      for (const { handshake, session, items, key } of own) {
        if (handshake === undefined) continue;
        const asked = handshake.sessionId;
        const last = seen.get(asked) ?? 0;
        if (asked !== 0n && handshake.lastZxidSeen < last) {
          violations.push(`${client} reconnected at ${key} with lastZxidSeen ${handshake.lastZxidSeen}, but has seen ${last}`);
        }
        if (session === 0n) refused.add(asked);
        if (session === undefined || session === 0n) continue;
        for (const item of items) {
          // Replies to the library's own requests, which have xids below 0, say nothing about the
          // tree.
          if (item.kind !== 'reply' || item.xid < 0 || isAnsweredOutOfOrder(item.request)) continue;
          seen.set(session, Math.max(seen.get(session) ?? 0, item.zxid));
        }
      }
      for (const { kind, text } of clientDeliveries.filter((each) => each.client === client)) {
        if (kind === 'expired' && !refused.has(BigInt(text))) {
          violations.push(`${client} reports that session ${text} expired, but no server refused it`);
        }
      }
    }
    return violations;
  },
};
