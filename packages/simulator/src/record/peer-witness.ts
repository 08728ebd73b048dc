/** Writes down what the servers of an ensemble tell their observers. */
import { type CnxnId, type Observer, silentObserver } from '@tskeeper/core';
import { ErrorCode, type Millis, type Zxid } from '@tskeeper/protocol';
import type { PeerEvent } from './peer-event.ts';
import type { Recording } from './recording.ts';

type Told<Event> = Event extends unknown ? Omit<Event, 'atMs' | 'server'> : never;

/** Counts where steps have ended with work left over, long writes that have waited, and bounds that were reached; and notes what was refused for it, and which connections have ended. */
export function stepWitness({ stepsEnded, longWritesWaited, limitsMet, turnedAway, ended }: Recording): Observer {
  const keys = new Map<CnxnId, string>();
  const count = (counts: Map<string, number>, what: string) => void counts.set(what, (counts.get(what) ?? 0) + 1);
  return {
    ...silentObserver,
    stepEnded: (kind) => count(stepsEnded, kind),
    longWriteWaits: (passedOn) => void (passedOn ? longWritesWaited.passedOn++ : longWritesWaited.own++),
    limitMet: (limit) => count(limitsMet, limit),
    cnxnOpened: (cnxn, { remoteAddress, remotePort }) => void keys.set(cnxn, `${remoteAddress}:${remotePort}`),
    cnxnClosed: (cnxn) => {
      const key = keys.get(cnxn);
      if (key !== undefined) ended.add(key);
    },
    refused: (cnxn, opCode, errorCode) => {
      const key = keys.get(cnxn);
      if (key === undefined || errorCode !== ErrorCode.ThrottledOp) return;
      turnedAway.set(key, [...(turnedAway.get(key) ?? []), opCode]);
    },
  };
}

/** The observer of one life of a server. `replaced` is told when a part of what was on its disk counts no more. */
export function peerWitness(
  recording: Recording,
  clock: { readonly elapsedMs: Millis },
  server: string,
  replaced: (by: 'trunc' | 'snap', zxid: Zxid) => void,
): Observer {
  const note = (event: Told<PeerEvent>) => {
    recording.peers.push({ atMs: clock.elapsedMs, server, ...event });
  };
  let begun = { epoch: 0, historyEnd: 0 };
  return {
    ...stepWitness(recording),
    roleChanged: (role) => {
      if (role === 'looking') note({ kind: 'looking' });
      if (role === 'leader' || role === 'follower' || role === 'observer') note({ kind: 'serves', role, ...begun });
    },
    elected: (leader, lookedMs) => note({ kind: 'elected', leader, lookedMs }),
    epochBegun: (epoch, historyEnd) => {
      begun = { epoch, historyEnd };
    },
    roleEnded: (reason) => note({ kind: 'ended', reason }),
    logged: (zxid) => note({ kind: 'logged', zxid }),
    applied: (zxid) => note({ kind: 'applied', zxid }),
    historyReplaced: (by, zxid) => {
      note({ kind: 'replaced', by, zxid });
      replaced(by, zxid);
    },
    learnerSynchronised: (by, from, snapshots, isBehind) => note({ kind: 'synchronises', by, from, snapshots, isBehind }),
  };
}
