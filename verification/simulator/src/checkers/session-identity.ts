import { epochOf, type Millis, OpCode, type Zxid } from '@tskeeper/protocol';
import { sessionPassword as modelPassword } from '../model/session-password.ts';
import { epochAt, servingPeriodsOf } from '../record/committed-history.ts';
import { isAnsweredOutOfOrder } from '../record/request-kinds.ts';
import type { Checker } from './checker.ts';

export const sessionIdentity: Checker = {
  property: 'P23',
  promise: 'Session ids are never reused. A server refuses an ended session or a wrong password. A session has one live connection.',
  check(recording, { sessions, txns }) {
    const { cnxns, limits } = recording;
    const hasLocalSessions = limits.localSessions !== undefined && limits.localSessions !== 'disabled';
    const servingPeriods = servingPeriodsOf(recording);
    /**
     * A leader that does not yet know of its successor may still resume the session; it cannot
     * commit writes.
     */
    const isBehind = (server: string, atMs: Millis, zxid: Zxid) => (epochAt(servingPeriods, server, atMs) ?? Infinity) < epochOf(zxid);
    const violations: string[] = [];
    const grantedBy = new Map<bigint, string>();
    /** By session and server: the first zxid that the latest connection was shown. */
    const newerFirstZxid = new Map<string, number>();
    for (const { handshake, session, passwd, key, openedMs, handshakeMs, server, items } of cnxns.toSorted(
      (a, b) => b.handshakeMs - a.handshakeMs,
    )) {
      if (session === undefined || session === 0n || handshake === undefined) continue;
      const name = `session 0x${BigInt.asUintN(64, session).toString(16)}`;
      const expectedPassword = modelPassword(session);
      if (passwd?.toString('latin1') !== expectedPassword) violations.push(`${key} received a wrong password for ${name}`);
      const asked = handshake.sessionId;
      if (asked === 0n) {
        const before = grantedBy.get(session);
        if (before !== undefined) violations.push(`${name} was granted to ${key} and to ${before}`);
        grantedBy.set(session, key);
      } else {
        if (asked !== session) violations.push(`${key} requested session 0x${asked.toString(16)} and got ${name}`);
        const password = handshake.passwd === null ? '' : Buffer.from(handshake.passwd).toString('latin1');
        if (password !== expectedPassword) violations.push(`${key} resumed ${name} with a wrong password`);
        const life = sessions.get(session);
        // The checker of local sessions compares those that are not, or not yet, in the log.
        if (life === undefined && hasLocalSessions) continue;
        if (life === undefined) violations.push(`${name} was resumed by ${key}, but is not in the log`);
        else if (openedMs > life.closedMs + 1 && !isBehind(server, handshakeMs, life.closedZxid))
          violations.push(`${name} ended at ${life.closedMs}, but ${key} resumed it at ${openedMs}`);
      }
      // From the latest connection to the first: everything that an older connection is shown
      // precedes what a newer one is shown.
      const zxids = items
        .filter((item) => item.zxid > 0 && !(item.kind === 'reply' && isAnsweredOutOfOrder(item.request)))
        .map(({ zxid }) => zxid);
      // Another server does not know of the newer connection. Writes over the old one are refused,
      // which other checkers verify.
      const here = `${session} ${server}`;
      const newer = newerFirstZxid.get(here);
      if (newer !== undefined && zxids.length > 0 && zxids.at(-1)! > newer) {
        violations.push(`${key} was still served at ${zxids.at(-1)}, after a newer connection of ${name} had begun at ${newer}`);
      }
      if (zxids.length > 0) newerFirstZxid.set(here, Math.min(newer ?? Infinity, zxids[0]!));
    }
    const opened = new Set<bigint>();
    for (const { type, session, zxid } of txns) {
      if (type !== OpCode.createSession) continue;
      if (opened.has(session)) violations.push(`session 0x${session.toString(16)} is created a second time by ${zxid}`);
      opened.add(session);
    }
    return violations;
  },
};
