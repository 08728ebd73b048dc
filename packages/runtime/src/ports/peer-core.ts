import type { ChannelId, ChannelRank, Now } from '@tskeeper/core';
import type { HostPort, Notification, PacketView, Sid } from '@tskeeper/protocol';

/** A server of the ensemble, and where the others reach it. */
export interface PeerServer {
  readonly sid: Sid;
  /** Where notifications are exchanged; several where a server has several networks (multiAddress.enabled). Tried in this order. */
  readonly electionAddresses: readonly HostPort[];
  /** Where learners dial it while it leads. */
  readonly quorumAddresses: readonly HostPort[];
}

/** The core of a server in an ensemble, as far as its election port needs it. `Peer` has this shape. */
export interface ElectionCore {
  /** A server has said something. `from` is below 0 for an observer without a number, and good for as long as its connection lasts. */
  notified(from: Sid, notification: Notification, now: Now): void;
  /** There is a connection with that server, from whichever side. Said of each new one, also when it takes the place of another. */
  reachable(sid: Sid): void;
  /**
   * The connection with that server has closed, and a dial begun since was refused at every address it has: its host answers and nobody
   * listens. Said once, until the server is reachable again. A dial without an answer is never reported.
   */
  unreachable(sid: Sid, now: Now): void;
}

/** The same, as far as its learner port needs it. */
export interface LearnerCore {
  /** Somebody has connected to this server's quorum address and sent a whole packet, which follows. */
  accepted(channel: ChannelId, now: Now): void;
  /** The dial that was asked for last is through. */
  dialled(channel: ChannelId, now: Now): void;
  /** The dial that was asked for last has failed at every address. `refused`: by a host that answers, on which nobody listens, at each of them. */
  dialFailed(outcome: 'refused' | 'unanswered', now: Now): void;
  /** A packet of the other side. The view and its bytes are valid during the call only. Throws a `ProtocolError` for what no packet says. */
  packet(channel: ChannelId, packet: PacketView, now: Now): void;
  /** Asked after each packet: what comes next over this stream is a snapshot, and goes to `snapshotBytes`. */
  isLoading(channel: ChannelId): boolean;
  /** Takes bytes of the snapshot; returns how many of them belong to it. Throws a `ProtocolError` for what is no snapshot. */
  snapshotBytes(channel: ChannelId, bytes: Buffer, now: Now): number;
  /** Part of a packet has arrived over this stream. A server that sends a large packet shows no other sign of life. */
  partReceived(channel: ChannelId, now: Now): void;
  /** Part of what waits for this stream has been sent. A server that takes a large snapshot shows no other sign of life. */
  partSent(channel: ChannelId, now: Now): void;
  /** Who is cut off first when too much waits for all channels together: the higher ranks. */
  channelRank(channel: ChannelId): ChannelRank;
  /** There is room again in the output of a channel that was said to be full. */
  channelDrained(channel: ChannelId, now: Now): void;
  /** The last that is heard of a channel, whoever closed it; once for each that was accepted or dialled. */
  channelGone(channel: ChannelId, now: Now): void;
}
