/**
 * One role of a server in an ensemble. `Peer` holds exactly one role object at a time, passes it
 * the inputs that concern it, and replaces it when `next` returns a transition.
 *
 *     flushing    the disk works on something that must be durable before this server votes
 *     looking     an election is under way
 *     connecting  the elected leader is dialled
 *     leading     this server is the leader
 *     learning    this server follows or observes a leader
 *
 * The defaults here are those of a role that has nothing to do with an input.
 */
import type { Millis, PacketView, ServerState, Sid, Zxid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import type { EnsembleStatus, ObserverStatus } from '../inspector.ts';
import type { Now } from '../now.ts';
import type { Server } from '../server.ts';
import type { LeaderConnector, ConnectFailure } from '../zab/leader-connector.ts';
import type { TransferRefusal } from '../transfer-outcome.ts';
import type { LogEntry } from '../zab/learner-syncer.ts';
import type { EpochName } from '../zab/peer-storage.ts';
import { type ChannelId, ChannelRank } from '../zab/quorum-links.ts';

export type RoleName = 'flushing' | 'looking' | 'connecting' | 'leading' | 'learning';

/** What follows a role that has ended. */
export type Transition =
  /**
   * An election begins once the disk is flushed, and not before `delayMs` have passed. With
   * `successor` there is none: that server leads next.
   */
  | { readonly to: 'flushing'; readonly delayMs: Millis; readonly successor?: Sid | undefined }
  | { readonly to: 'looking' }
  | { readonly to: 'connecting'; readonly connector: LeaderConnector }
  | { readonly to: 'leading' }
  | { readonly to: 'learning'; readonly channel: ChannelId; readonly connector: LeaderConnector };

/** What a role says of itself to an operator. */
export type RoleStatus = Pick<EnsembleStatus, 'state' | 'phase' | 'leader'> &
  Partial<Pick<EnsembleStatus, 'syncMode' | 'leading' | 'learnerMaster' | 'observersOfFollower'>>;

export abstract class PeerRole {
  abstract readonly name: RoleName;

  /**
   * Orders, forwards or refuses writes, and applies txns; undefined while this server serves no
   * clients.
   */
  get server(): Server | undefined {
    return undefined;
  }

  /** Serves the clients of this server. A leader may leave them to its learners. */
  get front(): Server | undefined {
    return this.server;
  }

  /**
   * The epoch that this server has acknowledged, or that it leads; undefined while it is part of
   * none.
   */
  get epoch(): number | undefined {
    return undefined;
  }

  abstract status(): RoleStatus;

  /** See `Inspector.observers`. */
  observers(): Iterable<ObserverStatus> {
    return [];
  }

  resetObserverStats(): void {}

  // ---- the election

  /** The voter `from` has sent its vote, and is in that state. */
  voted(_from: Sid, _state: ServerState, _now: Now): void {}

  /** Another configuration is active, by what other servers have announced. */
  configChanged(_now: Now): void {}

  /** What is known of the other servers has changed. */
  peersChanged(): void {}

  // ---- streams

  /** Which learners this role accepts: the owner of the ports listens for them. */
  get acceptedLearners(): 'all' | 'observers' | 'none' {
    return 'none';
  }

  /** A learner has connected. Returns whether this role accepts learners. */
  accepted(_channel: ChannelId, _now: Now): boolean {
    return false;
  }

  /**
   * The dial of the leader has succeeded. Returns the transition that follows; undefined if this
   * role has not dialled.
   */
  dialled(_channel: ChannelId): Transition | undefined {
    return undefined;
  }

  dialFailed(_outcome: ConnectFailure, _now: Now): void {}

  packet(_channel: ChannelId, _packet: PacketView, _now: Now): void {}

  /** Whether the next bytes of this stream belong to a snapshot. */
  isReceivingSnapshot(_channel: ChannelId): boolean {
    return false;
  }

  /** Takes bytes of a snapshot; returns how many of them belong to it. */
  feedSnapshot(_channel: ChannelId, _bytes: Buffer, _now: Now): number {
    return 0;
  }

  partReceived(_channel: ChannelId, _now: Now): void {}

  partSent(_channel: ChannelId, _now: Now): void {}

  channelRank(_channel: ChannelId): ChannelRank {
    return ChannelRank.voter;
  }

  channelClosed(_channel: ChannelId, _now: Now): void {}

  // ---- the disk

  appended(_zxid: Zxid, _now: Now): void {}

  epochSaved(_name: EpochName, _epoch: number, _now: Now): void {}

  truncated(_lastZxid: Zxid, _now: Now): void {}

  truncationRefused(): void {}

  snapshotInstalled(_now: Now): void {}

  logReadRefused(_channel: ChannelId): void {}

  logRead(_channel: ChannelId, _entries: readonly LogEntry[], _isEnd: boolean): void {}

  // ---- the operator, the oracle and time

  /** Learners cannot reach this server. */
  stepDown(_text: string): void {}

  /** Gives the lead to another server. Returns that server, or why this role does not. */
  transferLeadership(_target: Sid | undefined, _now: Now): Sid | TransferRefusal {
    return 'not leading';
  }

  /** Another set of servers is a quorum now. */
  quorumChanged(_now: Now): void {}

  /** The process did nothing for longer than a tick. */
  resumed(_now: Now): void {}

  abstract wake(now: Now, inputWatermarkMs: Millis): void;

  abstract deadline(): Millis | undefined;

  /**
   * The transition that follows, once this role has ended, whose work is finished then; undefined
   * while it has not.
   */
  abstract next(now: Now): Transition | undefined;

  /** Everything of this role that can influence behaviour, for an explorer. */
  abstract fingerprint(to: Fingerprint, now: Now): void;
}
