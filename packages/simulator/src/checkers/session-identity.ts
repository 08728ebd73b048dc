import { epochOf, type Millis, OpCode, type Zxid } from '@tskeeper/protocol';
import { sessionPassword as modelPassword } from '../model/reference-model.ts';
import { epochAt, termsOf } from '../record/committed-history.ts';
import { overtakes } from '../replay/replay.ts';
import type { Checker } from './checker.ts';

export const sessionIdentity: Checker = {
  property: 'P23',
  promise:
    'No session id is given out twice; one that has ended, or whose password is not known, is not taken up; one connection has it at a time.',
  check(recording, { sessions, txns }) {
    const { cnxns } = recording;
    const terms = termsOf(recording);
    /** A leader that does not know yet that another one has come may still take it up; nothing can be written there. */
    const isBehind = (server: string, atMs: Millis, zxid: Zxid) => (epochAt(terms, server, atMs) ?? Infinity) < epochOf(zxid);
    const faults: string[] = [];
    const given = new Map<bigint, string>();
    /** By session and server, the zxid that the latest connection began with. */
    const latest = new Map<string, number>();
    for (const { handshake, session, passwd, key, openedMs, shakenMs, server, items } of cnxns.toSorted(
      (a, b) => b.shakenMs - a.shakenMs,
    )) {
      if (session === undefined || session === 0n || handshake === undefined) continue;
      const name = `session 0x${BigInt.asUintN(64, session).toString(16)}`;
      const right = modelPassword(session);
      if (passwd?.toString('latin1') !== right) faults.push(`${key} was given a password for ${name} that is not its own`);
      const asked = handshake.sessionId;
      if (asked === 0n) {
        const before = given.get(session);
        if (before !== undefined) faults.push(`${name} was given to ${key}, and also to ${before}`);
        given.set(session, key);
      } else {
        if (asked !== session) faults.push(`${key} asked for 0x${asked.toString(16)} and got ${name}`);
        const password = handshake.passwd === null ? '' : Buffer.from(handshake.passwd).toString('latin1');
        if (password !== right) faults.push(`${key} took up ${name} with a wrong password`);
        const life = sessions.get(session);
        if (life === undefined) faults.push(`${name} was taken up by ${key}, and is not in the log`);
        else if (openedMs > life.closedMs + 1 && !isBehind(server, shakenMs, life.closedZxid))
          faults.push(`${name} ended at ${life.closedMs}, and was taken up at ${openedMs} by ${key}`);
      }
      // From the latest to the first: what an older connection is shown, it is shown before the newer one begins.
      const zxids = items.filter((item) => item.zxid > 0 && !(item.kind === 'reply' && overtakes(item.request))).map(({ zxid }) => zxid);
      // Another server does not know of a newer connection; but whatever is written there is refused, which is looked at elsewhere.
      const here = `${session} ${server}`;
      const newer = latest.get(here);
      if (newer !== undefined && zxids.length > 0 && zxids.at(-1)! > newer) {
        faults.push(`${key} was still served at ${zxids.at(-1)}, though a newer connection of ${name} was at ${newer} already`);
      }
      if (zxids.length > 0) latest.set(here, Math.min(newer ?? Infinity, zxids[0]!));
    }
    const opened = new Set<bigint>();
    for (const { type, session, zxid } of txns) {
      if (type !== OpCode.createSession) continue;
      if (opened.has(session)) faults.push(`session 0x${session.toString(16)} is opened a second time by ${zxid}`);
      opened.add(session);
    }
    return faults;
  },
};
