/** Records what the servers of an ensemble report to their observers. */
import { type CnxnId, type Observer, silentObserver } from '@tskeeper/core';
import { ErrorCode, type Millis, type Zxid } from '@tskeeper/protocol';
import type { PeerEvent } from './peer-event.ts';
import type { Recording } from './recording.ts';

type EventDetails<Event> = Event extends unknown ? Omit<Event, 'atMs' | 'server'> : never;

/** Time as the whole run counts it. */
interface Clock {
  readonly elapsedMs: Millis;
}

/**
 * Counts steps that end with work left over, delayed long writes, and limits that are reached.
 * Records rejected requests, jobs and closed connections.
 */
export function stepRecorder(recording: Recording, clock: Clock, server: string): Observer {
  const { stepsYielded, longWritesQueued, limitsReached, throttledOps, endedCnxns, jobs } = recording;
  let jobBeganMs = 0;
  const keys = new Map<CnxnId, string>();
  const count = (counts: Map<string, number>, what: string) => void counts.set(what, (counts.get(what) ?? 0) + 1);
  return {
    ...silentObserver,
    stepYielded: (kind) => count(stepsYielded, kind),
    jobBegan: () => {
      jobBeganMs = clock.elapsedMs;
    },
    jobEnded: () => void jobs.push({ server, fromMs: jobBeganMs, toMs: clock.elapsedMs }),
    longWriteQueued: (passedOn) => void (passedOn ? longWritesQueued.passedOn++ : longWritesQueued.own++),
    limitReached: (limit) => count(limitsReached, limit),
    cnxnOpened: (cnxn, { remoteAddress, remotePort }) => void keys.set(cnxn, `${remoteAddress}:${remotePort}`),
    cnxnClosed: (cnxn) => {
      const key = keys.get(cnxn);
      if (key !== undefined) endedCnxns.add(key);
    },
    requestRejected: (cnxn, opCode, errorCode) => {
      const key = keys.get(cnxn);
      if (key === undefined || errorCode !== ErrorCode.ThrottledOp) return;
      throttledOps.set(key, [...(throttledOps.get(key) ?? []), opCode]);
    },
  };
}

/**
 * The observer of one process of a server. `replaced` is called when a part of what was on its disk
 * no longer counts. `configText` returns its active configuration if that may change, and else
 * undefined: a change is recorded before the next event of the server.
 */
export function peerRecorder(
  recording: Recording,
  clock: Clock,
  server: string,
  replaced: (by: 'trunc' | 'snap', zxid: Zxid) => void,
  configText: () => string | undefined,
): Observer {
  let config: string | undefined;
  const note = (event: EventDetails<PeerEvent>) => {
    const text = configText();
    if (text !== undefined && text !== config) {
      config = text;
      recording.peerEvents.push({ atMs: clock.elapsedMs, server, kind: 'config', text });
    }
    recording.peerEvents.push({ atMs: clock.elapsedMs, server, ...event });
  };
  let begun = { epoch: 0, historyEnd: 0 };
  return {
    ...stepRecorder(recording, clock, server),
    roleChanged: (role) => {
      if (role === 'looking') note({ kind: 'looking' });
      if (role === 'read-only') note({ kind: 'readOnly' });
      if (role === 'leader' || role === 'follower' || role === 'observer') note({ kind: 'serves', role, ...begun });
    },
    readOnlyEnded: () => note({ kind: 'readOnlyEnded' }),
    elected: (leader, lookedMs) => note({ kind: 'elected', leader, lookedMs }),
    epochStarted: (epoch, historyEnd) => {
      begun = { epoch, historyEnd };
    },
    roleEnded: (reason, text) => note({ kind: 'roleEnded', reason, text }),
    txnDurable: (zxid) => note({ kind: 'logged', zxid }),
    applied: (zxid) => note({ kind: 'applied', zxid }),
    historyReplaced: (by, zxid) => {
      note({ kind: 'replaced', by, zxid });
      replaced(by, zxid);
    },
    localSessionOpened: (session) => note({ kind: 'localSession', what: 'opened', session }),
    sessionUpgraded: (session) => note({ kind: 'localSession', what: 'upgraded', session }),
    ephemeralRefused: (session) => note({ kind: 'localSession', what: 'refused', session }),
    localSessionClosed: (session, expired) => note({ kind: 'localSession', what: expired ? 'expired' : 'closed', session }),
    learnerSyncStarted: (by, from, snapshots, isBehind) => note({ kind: 'syncsLearner', by, from, snapshots, isBehind }),
  };
}
