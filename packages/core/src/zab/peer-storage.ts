import type { QuorumConfig, Zxid } from '@tskeeper/protocol';
import type { ChannelId } from './quorum-links.ts';

export type EpochName = 'acceptedEpoch' | 'currentEpoch';

/** What a server of an ensemble must keep. Each call completes as an input of `Peer`. */
export interface DurableState {
  /** As `TxnLog.append`. */
  append(zxid: Zxid, bytes: Buffer, start: number, end: number): void;
  /**
   * Stores the active configuration, and the one that may become active next. Txns and epochs that
   * are stored later are reported as durable after it. Completes as `configSaved`.
   */
  saveConfig(active: QuorumConfig, lastSeen: QuorumConfig | undefined): void;
  /** Writes an epoch file. Completes as `epochSaved`; one at a time. */
  saveEpoch(name: EpochName, epoch: number): void;
  /**
   * Removes everything after `zxid` from the log. Completes as `truncated`; or as
   * `truncationRefused`, with nothing changed, if the folder does not lead back to `zxid`, because
   * it begins with a snapshot of more than that.
   */
  truncate(zxid: Zxid): void;
  /**
   * Makes the state in memory, as of `zxid`, the only content of the folder. Completes as
   * `installed`.
   */
  installSnapshot(zxid: Zxid): void;
}

/** The log on disk, as a leader reads it for its learners. */
export interface LearnerLog {
  /**
   * How many bytes of the log on disk are cheaper to send to a learner than a snapshot; undefined
   * if it is not to be read.
   */
  logBytesMax(): number | undefined;
  /**
   * Reads the log for a learner, from the last txn up to `from` on. Completes as `logRead`, in
   * pieces, which wait while the channel is full. It stops when another log is read for the
   * channel, or at `stopLogRead`. With `isContinuation` the log is read however long it is, because
   * the learner has the part before it; otherwise it completes as `logReadRefused` if a snapshot is
   * cheaper.
   */
  readLog(channel: ChannelId, from: Zxid, isContinuation: boolean): void;
  /** The channel has room for the next piece. */
  resumeLogRead(channel: ChannelId): void;
  /** The channel is closed. */
  stopLogRead(channel: ChannelId): void;
}

/** The disk of a server of an ensemble. It never calls back into the core. */
export interface PeerStorage extends DurableState, LearnerLog {}
