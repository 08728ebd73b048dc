import type { Sid, Writer } from '@tskeeper/protocol';
import type { RoleEndReason } from '../role-end.ts';

/**
 * A stream between a leader and one of its learners, numbered by the port: a small integer, which
 * the port uses again only after it has reported to the core that the stream is closed.
 */
export type ChannelId = number;

/**
 * What a stream's learner is to its leader: a voter, an observer of the configuration, or an
 * observer that the configuration does not have.
 */
export const ChannelRank = { voter: 0, observer: 1, stranger: 2 } as const;
export type ChannelRank = (typeof ChannelRank)[keyof typeof ChannelRank];

/**
 * Why a stream between a leader and a learner is closed. Programs compare these names; the text
 * that goes with one is for the operator. A learner that ends closes its stream for the reason of
 * its end.
 */
export type ChannelCloseReason =
  | RoleEndReason
  /** By a leader: the learner cannot be accepted. */
  | 'learner is this server'
  | 'learner has a later configuration'
  | 'learner has a later history'
  | 'learner of an impossible epoch'
  | 'too many unknown observers'
  /** By a follower that accepts observers. */
  | 'learner is not an observer'
  | 'too many requests of observers'
  | 'sid already connected'
  | 'replaced by a later connection'
  /** By a leader: the learner is too slow, or dead. */
  | 'learner silent'
  | 'proposal not acknowledged'
  | 'PING not answered'
  | 'snapshot read too slowly'
  | 'log purged'
  /** By a server whose role has changed. */
  | 'not leading'
  | 'not following'
  | 'leader not wanted';

/** Where a server accepts learners: as a leader, or as a follower (observerMasterPort). */
export type LeaderPort = 'quorum' | 'observer master';

/** The streams between leader and learners, over the quorum ports. It never calls back. */
export interface QuorumLinks {
  /**
   * A writer at the end of the stream's output. The bytes are sent at the end of the turn. A closed
   * stream accepts and drops them.
   */
  packets(channel: ChannelId): Writer;
  /**
   * Writes bytes, from `start` to their end, which must not change afterwards: bytes for several
   * streams are kept once.
   */
  writeShared(channel: ChannelId, bytes: Buffer, start: number): void;
  /**
   * Whether so much output waits for the stream that more should not be written. After it was true,
   * `channelDrained` follows when there is room.
   */
  channelIsFull(channel: ChannelId): boolean;
  /** Closes a stream once its output has been sent; `channelGone` follows. */
  closeChannel(channel: ChannelId, reason: ChannelCloseReason, text: string): void;
  /**
   * Connects to the quorum port of another server, or to the port at which it accepts observers;
   * `dialled` or `dialFailed` follows. One dial at a time.
   */
  dialLeader(sid: Sid, port?: LeaderPort): void;
  /** Cancels the dial that is under way, if there is one; nothing follows. */
  cancelDial(): void;
}
