/** What a server of a small world knows of the world, and what its parts know of it. */
import type { Notification, QuorumConfig, Sid, Zxid } from '@tskeeper/protocol';
import type { Peer } from '@tskeeper/core';
import type { QuorumVerifier } from '@tskeeper/core/internal';
import type { Invariants, ServerView } from './invariants.ts';
import type { MarkName } from './marks.ts';
import type { Scope } from './scope.ts';
import type { SmallClient } from './small-client.ts';
import type { SmallOperator } from './small-operator.ts';
import type { StoredTxn } from './small-disk.ts';

/** What a server knows of its world. */
export interface SmallServerEnvironment {
  readonly scope: Scope;
  readonly verifier: QuorumVerifier;
  readonly invariants: Invariants;
  /** Number of txns that clients have requested. */
  readonly writes: number;
  /** What the operator writes into the first files of a server. */
  initialFile(sid: Sid): QuorumConfig;
  /** The members of the configuration in force. */
  readonly membersInForce: string;
  /** Whether a client may change the configuration. */
  readonly isReconfigurable: boolean;
  readonly operator: SmallOperator;
  /** The persistent client, at whichever server it is. */
  readonly client: SmallClient;
  notify(from: Sid, to: Sid, notification: Notification): void;
  /** A leader has sent a txn to its log, after the txn `before`. */
  proposed(txn: StoredTxn, before: StoredTxn | undefined): void;
  /** The txns that lead to the state at that zxid. */
  historyOf(zxid: Zxid): StoredTxn[];
  hit(mark: MarkName): void;
  /** Whether another server is up that this one receives nothing from. */
  hasUnreachablePeer(sid: Sid): boolean;
  /** A leader has proposed an epoch. */
  epochProposed(sid: Sid, epoch: number): void;
}

/** The configurations that a server uses: the active one, and the one that may become active next. */
export interface UsedConfigs {
  readonly active: QuorumConfig;
  readonly lastSeen: QuorumConfig | undefined;
}

/** A server, as its parts see it. */
export interface ServerState {
  readonly sid: Sid;
  readonly world: SmallServerEnvironment;
  /** Undefined while the server is down. */
  readonly peer: Peer | undefined;
  view(): ServerView;
  /** Whether it votes in its active configuration. */
  readonly isVoter: boolean;
  /** It uses other configurations from here on. */
  configChanged(configs: UsedConfigs): void;
}
