/**
 * What the table of learners (learner-table.ts) asks of the server that they have joined: a leader,
 * or a follower that accepts observers (observer-master.ts). So both admit, check and lose learners
 * by the same code.
 */
import type { Sid } from '@tskeeper/protocol';
import type { RoleEndReason } from '../role-end.ts';
import type { LeaderStage } from './epoch-stages.ts';
import type { LeaderConfig } from './leader-host.ts';
import type { ChannelId } from './quorum-links.ts';

/** The server that learners have joined. `LeaderHost` is one. */
export interface LearnerMaster {
  readonly config: LeaderConfig;
  /** Only a leader accepts transfers: a request for one does not come through a follower. */
  readonly acceptsTransfers?: boolean;
  /** It orders writes of ClickHouse Keeper, or passes them on to a leader that does. */
  readonly acceptsKeeperWrites: boolean;
  /** The learner has disconnected. */
  learnerGone(channel: ChannelId): void;
  /** See `LeaderHost.followersChanged`. */
  followersChanged?(followers: ReadonlySet<Sid>): void;
}

/**
 * How far the epoch of that server is, and which voters have joined it. `EpochStages` of a leader
 * is one.
 */
export interface MasterStages {
  readonly stage: LeaderStage;
  readonly epoch: number;
  /** The latest epoch that this server knows. */
  readonly knownEpoch: number;
  isPlausibleEpoch(acceptedEpoch: number): boolean;
  voterDiscovered(sid: Sid, acceptedEpoch: number): void;
  voterLeft(sid: Sid): void;
  end(reason: RoleEndReason, text: string): void;
}
