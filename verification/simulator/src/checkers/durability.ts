import { epochOf } from '@tskeeper/protocol';
import { leaderEpochsOf } from '../record/committed-history.ts';
import { isWrite } from '../record/request-kinds.ts';
import { requestText } from '../record/request-text.ts';
import type { Checker } from './checker.ts';

export const durability: Checker = {
  property: 'P27',
  promise: 'Every acknowledged write is in the final log under the zxid of its reply, and in the log of every leader of a later epoch.',
  check(recording, { txns, sessions }) {
    const { cnxns, limits } = recording;
    const leaderEpochs = leaderEpochsOf(recording);
    const violations: string[] = [];
    const zxids = new Map(txns.map(({ request, zxid }) => [request, zxid]));
    const isTxnNeeded = (limits.localSessions ?? 'disabled') === 'disabled';
    for (const { requests, handshake, session, key } of cnxns) {
      if (isTxnNeeded && handshake?.sessionId === 0n && session !== undefined && !sessions.has(session)) {
        violations.push(`session 0x${session.toString(16)} was granted to ${key}, but is not in the log`);
      }
      for (const request of requests) {
        const { reply } = request;
        if (reply === undefined || !isWrite(request)) continue;
        const logged = zxids.get(request);
        const isLater = (epoch: number) => epoch > epochOf(reply.zxid);
        const leaderWithoutIt = leaderEpochs.find(
          ({ epoch, fromMs, historyEnd }) => isLater(epoch) && fromMs > reply.atMs && historyEnd < reply.zxid,
        );
        if (leaderWithoutIt !== undefined) {
          violations.push(
            `${requestText(request)} was acknowledged as ${reply.zxid}, but ${leaderWithoutIt.server} leads epoch ${leaderWithoutIt.epoch} without it`,
          );
        }
        if (logged === reply.zxid) continue;
        violations.push(
          `${requestText(request)} was acknowledged as ${reply.zxid}, but is ${logged === undefined ? 'not in the log' : `logged as ${logged}`}`,
        );
      }
    }
    return violations;
  },
};
