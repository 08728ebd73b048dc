/**
 * Learners that have come before this server knows that it leads.
 *
 * Servers settle an election one after the other, so the first follower may dial before its leader has decided. Were it sent away, it
 * would look for a leader again, and find one that has begun to lead meanwhile and waits for a quorum that never comes: for initLimit
 * nobody would be served. So what it has said, one packet, is kept until the election here has an outcome. (ZooKeeper opens its port when
 * it begins to lead, and its learners dial again when they are refused.)
 */
import type { Millis, PacketView } from '@tskeeper/protocol';
import { distance, type Fingerprint, writeBytes } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import type { ChannelId } from './zab-out.ts';

/** Far more than an ensemble has servers. */
const countMax = 100;
/** FOLLOWERINFO takes 44 bytes. */
const introductionBytesMax = 1024;

interface EarlyLearner {
  readonly untilMs: Millis;
  introduction: Buffer | undefined;
}

export class EarlyLearners {
  readonly #learners = new Map<ChannelId, EarlyLearner>();
  readonly #waitMs: Millis;

  /** `waitMs`: after so long a learner that is of use to nobody is let go. It has given up by then. */
  constructor(waitMs: Millis) {
    this.#waitMs = waitMs;
  }

  /** Returns false for one too many. */
  add(channel: ChannelId, now: Now): boolean {
    if (this.#learners.size >= countMax) return false;
    this.#learners.set(channel, { untilMs: now.elapsedMs + this.#waitMs, introduction: undefined });
    return true;
  }

  /** Returns false for what no learner says before it has been answered; it is forgotten then. */
  packet(channel: ChannelId, packet: PacketView): boolean {
    const learner = this.#learners.get(channel);
    if (learner === undefined) return true;
    if (learner.introduction !== undefined || packet.end - packet.start > introductionBytesMax) {
      this.#learners.delete(channel);
      return false;
    }
    learner.introduction = Buffer.from(packet.bytes.subarray(packet.start, packet.end));
    return true;
  }

  gone(channel: ChannelId): void {
    this.#learners.delete(channel);
  }

  /** Those whose time is over, and who are forgotten. */
  takeLate(now: Now): ChannelId[] {
    const late: ChannelId[] = [];
    for (const [channel, { untilMs }] of this.#learners) {
      if (now.elapsedMs < untilMs) break;
      late.push(channel);
      this.#learners.delete(channel);
    }
    return late;
  }

  /** All of them, in the order in which they came; none is left. */
  takeAll(): { readonly channel: ChannelId; readonly introduction: Buffer | undefined }[] {
    const all = [...this.#learners].map(([channel, { introduction }]) => ({ channel, introduction }));
    this.#learners.clear();
    return all;
  }

  deadline(): Millis | undefined {
    for (const { untilMs } of this.#learners.values()) return untilMs;
    return undefined;
  }

  /** Everything that can influence behaviour, for an explorer. */
  fingerprint(to: Fingerprint, nowMs: Millis): void {
    to.number(this.#learners.size);
    for (const [channel, { untilMs, introduction }] of this.#learners) {
      to.number(channel);
      to.number(distance(untilMs, nowMs));
      if (introduction !== undefined) writeBytes(to, introduction);
    }
  }
}
