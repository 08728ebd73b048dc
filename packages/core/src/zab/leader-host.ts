/**
 * What a leader starts from, and what it asks of the peer whose role it is.
 *
 * A leader orders txns and counts answers. Which server serves the clients, which txns a learner
 * lacks and which configuration is active belong to the peer, so the leader reaches them only
 * through `LeaderHost`.
 */
import type { ErrorCode, Millis, QuorumConfig, ReconfigRequest, Sid, Zxid } from '@tskeeper/protocol';
import type { Now } from '../now.ts';
import type { QuorumVerifier } from '../quorum/quorum-verifier.ts';
import type { TransferEnd } from '../transfer-outcome.ts';
import type { Server } from '../server.ts';
import type { LeaderPreference } from './leader-preference.ts';
import type { ChannelId } from './quorum-links.ts';
import type { SyncTarget } from './sync-target.ts';

/** The state with which a leader starts. All learners are synchronised to it. */
export interface LeaderStart {
  readonly acceptedEpoch: number;
  readonly currentEpoch: number;
  /** The last txn of its log, all of which has been applied. */
  readonly lastZxid: Zxid;
}

/** What a leader reads of the configuration. `Configuration` implements it. */
export interface LeaderConfig {
  /** The active configuration, its text, and its version. */
  readonly members: QuorumConfig;
  readonly text: string;
  readonly version: number;
  /** The text of the last seen configuration, or else of the active one. */
  readonly latestText: string;
  /** Whether the active or the last seen configuration contains the server. */
  isMember(sid: Sid): boolean;
  /**
   * The configuration sent in NEWLEADER until the leader serves: one that an earlier leader has
   * proposed, the active one, or one that gets its first version from this epoch.
   */
  newLeaderConfig(epoch: number): string;
  /** As `Configuration.prepareReconfig`. */
  prepareReconfig(request: ReconfigRequest, zxid: Zxid, hasQuorum: (verifier: QuorumVerifier) => boolean): QuorumConfig | ErrorCode;
}

/** What a leader needs from its peer. */
export interface LeaderHost {
  /**
   * Creates the server for clients, once there is an epoch in which to order writes. The leader is
   * its log.
   */
  startServing(epoch: number, now: Now): Server;
  /**
   * Determines which txns a learner lacks, and sends them; `NEWLEADER` and everything later follow.
   */
  syncLearner(learner: SyncTarget, leaderLast: Zxid): void;
  /** The learner has disconnected. */
  learnerGone(channel: ChannelId): void;
  /**
   * Called when other voters follow the leader than before, and are in step: while the other of two
   * voters follows, the oracle is not consulted.
   */
  followersChanged?(followers: ReadonlySet<Sid>): void;
  readonly config: LeaderConfig;
  /** tskeeper.keeperExtensions */
  readonly acceptsKeeperWrites: boolean;
  /** This leader proposes a configuration: from here on both it and the active one count. */
  configSeen(text: string, now: Now): void;
  /**
   * A configuration is committed. `isTxn`: by a txn, which changes /zookeeper/config when it is
   * applied.
   */
  configActivated(text: string, isTxn: boolean, now: Now): void;
  /** How often the lead is given away because of priorities. */
  readonly leaderPreference: LeaderPreference;
  /** Writes of clients wait before they get a zxid, or go on. */
  holdWrites(isHeld: boolean): void;
  transferBegan(target: Sid, byPriority: boolean): void;
  transferEnded(target: Sid, outcome: TransferEnd, heldMs: Millis): void;
  /** A txn is committed. `entry`: header, record and digest as in the log. */
  committed(zxid: Zxid, entry: Buffer): void;
}
