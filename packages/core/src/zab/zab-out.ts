/** Where a leader or a learner says what must be done, in order. It never calls back. */
import type { Writer, Zxid } from '@tskeeper/protocol';

/**
 * A stream between a leader and one of its learners, numbered by whoever carries it: a small integer, used again only after the core has
 * been told that it is gone.
 */
export type ChannelId = number;

/** What a stream's learner is to its leader: a voter, an observer of the configuration, or an observer that the configuration does not have. */
export const ChannelRank = { voter: 0, observer: 1, stranger: 2 } as const;
export type ChannelRank = (typeof ChannelRank)[keyof typeof ChannelRank];

export type EpochName = 'acceptedEpoch' | 'currentEpoch';

export interface ZabOut {
  /** A writer placed at the end of the stream's output. Whatever is written leaves at the end of the turn. A stream that is gone takes it too. */
  packets(channel: ChannelId): Writer;
  /** Writes bytes, from `start` to their end, as they are, which must stay so: what several streams are sent is held once. */
  share(channel: ChannelId, bytes: Buffer, start: number): void;
  /** Whether so much waits for the stream that what can wait should. Once it has been said, `wake` is called when there is room again. */
  channelIsFull(channel: ChannelId): boolean;
  /** Closes a stream once its output has been sent. The core still hears that it is gone. `reason` is for the operator. */
  closeChannel(channel: ChannelId, reason: string): void;
  /** As `Out.append`. */
  append(zxid: Zxid, bytes: Buffer, start: number, end: number): void;
  /** Writes an epoch file. It completes as the input `epochSaved`; one is asked for at a time. */
  saveEpoch(name: EpochName, epoch: number): void;
}
