import { ErrorCode, type Zxid } from '@tskeeper/protocol';
import type { Request } from '../record/recording.ts';
import { isWrite } from '../record/request-kinds.ts';
import { requestText } from '../record/request-text.ts';
import type { Checker } from './checker.ts';

export const unknownOutcomes: Checker = {
  property: 'P13',
  promise: 'A write without a reply is applied at most once, and never after a write of a newer connection of its session.',
  check({ cnxns }, { txns }) {
    const violations: string[] = [];
    const zxids = new Map<Request, Zxid>();
    for (const { zxid, request, loggedErr } of txns) {
      // A write refused because its connection was old or its session had ended has no effect.
      if (request === undefined || loggedErr === ErrorCode.SessionMoved || loggedErr === ErrorCode.SessionExpired) continue;
      const before = zxids.get(request);
      if (before !== undefined) violations.push(`${requestText(request)} was applied twice, as ${before} and as ${zxid}`);
      zxids.set(request, zxid);
    }
    /** By session: the last zxid written over its connections so far. */
    const lastOf = new Map<bigint, Zxid>();
    for (const { requests } of cnxns.toSorted((a, b) => a.handshakeMs - b.handshakeMs)) {
      // closeSession ends the session over whichever connection it arrives, in ZooKeeper too: the
      // client asked for it.
      const own = requests
        .filter((request) => isWrite(request) && request.name !== 'closeSession')
        .map((request) => zxids.get(request) ?? 0);
      const [first] = own.filter((zxid) => zxid > 0);
      const session = requests[0]?.session;
      if (session === undefined || first === undefined) continue;
      const last = lastOf.get(session) ?? 0;
      if (first < last)
        violations.push(`session 0x${session.toString(16)} wrote ${first} over a new connection, but ${last} over an older one`);
      lastOf.set(session, Math.max(last, ...own));
    }
    return violations;
  },
};
