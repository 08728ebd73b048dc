/** A learner that is to be brought to its leader's history, and what goes out to it: what synchroniser.ts and snapshot-syncs.ts share. */
import type { Writer, Zxid } from '@tskeeper/protocol';
import type { ChannelId } from './zab-out.ts';

/** A learner that is to be brought up to date, as its leader sees it. */
export interface LearnerSync {
  readonly channel: ChannelId;
  readonly isVoter: boolean;
  /** Whether the configuration names it, as a voter or as an observer. */
  readonly isMember: boolean;
  /** The last txn in its log. */
  readonly lastZxid: Zxid;
  /**
   * From here on the learner hears of everything that is committed or proposed, after `done`, which follows in the same turn. Returns the last
   * txn that was committed before: the learner is to be sent everything up to there.
   */
  begin(): Zxid;
  done(): void;
}

export interface SynchroniserOut {
  packets(channel: ChannelId): Writer;
  /** As `ZabOut.share`. */
  share(channel: ChannelId, bytes: Buffer, start: number): void;
  /** Whether so much waits for the stream that what can wait should. Once it has been said, `wake` is called when there is room again. */
  channelIsFull(channel: ChannelId): boolean;
  closeChannel(channel: ChannelId, reason: string): void;
  /**
   * Reads the log, from the last txn up to `from` on. It completes as `logRead`, in pieces. The reader stops when it is asked for another
   * log over the same stream, or when that is gone, and waits while the stream is full. `isTail`: however much that is, as the learner has
   * had what comes before; otherwise it completes as `logRefused` when a snapshot is cheaper.
   */
  readLog(channel: ChannelId, from: Zxid, isTail: boolean): void;
}
