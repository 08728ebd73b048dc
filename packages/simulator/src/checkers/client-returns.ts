import type { Zxid } from '@tskeeper/protocol';
import { overtakes } from '../replay/replay.ts';
import type { Checker } from './checker.ts';

/** Every client library says what it has seen, wherever it comes back to: on that rests that its view never goes back. */
export const clientReturns: Checker = {
  property: 'P7',
  promise:
    'A client that comes back to its session names the last zxid that it was answered with; and it takes a session for expired only when a server has said so.',
  check({ cnxns, told, libraryClients }) {
    const faults: string[] = [];
    for (const client of libraryClients) {
      const own = cnxns.filter((cnxn) => cnxn.client === client).toSorted((a, b) => a.openedMs - b.openedMs);
      const seen = new Map<bigint, Zxid>();
      const refused = new Set<bigint>();
      for (const { handshake, session, items, key } of own) {
        if (handshake === undefined) continue;
        const asked = handshake.sessionId;
        const last = seen.get(asked) ?? 0;
        if (asked !== 0n && handshake.lastZxidSeen < last) {
          faults.push(`${client} came back at ${key} as one that has seen ${handshake.lastZxidSeen}, and has seen ${last}`);
        }
        if (session === 0n) refused.add(asked);
        if (session === undefined || session === 0n) continue;
        for (const item of items) {
          // Its own affairs, which have xids below 0, say nothing of the tree.
          if (item.kind !== 'reply' || item.xid < 0 || overtakes(item.request)) continue;
          seen.set(session, Math.max(seen.get(session) ?? 0, item.zxid));
        }
      }
      for (const { kind, text } of told.filter((each) => each.client === client)) {
        if (kind === 'expired' && !refused.has(BigInt(text))) {
          faults.push(`${client} takes session ${text} for expired, and no server has refused it`);
        }
      }
    }
    return faults;
  },
};
