/** No session id is given out twice, on whatever server; and a session that has ended is never taken up again. */
import type { Recording } from '../recording.ts';
import type { Replay } from '../replay.ts';

export function sessionIdentity(recording: Recording, { sessions, txns }: Replay): string[] {
  const faults: string[] = [];
  const given = new Map<bigint, string>();
  for (const { asked, session, key, openedMs } of recording.cnxns) {
    if (session === undefined || session === 0n) continue;
    const name = `session 0x${session.toString(16)}`;
    if (asked === 0n) {
      const before = given.get(session);
      if (before !== undefined) faults.push(`${name} was given to ${key}, and before to ${before}`);
      given.set(session, key);
      continue;
    }
    if (asked !== session) faults.push(`${key} asked for 0x${asked.toString(16)} and got ${name}`);
    const life = sessions.get(session);
    if (life === undefined) faults.push(`${name} was taken up by ${key}, and is not in the log`);
    else if (openedMs > life.closedMs + 1) faults.push(`${name} ended at ${life.closedMs}, and was taken up at ${openedMs} by ${key}`);
  }
  const opened = new Set<bigint>();
  for (const { type, session, zxid } of txns) {
    if (type !== createSession) continue;
    if (opened.has(session)) faults.push(`session 0x${session.toString(16)} is opened a second time by ${zxid}`);
    opened.add(session);
  }
  return faults;
}

const createSession = -10;
