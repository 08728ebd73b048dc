/**
 * Runs our learner in place of the recorded learners of Apache ZooKeeper: it gets their leader's
 * packets, its disk answers at once, its clients send the recorded requests. Its output must equal
 * theirs, byte for byte.
 *
 * Allowed differences, and why:
 *
 * - ACKs come elsewhere in the stream. A recorded learner's disk was slower, so PINGs and requests
 *   of clients came between a PROPOSAL and its ACK. The ACKs themselves are the same, in the same
 *   order, and so is everything else.
 *
 * Not in the recording, and assumed here: most PINGs of the leader were left out of it when the
 * answer was kept for its sessions. Such an answer is preceded by a PING of the same zxid.
 */
import {
  OpCode,
  PacketDecoder,
  PacketType,
  packetTypeName,
  PacketView,
  readAckEpoch,
  Reader,
  readLearnerRequest,
  readLearnerInfo,
  readRevalidateRequest,
  readTouchedSessions,
  Writer,
  type Zxid,
  epochOf,
} from '@tskeeper/protocol';
import { expect, it } from 'vitest';
import type { Now } from '../../src/now.ts';
import { Identities } from '../../src/auth/identities.ts';
import { LeaderForwarder, type LeaderLink } from '../../src/request/leader-forwarder.ts';
import { SessionTracker } from '../../src/session/session-tracker.ts';
import { noCnxn } from '../../src/pending/proposal.ts';
import { parkFrame } from '../../src/pending/pending-request.ts';
import type { Server } from '../../src/server.ts';
import { Learner } from '../../src/zab/learner.ts';
import type { LoggedProposal } from '../../src/zab/learner-host.ts';
import type { EpochName, PeerStorage } from '../../src/zab/peer-storage.ts';
import type { QuorumLinks } from '../../src/zab/quorum-links.ts';
import { recordedLearnings, type RecordedLearning, type RecordedPacket, viewOf } from './recordings.ts';

const ping = (zxid: Zxid): Buffer => {
  const bytes = Buffer.alloc(20);
  bytes.writeInt32BE(PacketType.PING, 0);
  bytes.writeBigInt64BE(BigInt(zxid), 4);
  bytes.writeInt32BE(-1, 12);
  bytes.writeInt32BE(-1, 16);
  return bytes;
};

/** A learner, its disk, which answers at once, and the part of its server that uses the leader. */
class Replayed {
  readonly learner: Learner;
  readonly #writer = new Writer(256);
  readonly #said: Buffer[] = [];
  readonly #disk: (() => void)[] = [];
  #forwarder: LeaderForwarder | undefined;
  /** Sessions with signs of life since the last PING. */
  #touched: [high: number, low: number, timeoutMs: number][] = [];
  /** The changes of the state, in order. */
  readonly state: string[] = [];
  syncsAnswered = 0;
  activated = 0;
  readonly revalidated: boolean[] = [];
  #now: Now = { elapsedMs: 0, wallMs: 0 };

  constructor({ packets, learner, leader }: RecordedLearning) {
    const sent = packets.filter(({ fromLeader }) => !fromLeader);
    const info = viewOf(sent[0]!.bytes);
    const { configVersion = 0 } = readLearnerInfo(info.data);
    const role = info.type === PacketType.OBSERVERINFO ? 'observer' : 'follower';
    const acceptedEpoch = epochOf(info.zxid);
    const ackEpoch = viewOf(sent[1]!.bytes);
    const lastZxid = ackEpoch.zxid;
    const received = readAckEpoch(ackEpoch.data);
    const currentEpoch = received === -1 ? acceptedEpoch : received;
    const options = {
      sid: learner,
      tickTimeMs: 500,
      initLimitTicks: 10,
      syncLimitTicks: 5,
      forceSnapshotSync: false,
      counterMax: 0xffff_0000,
    };
    const links: QuorumLinks = {
      packets: () => this.#writer,
      writeShared: () => undefined,
      channelIsFull: () => false,
      closeChannel: () => undefined,
      dialLeader: () => undefined,
      cancelDial: () => undefined,
    };
    const storage: PeerStorage = {
      append: (zxid) => this.#disk.push(() => this.learner.appended(zxid)),
      saveConfig: () => undefined,
      saveEpoch: (name: EpochName, epoch) => {
        this.state.push(`${name} ${epoch}`);
        this.#disk.push(() => this.learner.epochSaved(name, this.#now));
      },
      truncate: (zxid) => {
        this.state.push(`cut to ${zxid.toString(16)}`);
        this.#disk.push(() => this.learner.truncated(zxid, this.#now));
      },
      installSnapshot: () => this.#disk.push(() => this.learner.installed(this.#now)),
      logBytesMax: () => undefined,
      readLog: () => undefined,
      resumeLogRead: () => undefined,
      stopLogRead: () => undefined,
    };
    const server = {
      takeTouched: (visit: (high: number, low: number, timeoutMs: number) => void) => {
        for (const [high, low, timeoutMs] of this.#touched.splice(0)) visit(high, low, timeoutMs);
      },
      synced: () => void this.syncsAnswered++,
      revalidated: (_session: unknown, isValid: boolean) => void this.revalidated.push(isValid),
      appended: () => {
        const { header } = this.#forwarder!.takeCommitted();
        this.state.push(`commit ${header.zxid.toString(16)}`);
      },
      stop: () => undefined,
    };
    const host = {
      apply: ({ zxid }: LoggedProposal) => void this.state.push(`commit ${zxid.toString(16)}`),
      committed: () => undefined,
      beginSnapshot: (zxid: Zxid) => void this.state.push(`load ${zxid.toString(16)}`),
      startServing: (_epoch: number, link: LeaderLink) => {
        // There are no sessions, so it does not look for their connections.
        const tracker = new SessionTracker(500);
        const forwarder = (this.#forwarder = new LeaderForwarder(role, link, { tracker } as never));
        return { server: server as unknown as Server, forwarder };
      },
      historyComplete: () => undefined,
      configSeen: () => undefined,
      configActivated: () => {
        this.activated++;
        return { isFollowed: true, isRoleChanged: false, canLeaderLeadOn: true };
      },
    };
    const start = { role, acceptedEpoch, currentEpoch, lastZxid, configVersion, leader, resyncEpoch: 0 } as const;
    this.learner = new Learner(options, start, 0, new PacketView(), links, storage, host, this.#now);
  }

  #settle(): void {
    for (let next = this.#disk.shift(); next !== undefined; next = this.#disk.shift()) next();
  }

  hear(bytes: Buffer, t: number): void {
    this.#now = { elapsedMs: t * 1000, wallMs: 0 };
    this.learner.packet(viewOf(bytes), this.#now);
    this.#settle();
  }

  snapshot(): void {
    this.learner.snapshotLoaded(this.#now);
    this.#settle();
  }

  /** A client has sent the request that the recorded learner forwarded. */
  ask({ name, bytes }: RecordedPacket): void {
    const packet = viewOf(bytes);
    if (name === 'REVALIDATE') {
      const request = readRevalidateRequest(packet.data);
      this.#forwarder!.revalidate(request, request.timeOut);
      return;
    }
    const { sessionHigh, sessionLow, cxid, type: opCode, payload } = readLearnerRequest(packet.data);
    const identities = Identities.of((packet.authinfo() ?? []).map(({ scheme, id }) => ({ scheme: scheme!, id: id! })));
    const record = new Reader(Buffer.from(payload));
    const origin = {
      kind: 'write',
      cnxn: noCnxn,
      owner: 0,
      sessionHigh,
      sessionLow,
      cxid,
      opCode,
      identities,
      heldBytes: 0,
      frameBytes: 0,
      isUpgradeRefused: false,
      keeperParts: undefined,
      arrivedMs: 0,
    } as const;
    if (opCode === OpCode.createSession) {
      this.#forwarder!.openSession(origin, record.int32());
    } else if (opCode === OpCode.sync) {
      const header = Buffer.alloc(8);
      header.writeInt32BE(cxid, 0);
      header.writeInt32BE(opCode, 4);
      const whole = Buffer.concat([header, payload]);
      const frame = parkFrame(whole, 0, whole.length, identities, 0, false);
      this.#forwarder!.sync({ kind: 'sync', cnxn: noCnxn, sessionHigh, sessionLow, frame, heldBytes: 0, isDone: false });
    } else {
      this.#forwarder!.submitWrite(origin, record);
    }
  }

  touch({ bytes }: RecordedPacket): void {
    readTouchedSessions(viewOf(bytes).data, (high, low, timeoutMs) => void this.#touched.push([high, low, timeoutMs]));
  }

  /** All its packets. */
  said(): Buffer[] {
    const bytes = Buffer.from(this.#writer.written());
    this.#writer.clear();
    new PacketDecoder(1_000_000).feed(bytes, 0, bytes.length, {
      packet: (view) => {
        this.#said.push(Buffer.from(view.bytes.subarray(view.start, view.end)));
        return true;
      },
      raw: () => {
        throw new Error('nothing is raw here');
      },
    });
    return this.#said;
  }
}

function replay(packets: readonly RecordedPacket[], recorded: RecordedLearning): Replayed {
  const replayed = new Replayed(recorded);
  const pings = packets.filter(({ fromLeader, name }) => fromLeader && name === 'PING');
  for (const packet of packets) {
    const { fromLeader, name, bytes, t } = packet;
    if (name === 'PING') {
      if (fromLeader) continue;
      // The leader's PING that it answers is in the recording, or was left out.
      replayed.touch(packet);
      const { zxid } = viewOf(bytes);
      const at = pings.findIndex((one) => viewOf(one.bytes).zxid === zxid && Math.abs(one.t - t) < 0.1);
      replayed.hear(at === -1 ? ping(zxid) : pings.splice(at, 1)[0]!.bytes, t);
    } else if (!fromLeader) {
      if (name === 'REQUEST' || name === 'REVALIDATE') replayed.ask(packet);
    } else if (name === 'snapshot') {
      replayed.snapshot();
    } else {
      replayed.hear(bytes, t);
    }
  }
  return replayed;
}

function shown(bytes: Buffer): string {
  return `${packetTypeName(bytes.readInt32BE(0))} ${bytes.toString('hex')}`;
}

const isAck = (line: string): boolean => line.startsWith('ACK ');

/**
 * The result of the leader's stream in the form of `state`: derived from the recording, not from
 * our learner.
 */
function expectedState(packets: readonly RecordedPacket[]): string[] {
  const sent = (name: string) => packets.find((packet) => packet.name === name);
  const ackEpoch = viewOf(sent('ACKEPOCH')!.bytes);
  const epoch = epochOf(viewOf(sent('LEADERINFO')!.bytes).zxid);
  // A learner that answers -1 had accepted the epoch before.
  const state = readAckEpoch(ackEpoch.data) === -1 ? [] : [`acceptedEpoch ${epoch}`];
  for (const { fromLeader, name, bytes } of packets) {
    if (!fromLeader || name === 'snapshot') continue;
    const zxid = viewOf(bytes).zxid.toString(16);
    if (name === 'SNAP') state.push(`load ${zxid}`);
    if (name === 'TRUNC') state.push(`cut to ${zxid}`);
    if (/^(?:COMMIT|INFORM)/.test(name)) state.push(`commit ${zxid}`);
    if (name === 'NEWLEADER') state.push(`currentEpoch ${epoch}`);
  }
  return state;
}

function compare(replayed: Replayed, packets: readonly RecordedPacket[]): void {
  const expected = packets.filter(({ fromLeader }) => !fromLeader).map(({ bytes }) => shown(bytes));
  const said = replayed.said().map(shown);
  expect(said.filter((line) => !isAck(line))).toEqual(expected.filter((line) => !isAck(line)));
  expect(said.filter(isAck)).toEqual(expected.filter(isAck));
  expect(replayed.state).toEqual(expectedState(packets));
}

it.each(recordedLearnings('ensemble-mixed'))('$title: our learner sends and does what the recorded one did', (recorded) => {
  const replayed = replay(recorded.packets, recorded);
  expect(replayed.learner.stages.endReason).toBeUndefined();
  compare(replayed, recorded.packets);
  const answers = (wanted: string) => recorded.packets.filter(({ fromLeader, name }) => fromLeader && name === wanted);
  expect(replayed.syncsAnswered).toBe(answers('SYNC').length);
  expect(replayed.revalidated).toEqual(answers('REVALIDATE').map(() => true));
});

it.each(recordedLearnings('ensemble-reconfig'))(
  '$title: our learner sends what the recorded one sent, also when the configuration changes',
  (recorded) => {
    const { packets, leader } = recorded;
    const changes = packets.filter(({ name }) => name.endsWith('ANDACTIVATE'));
    const leaves = changes.findIndex(({ bytes }) => viewOf(bytes).data.int64() !== leader);
    const replayed = replay(packets, recorded);
    compare(replayed, packets);
    const served = packets.some(({ name }) => name === 'UPTODATE') ? 1 : 0;
    expect(replayed.activated).toBe(served + changes.length);
    if (leaves === -1) expect(replayed.learner.stages.endReason).toBeUndefined();
    else expect(replayed.learner.stages.endText).toContain('in favour of server 1');
  },
);
