/**
 * Sends the requests of a learner's clients to the leader. While the stream is full they wait here,
 * in order, and not in the stream: ACKs, answers to PINGs and other packets that keep the learner
 * connected are sent before them, so no number of requests makes the leader drop the learner.
 * REVALIDATE waits in the same order: the leader's answer covers the requests sent before it.
 */
import {
  beginQuorumPacket,
  endQuorumPacket,
  type Millis,
  OpCode,
  PacketType,
  type PacketView,
  type Reader,
  type Sid,
  writeId,
  writeRevalidateRequest,
  Writer,
} from '@tskeeper/protocol';
import type { Identities } from '../auth/identities.ts';
import { Fifo } from '../fifo.ts';
import { type Fingerprint, fingerprintBytes } from '../fingerprint.ts';
import type { SessionRef } from '../session/session-ref.ts';
import type { LeaderLink } from '../request/leader-forwarder.ts';
import type { LearnerProgress } from './learner-progress.ts';
import type { LearnerStages } from './learner-stages.ts';
import type { ChannelId, QuorumLinks } from './quorum-links.ts';
import { originOf } from './txn-origin.ts';

/** Passes on what observers of this follower request of the leader. */
export interface ObserverRequests {
  /** A REQUEST of an observer. The answer of a sync comes back as `takeSyncAsker`. */
  passOnRequest(packet: PacketView, opCode: number, from: LearnerProgress): void;
  /** A REVALIDATE of an observer. Its answer comes back as `takeRevalidationAsker`. */
  passOnRevalidation(packet: PacketView, from: LearnerProgress): void;
  /** Whether the leader orders writes of ClickHouse Keeper, which may be passed on like any other. */
  readonly leaderAcceptsKeeperWrites: boolean;
  /** Total bytes of the waiting requests. */
  readonly queuedBytes: number;
}

const authinfoLengthBytes = 4;

export class RequestQueue implements LeaderLink, ObserverRequests {
  readonly leader: Sid;
  readonly #stages: LearnerStages;
  readonly #links: QuorumLinks;
  readonly #channel: ChannelId;
  readonly #waiting = new Fifo<Buffer>();
  /** For a packet that must wait. */
  readonly #packet = new Writer(64);
  // Whether LEADERINFO has announced it.
  leaderAcceptsTransfers = false;
  leaderAcceptsKeeperWrites = false;
  /** Total bytes of the waiting requests. */
  queuedBytes = 0;
  /**
   * For whom syncs and questions about sessions were sent, which the leader answers in order;
   * undefined: for clients of this server.
   */
  readonly #syncAskers = new Fifo<LearnerProgress | undefined>();
  readonly #revalidationAskers = new Fifo<LearnerProgress | undefined>();
  /** Whether the leader reads from which observer a request comes; see `LeaderFeature.origins`. */
  leaderReadsOrigins = false;

  constructor(leader: Sid, stages: LearnerStages, links: QuorumLinks, channel: ChannelId) {
    this.leader = leader;
    this.#stages = stages;
    this.#links = links;
    this.#channel = channel;
  }

  request({ sessionHigh, sessionLow }: SessionRef, cxid: number, opCode: number, record: Reader, identities: Identities | undefined): void {
    if (this.#stages.isOver) return;
    if (opCode === OpCode.sync) this.#syncAskers.push(undefined);
    const writer = this.#writer();
    const at = beginQuorumPacket(writer, PacketType.REQUEST, -1);
    writer.int64Halves(sessionHigh, sessionLow);
    writer.int32(cxid);
    writer.int32(opCode);
    writer.raw(record.bytes, record.offset, record.limit);
    endQuorumPacket(writer, at, identities?.toList() ?? null);
    if (writer === this.#packet) this.#push(writer);
  }

  revalidate({ sessionHigh, sessionLow }: SessionRef, timeOut: Millis): void {
    if (this.#stages.isOver) return;
    this.#revalidationAskers.push(undefined);
    const writer = this.#writer();
    const at = beginQuorumPacket(writer, PacketType.REVALIDATE, -1);
    writeRevalidateRequest(writer, { sessionHigh, sessionLow, timeOut });
    endQuorumPacket(writer, at);
    if (writer === this.#packet) this.#push(writer);
  }

  passOnRequest(packet: PacketView, opCode: number, from: LearnerProgress): void {
    if (this.#stages.isOver) return;
    if (opCode === OpCode.sync) this.#syncAskers.push(from);
    this.#passOn(packet, from);
  }

  passOnRevalidation(packet: PacketView, from: LearnerProgress): void {
    if (this.#stages.isOver) return;
    this.#revalidationAskers.push(from);
    this.#passOn(packet, from);
  }

  /** The packet as it is; with the observer as one more identity, if the leader reads that. */
  #passOn({ bytes, start, end, data }: PacketView, { sid }: LearnerProgress): void {
    const writer = this.#writer();
    if (this.leaderReadsOrigins) {
      const count = bytes.readInt32BE(data.limit);
      writer.raw(bytes, start, data.limit);
      writer.int32(Math.max(0, count) + 1);
      for (const id of originOf(sid)) writeId(writer, id);
      writer.raw(bytes, data.limit + authinfoLengthBytes, end);
    } else {
      writer.raw(bytes, start, end);
    }
    if (writer === this.#packet) this.#push(writer);
  }

  /**
   * The leader has answered the oldest sync: the observer that it was for; undefined if it was for
   * a client of this server, or if there was none.
   */
  takeSyncAsker(): LearnerProgress | undefined {
    return this.#syncAskers.shift();
  }

  /** The same for the oldest question about a session. */
  takeRevalidationAsker(): LearnerProgress | undefined {
    return this.#revalidationAskers.shift();
  }

  /** The output for the next packet: the stream, or `#packet` if it must wait. */
  #writer(): Writer {
    if (this.#waiting.length === 0 && !this.#links.channelIsFull(this.#channel)) return this.#links.packets(this.#channel);
    this.#packet.clear();
    return this.#packet;
  }

  #push({ bytes, offset }: Writer): void {
    this.#waiting.push(Buffer.from(bytes.subarray(0, offset)));
    this.queuedBytes += offset;
  }

  /** Sends waiting requests if the stream has room. */
  send(): void {
    for (let next = this.#waiting.peek(); next !== undefined; next = this.#waiting.peek()) {
      if (this.#links.channelIsFull(this.#channel)) return;
      this.#waiting.shift();
      this.queuedBytes -= next.length;
      this.#links.writeShared(this.#channel, next, 0);
    }
    if (this.queuedBytes !== 0) throw new Error(`no request waits, but ${this.queuedBytes} bytes are counted`);
  }

  fingerprint(to: Fingerprint): void {
    for (const flag of [this.leaderReadsOrigins, this.leaderAcceptsTransfers]) to.number(flag ? 1 : 0);
    to.number(this.#waiting.length);
    for (const packet of this.#waiting.values()) fingerprintBytes(to, packet);
    to.number(this.#syncAskers.length);
    for (const asker of this.#syncAskers.values()) to.number(asker?.channel ?? -1);
    to.number(this.#revalidationAskers.length);
    for (const asker of this.#revalidationAskers.values()) to.number(asker?.channel ?? -1);
  }
}
