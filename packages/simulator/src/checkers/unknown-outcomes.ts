import { ErrorCode, type Zxid } from '@tskeeper/protocol';
import type { Request } from '../record/recording.ts';
import { isWrite, nameRequest } from '../replay/replay.ts';
import type { Checker } from './checker.ts';

export const unknownOutcomes: Checker = {
  property: 'P13',
  promise: 'A write whose answer never came has happened once or not at all, and none from an old connection behind one from a newer.',
  check({ cnxns }, { txns }) {
    const faults: string[] = [];
    const zxids = new Map<Request, Zxid>();
    for (const { zxid, request, loggedErr } of txns) {
      // What was refused, having come over an old connection or behind the session's end, has not happened.
      if (request === undefined || loggedErr === ErrorCode.SessionMoved || loggedErr === ErrorCode.SessionExpired) continue;
      const before = zxids.get(request);
      if (before !== undefined) faults.push(`${nameRequest(request)} has happened twice, as ${before} and as ${zxid}`);
      zxids.set(request, zxid);
    }
    /** By session, the last zxid of its connections so far. */
    const lastOf = new Map<bigint, Zxid>();
    for (const { requests } of cnxns.toSorted((a, b) => a.shakenMs - b.shakenMs)) {
      // A goodbye ends the session whatever connection it came over, in ZooKeeper too: its client has asked for that.
      const own = requests
        .filter((request) => isWrite(request) && request.name !== 'closeSession')
        .map((request) => zxids.get(request) ?? 0);
      const [first] = own.filter((zxid) => zxid > 0);
      const session = requests[0]?.session;
      if (session === undefined || first === undefined) continue;
      const last = lastOf.get(session) ?? 0;
      if (first < last)
        faults.push(`session 0x${session.toString(16)} wrote ${first} over a new connection, and ${last} over an older one`);
      lastOf.set(session, Math.max(last, ...own));
    }
    return faults;
  },
};
