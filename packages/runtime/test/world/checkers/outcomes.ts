/**
 * A write whose answer never came has happened once or not at all; nothing has happened that nobody asked for. Of what one connection has
 * sent, what has happened is a beginning, in order. And once a session has written over a new connection, nothing more comes from an old.
 */
import type { Zxid } from '@tskeeper/protocol';
import type { Recording, Request } from '../recording.ts';
import { nameRequest, type Replay, writeNames } from '../replay.ts';

export function outcomes(recording: Recording, { txns }: Replay): string[] {
  const faults: string[] = [];
  const zxids = new Map<Request, Zxid>();
  for (const { zxid, request, invented } of txns) {
    if (invented) faults.push(`nobody asked for txn ${zxid}`);
    if (request === undefined) continue;
    const before = zxids.get(request);
    if (before !== undefined) faults.push(`${nameRequest(request)} has happened twice, as ${before} and as ${zxid}`);
    zxids.set(request, zxid);
  }
  /** By session, the last zxid of its connections so far. */
  const lastOf = new Map<bigint, Zxid>();
  for (const { requests } of recording.cnxns.toSorted((a, b) => a.shakenMs - b.shakenMs)) {
    let last = 0;
    let missing: Request | undefined;
    for (const request of requests) {
      if (!writeNames.has(request.name)) continue;
      const zxid = zxids.get(request);
      if (zxid === undefined) {
        missing ??= request;
        continue;
      }
      if (missing !== undefined) faults.push(`${nameRequest(request)} has happened, though ${nameRequest(missing)} before it has not`);
      if (zxid <= last) faults.push(`${nameRequest(request)} became ${zxid}, though the one before it became ${last}`);
      if (last === 0 && zxid < (lastOf.get(request.session) ?? 0)) {
        faults.push(`${nameRequest(request)} became ${zxid}, and a request of an older connection came after it`);
      }
      last = zxid;
    }
    const session = requests[0]?.session;
    if (session !== undefined && last > 0) lastOf.set(session, last);
  }
  return faults;
}
