/**
 * The part of a core that the learner port uses. `Peer` has this shape, for either end of a
 * channel. Each channel begins with `accepted` or `dialled` and ends with `channelGone`.
 */
import type { ChannelId, ChannelRank, Now } from '@tskeeper/core';
import type { PacketView } from '@tskeeper/protocol';

export interface LearnerCore {
  /** A connection to this server's quorum address has sent a whole packet, which follows. */
  accepted(channel: ChannelId, now: Now): void;
  /** The last requested dial is connected. */
  dialled(channel: ChannelId, now: Now): void;
  /**
   * The last requested dial has failed at every address. `refused`: at each of them by a host that
   * answers, on which nothing listens.
   */
  dialFailed(outcome: 'refused' | 'unanswered', now: Now): void;
  /**
   * A packet of the other side. The view and its bytes are valid only during the call. Throws a
   * `ProtocolError` for a packet that is not valid.
   */
  packet(channel: ChannelId, packet: PacketView, now: Now): void;
  /**
   * Called after each packet: whether a snapshot comes next over this stream, which goes to
   * `feedSnapshot`.
   */
  isReceivingSnapshot(channel: ChannelId): boolean;
  /**
   * Takes bytes of the snapshot; returns how many of them belong to it. Throws a `ProtocolError`
   * for bytes that are not a snapshot.
   */
  feedSnapshot(channel: ChannelId, bytes: Buffer, now: Now): number;
  /**
   * Part of a packet has arrived over this stream. A server that sends a large packet shows no
   * other sign of life.
   */
  partReceived(channel: ChannelId, now: Now): void;
  /**
   * Part of what waits for this stream has been sent. A server that takes a large snapshot shows no
   * other sign of life.
   */
  partSent(channel: ChannelId, now: Now): void;
  /**
   * Which channels are cut off first when too much waits for all channels together: those with the
   * higher ranks.
   */
  channelRank(channel: ChannelId): ChannelRank;
  /** There is room again in the output of a channel that was reported as full. */
  channelDrained(channel: ChannelId, now: Now): void;
  /**
   * The last call for a channel, whichever side closed it; once for each that was accepted or
   * dialled.
   */
  channelGone(channel: ChannelId, now: Now): void;
}
