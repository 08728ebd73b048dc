import type { ChannelId, ChannelRank, Now } from '@tskeeper/core';
import type { HostPort, Notification, PacketView, Sid } from '@tskeeper/protocol';

/** A server of the ensemble, and its addresses for the others. */
export interface PeerServer {
  readonly sid: Sid;
  /**
   * Addresses for notifications; several where a server has several networks
   * (multiAddress.enabled). Tried in this order.
   */
  readonly electionAddresses: readonly HostPort[];
  /** Addresses at which learners dial it while it leads. */
  readonly quorumAddresses: readonly HostPort[];
}

/** The part of a core that the election port of a server uses. `Peer` has this shape. */
export interface ElectionCore {
  /**
   * A notification has arrived. `from` is below 0 for an observer without a number, and valid as
   * long as its connection lasts.
   */
  notified(from: Sid, notification: Notification, now: Now): void;
  /**
   * There is a connection with that server, dialled by either side. Called for each new one, also
   * when it replaces another.
   */
  reachable(sid: Sid): void;
  /**
   * The connection with that server has closed, and a dial begun since was refused at every address
   * it has: its host answers and nothing listens. Called once, until the server is reachable again.
   * A dial without an answer is never reported.
   */
  unreachable(sid: Sid, now: Now): void;
}

/** The part of a core that the learner port uses. */
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
