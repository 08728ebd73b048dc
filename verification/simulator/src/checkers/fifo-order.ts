import { ErrorCode, type SessionId } from '@tskeeper/protocol';
import type { CnxnRecord, Recording, Request } from '../record/recording.ts';
import { unansweredThrottledOps } from '../record/unanswered-throttled-ops.ts';
import { isWrite, isAnsweredOutOfOrder } from '../record/request-kinds.ts';
import { requestText } from '../record/request-text.ts';
import type { Replay, ReplayedTxn } from '../replay/replay-result.ts';
import type { Checker } from './checker.ts';

/** The reply to a ping keeps the order, as every other reply does. */
function isInOrder(request: Request): boolean {
  return !isAnsweredOutOfOrder(request);
}

export const fifoOrder: Checker = {
  property: 'P5',
  promise:
    'The requests of a session take effect in the order in which they were sent: replies are in that order, and the writes that took effect are a prefix of those sent. After a session writes over a new connection, no write of an older one takes effect.',
  check(recording, replay) {
    const { cnxns } = recording;
    const { txns } = replay;
    const violations = writesOverOldCnxn(recording, replay);
    const zxids = new Map(txns.map(({ request, zxid }) => [request, zxid]));
    for (const cnxn of cnxns) {
      const { requests, items } = cnxn;
      const expected = requests.filter(isInOrder);
      let next = 0;
      for (const item of items) {
        if (item.kind !== 'reply' || isAnsweredOutOfOrder(item.request)) continue;
        const due = expected[next++];
        if (item.request !== due) {
          violations.push(
            `received the reply to ${requestText(item.request)}, expected that to ${due === undefined ? 'nothing' : requestText(due)}`,
          );
          break;
        }
      }
      let last = 0;
      let missing: Request | undefined;
      const unansweredThrottles = unansweredThrottledOps(recording, cnxn);
      for (const request of requests) {
        if (!isWrite(request)) continue;
        const zxid = zxids.get(request);
        if (zxid === undefined) {
          const at = request.reply === undefined ? unansweredThrottles.indexOf(request.opCode) : -1;
          if (at === -1) missing ??= request;
          else unansweredThrottles.splice(at, 1);
          continue;
        }
        if (missing !== undefined) violations.push(`${requestText(request)} took effect, but ${requestText(missing)} before it did not`);
        if (zxid <= last) violations.push(`${requestText(request)} became ${zxid}, but the write before it became ${last}`);
        last = zxid;
      }
    }
    return violations;
  },
};

/**
 * The writes of one connection of a session are contiguous: after the session writes over another
 * connection, the leader refuses writes still in transit over the first with SessionMoved.
 */
function writesOverOldCnxn({ cnxns }: Recording, { txns }: Replay): string[] {
  const violations: string[] = [];
  const cnxnOf = new Map(cnxns.flatMap((cnxn) => cnxn.requests.map((request) => [request, cnxn] as const)));
  const last = new Map<SessionId, { readonly cnxn: CnxnRecord; readonly left: Set<CnxnRecord> }>();
  for (const txn of txns) {
    const cnxn = txn.request === undefined ? undefined : cnxnOf.get(txn.request);
    if (cnxn === undefined || !isFenced(txn)) continue;
    const before = last.get(txn.session);
    if (before?.cnxn === cnxn) continue;
    const oldCnxns = before?.left ?? new Set();
    if (before !== undefined) oldCnxns.add(before.cnxn);
    if (oldCnxns.has(cnxn)) {
      violations.push(
        `${requestText(txn.request!)} became ${txn.zxid} over ${cnxn.key}, after the session had written over ${before?.cnxn.key}`,
      );
    }
    last.set(txn.session, { cnxn, left: oldCnxns });
  }
  return violations;
}

/**
 * A write refused because of its session's state has no effect. A client may close its session over
 * any of its connections.
 */
function isFenced({ request, loggedErr }: ReplayedTxn): boolean {
  return request?.name !== 'closeSession' && loggedErr !== ErrorCode.SessionMoved && loggedErr !== ErrorCode.SessionExpired;
}
