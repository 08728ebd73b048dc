/** Where a leader or a learner says what must be done, in order. It never calls back. */
import type { Writer, Zxid } from '@tskeeper/protocol';

/**
 * A stream between a leader and one of its learners, numbered by whoever carries it: a small integer, used again only after the core has
 * been told that it is gone.
 */
export type ChannelId = number;

export type EpochName = 'acceptedEpoch' | 'currentEpoch';

export interface ZabOut {
  /** A writer placed at the end of the stream's output. Whatever is written leaves at the end of the turn. A stream that is gone takes it too. */
  packets(channel: ChannelId): Writer;
  /** Closes a stream once its output has been sent. The core still hears that it is gone. `reason` is for the operator. */
  closeChannel(channel: ChannelId, reason: string): void;
  /** As `Out.append`. */
  append(zxid: Zxid, bytes: Buffer, start: number, end: number): void;
  /** Writes an epoch file. It completes as the input `epochSaved`; one is asked for at a time. */
  saveEpoch(name: EpochName, epoch: number): void;
}
