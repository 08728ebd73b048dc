import { counterOf, formatZxid, sessionIdOf } from '@tskeeper/protocol';
import { znodeText } from '../replay/znode-text.ts';
import { lastZxidServed } from '../record/committed-history.ts';
import type { Checker } from './checker.ts';

const differencesMax = 3;

export const snapshots: Checker = {
  property: 'P28',
  promise: 'Every snapshot ever written, with the log after it, leads to the state that the whole log leads to.',
  check(recording, { contents, liveSessions, digest, lastZxid }) {
    const endZxid = lastZxidServed(recording, lastZxid);
    const violations: string[] = [];
    const wantedAt = new Map(Array.from(contents, ([path, znode]) => [path, znodeText(znode)]));
    const digestAt = new Map<number, bigint>();
    for (const { logged } of recording.log) {
      if (logged.digest !== undefined) digestAt.set(logged.header.zxid, sessionIdOf(logged.digest.high, logged.digest.low));
    }
    for (const { file, znodes, sessions, digest: loaded, lastZxid: reached, content } of recording.snapshots) {
      const differences: string[] = [];
      // A snapshot of an epoch without a txn is named after the epoch's beginning.
      const isEndOfHistory = reached === lastZxid || (counterOf(reached) === 0 && reached > lastZxid && reached <= endZxid);
      if (!isEndOfHistory) differences.push(`it leads to ${formatZxid(reached)}, not ${formatZxid(lastZxid)}`);
      for (const path of new Set([...contents.keys(), ...znodes.keys()])) {
        // Each start of a server writes it, without a txn.
        if (path === '/zookeeper/config') continue;
        const wanted = wantedAt.get(path);
        if (znodes.get(path) !== wanted) differences.push(`${path} is\n  ${znodes.get(path) ?? 'missing'}, not\n  ${wanted ?? 'there'}`);
      }
      for (const session of new Set([...liveSessions.keys(), ...sessions.keys()])) {
        if (sessions.get(session) !== liveSessions.get(session)) {
          differences.push(`session 0x${session.toString(16)} has ${sessions.get(session)} ms, not ${liveSessions.get(session)}`);
        }
      }
      if (differences.length === 0 && loaded !== digest) differences.push(`its digest is ${loaded}, not ${digest}`);
      // Replay repairs most differences between the content and the zxid in the file's name, so
      // compare the content itself.
      const then = digestAt.get(content.zxid);
      if (then !== undefined && then !== content.digest)
        differences.push(`it is not exact: its content has digest ${content.digest}, but ${formatZxid(content.zxid)} had ${then}`);
      violations.push(...differences.slice(0, differencesMax).map((each) => `from ${file}: ${each}`));
    }
    return violations;
  },
};
