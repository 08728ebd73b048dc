import { ErrorCode, formatZxid, type Millis, type Zxid } from '@tskeeper/protocol';
import { isWrite, nameRequest } from '../replay/replay.ts';
import type { Checker } from './checker.ts';

export const acknowledgedWhere: Checker = {
  property: 'P36',
  promise:
    'Who acknowledges a write has applied it while it led or learned, behind the question and before the answer: nobody who looks for a leader, or has lost the way to a quorum, says that a write is done.',
  check({ peers, cnxns, ensemble }) {
    const faults: string[] = [];
    // Real processes are not watched from within.
    if (ensemble.size === 0 || peers.length === 0) return faults;
    /** By server and zxid: when it was applied in service. */
    const applied = new Map<string, Map<Zxid, Millis[]>>([...ensemble.keys()].map((server) => [server, new Map<Zxid, Millis[]>()]));
    const serving = new Set<string>();
    for (const event of peers) {
      const { server, kind, atMs } = event;
      if (kind === 'serves') serving.add(server);
      if (kind === 'ended' || kind === 'gone') serving.delete(server);
      if (kind !== 'applied' || !serving.has(server)) continue;
      const times = applied.get(server)!;
      times.set(event.zxid, [...(times.get(event.zxid) ?? []), atMs]);
    }
    for (const { server, requests } of cnxns) {
      for (const request of requests) {
        const { reply, sentMs } = request;
        if (reply?.err !== ErrorCode.Ok || !isWrite(request)) continue;
        const times = applied.get(server)?.get(reply.zxid) ?? [];
        if (times.some((atMs) => atMs >= sentMs && atMs <= reply.atMs)) continue;
        faults.push(
          `${server} has acknowledged ${nameRequest(request)} as ${formatZxid(reply.zxid)} at ${reply.atMs}, and has not applied it in service since ${sentMs}`,
        );
      }
    }
    return faults;
  },
};
