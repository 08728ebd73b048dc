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
  PacketType,
  type Reader,
  type Sid,
  writeRevalidateRequest,
  Writer,
} from '@tskeeper/protocol';
import type { Identities } from '../auth/identities.ts';
import { Fifo } from '../fifo.ts';
import { type Fingerprint, fingerprintBytes } from '../fingerprint.ts';
import type { SessionRef } from '../session/session-ref.ts';
import type { LeaderLink } from '../request/leader-forwarder.ts';
import type { LearnerStages } from './learner-stages.ts';
import type { ChannelId, QuorumLinks } from './quorum-links.ts';

export class RequestQueue implements LeaderLink {
  readonly leader: Sid;
  readonly #stages: LearnerStages;
  readonly #links: QuorumLinks;
  readonly #channel: ChannelId;
  readonly #waiting = new Fifo<Buffer>();
  /** For a packet that must wait. */
  readonly #packet = new Writer(64);
  /** Whether LEADERINFO has announced it. */
  leaderAcceptsTransfers = false;
  /** Total bytes of the waiting requests. */
  queuedBytes = 0;

  constructor(leader: Sid, stages: LearnerStages, links: QuorumLinks, channel: ChannelId) {
    this.leader = leader;
    this.#stages = stages;
    this.#links = links;
    this.#channel = channel;
  }

  request({ sessionHigh, sessionLow }: SessionRef, cxid: number, opCode: number, record: Reader, identities: Identities | undefined): void {
    if (this.#stages.isOver) return;
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
    const writer = this.#writer();
    const at = beginQuorumPacket(writer, PacketType.REVALIDATE, -1);
    writeRevalidateRequest(writer, { sessionHigh, sessionLow, timeOut });
    endQuorumPacket(writer, at);
    if (writer === this.#packet) this.#push(writer);
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
    to.number(this.#waiting.length);
    for (const packet of this.#waiting.values()) fingerprintBytes(to, packet);
  }
}
