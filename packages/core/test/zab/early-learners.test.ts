/** Learners that dial before the server they have elected knows of it. */
import { makeZxid, type Notification, PacketType, PacketView, writeLearnerInfo, Writer } from '@tskeeper/protocol';
import { beforeEach, expect, it } from 'vitest';
import { coreDefaults, silentObserver } from '../../src/index.ts';
import { Peer, type PeerOut } from '../../src/peer.ts';
import { MajorityQuorum } from '../../src/quorum/majority-quorum.ts';
import { Replica, replicaOptions } from '../../src/request/replica.ts';
import { CommittedLog, committedLogDefaults } from '../../src/zab/committed-log.ts';
import { Notes, packet } from './packets.ts';

const at = (ms: number) => ({ elapsedMs: 1000 + ms, wallMs: 0 });
const random = { uint32: () => 7 };

/** Nobody asks it for anything but packets, epochs and ends of streams. */
class PeerNotes extends Notes implements PeerOut {
  reply(): Writer {
    throw new Error('there are no clients');
  }
  isFull(): boolean {
    return false;
  }
  close(): void {}
  notify(): void {}
  configSeen(): void {}
  dialLeader(sid: number): void {
    this.note(`dial ${sid}`);
  }
  channelIsFull(): boolean {
    return false;
  }
  readLog(): void {}
  logBytesMax(): undefined {
    return undefined;
  }
}

let notes: PeerNotes;
let peer: Peer;
beforeEach(() => {
  notes = new PeerNotes();
  const zab = { sid: 2, tickTimeMs: 100, initLimitTicks: 10, syncLimitTicks: 5, forceSnapshotSync: false, counterMax: 0xffff_0000 };
  const core = { ...coreDefaults, serverId: 2 };
  const recovered = {
    replica: new Replica(replicaOptions(coreDefaults, random)),
    lastZxid: 0,
    acceptedEpoch: 0,
    currentEpoch: 0,
    committedLog: new CommittedLog(committedLogDefaults),
    snapshotZxid: 0,
  };
  const config = { verifier: new MajorityQuorum([1, 2, 3]), text: 'version=0', version: 0 };
  peer = new Peer({ core, zab, role: 'participant' }, config, recovered, new PacketView(), notes, random, silentObserver, at(0));
});

function introduce(channel: number): void {
  const info = new Writer(32);
  writeLearnerInfo(info, { serverId: 1, configVersion: 0 });
  peer.packet(channel, packet(PacketType.FOLLOWERINFO, makeZxid(0, 0), info.written()), at(5));
}

const vote = (leader: number): Notification => ({
  state: 'looking',
  leader,
  zxid: 0,
  peerEpoch: 0,
  electionEpoch: 1,
  version: 2,
  config: undefined,
});

it('a follower that dials before its leader has decided is led once it has', () => {
  peer.notified(1, vote(2), at(1));
  peer.accepted(7, at(5));
  introduce(7);
  expect(notes.take()).toEqual([]);
  peer.wake(at(250), true);
  expect(peer.role).toBe('leading');
  expect(notes.take()).toEqual(['save acceptedEpoch 1']);
  peer.epochSaved('acceptedEpoch', 1, at(260));
  expect(notes.take()).toEqual(['7 <- LEADERINFO 0x100000000']);
});

it('a follower that has dialled the wrong server is let go when that server follows another', () => {
  peer.accepted(7, at(5));
  introduce(7);
  peer.notified(1, vote(3), at(10));
  peer.notified(3, vote(3), at(10));
  peer.wake(at(250), true);
  expect(notes.take()).toEqual(['close 7: this server does not lead', 'dial 3']);
});

it('who waits for a leader in vain is let go after initLimit', () => {
  peer.accepted(7, at(5));
  introduce(7);
  peer.wake(at(1000), true);
  expect(notes.take()).toEqual([]);
  expect(peer.deadline()).toBeLessThanOrEqual(2005);
  peer.wake(at(1005), true);
  expect(notes.take()).toEqual(['close 7: this server does not lead']);
});

it('who says more than who it is, unasked, is let go', () => {
  peer.accepted(7, at(5));
  introduce(7);
  introduce(7);
  expect(notes.take()).toEqual(['close 7: this server does not lead']);
});

it('a follower that has gone again is not waited for', () => {
  peer.notified(1, vote(2), at(1));
  peer.accepted(7, at(5));
  introduce(7);
  peer.channelGone(7, at(6));
  peer.wake(at(250), true);
  expect(peer.role).toBe('leading');
  expect(notes.take()).toEqual([]);
});

it('what is no introduction ends the stream, not the server', () => {
  peer.notified(1, vote(2), at(1));
  peer.accepted(7, at(5));
  peer.packet(7, packet(PacketType.FOLLOWERINFO, 0, Buffer.from([1, 2, 3])), at(6));
  peer.wake(at(250), true);
  expect(peer.role).toBe('leading');
  expect(notes.take()).toEqual([expect.stringMatching(/^close 7: /)]);
});

it('no more of them are kept than an ensemble could have servers', () => {
  for (let channel = 1; channel <= 101; channel++) peer.accepted(channel, at(5));
  expect(notes.take()).toEqual(['close 101: this server does not lead']);
});
