import { ErrorCode, formatZxid, type Millis, type Zxid } from '@tskeeper/protocol';
import { isWrite } from '../record/request-kinds.ts';
import { requestText } from '../record/request-text.ts';
import type { Checker } from './checker.ts';

export const acknowledgedAfterApply: Checker = {
  property: 'P36',
  promise:
    'A server acknowledges a write only if it applied it, as leader or learner, between the request and the reply. A server that looks for a leader, or has lost its quorum, acknowledges nothing.',
  check({ peerEvents, cnxns, ensemble }) {
    const violations: string[] = [];
    // The peer events of real processes are not recorded.
    if (ensemble.size === 0 || peerEvents.length === 0) return violations;
    /** By server and zxid: the times at which the server applied it while serving. */
    const applied = new Map<string, Map<Zxid, Millis[]>>([...ensemble.keys()].map((server) => [server, new Map<Zxid, Millis[]>()]));
    const serving = new Set<string>();
    for (const event of peerEvents) {
      const { server, kind, atMs } = event;
      if (kind === 'serves') serving.add(server);
      if (kind === 'roleEnded' || kind === 'processGone') serving.delete(server);
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
        violations.push(
          `${server} acknowledged ${requestText(request)} as ${formatZxid(reply.zxid)} at ${reply.atMs} without applying it while serving since ${sentMs}`,
        );
      }
    }
    return violations;
  },
};
