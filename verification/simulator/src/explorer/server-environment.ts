/** What a server of a small world knows of the world, and what its parts know of it. */
import type { Notification, QuorumConfig, Sid, Zxid } from '@tskeeper/protocol';
import type { Peer } from '@tskeeper/core';
import type { QuorumVerifier } from '@tskeeper/core/internal';
import type { Invariants, ServerView } from './invariants.ts';
import type { MarkName } from './marks.ts';
import type { Scope } from './scope.ts';
import type { SmallClient } from './small-client.ts';
import type { StoredTxn } from './small-disk.ts';

/** What a server knows of its world. */
export interface SmallServerEnvironment {
  readonly scope: Scope;
  readonly verifier: QuorumVerifier;
  readonly members: QuorumConfig;
  readonly invariants: Invariants;
  /** Number of txns that clients have requested. */
  readonly writes: number;
  isObserver(sid: Sid): boolean;
  /** The persistent client, at whichever server it is. */
  readonly client: SmallClient;
  notify(from: Sid, to: Sid, notification: Notification): void;
  /** A leader has sent a txn to its log, after the txn `before`. */
  proposed(txn: StoredTxn, before: StoredTxn | undefined): void;
  /** The txns that lead to this state at that zxid. */
  historyOf(zxid: Zxid, state: readonly string[]): StoredTxn[];
  hit(mark: MarkName): void;
  /** Whether another server is up that this one receives nothing from. */
  hasUnreachablePeer(sid: Sid): boolean;
  /** A leader has proposed an epoch. */
  epochProposed(sid: Sid, epoch: number): void;
}

/** A server, as its parts see it. */
export interface ServerState {
  readonly sid: Sid;
  readonly world: SmallServerEnvironment;
  /** Undefined while the server is down. */
  readonly peer: Peer | undefined;
  view(): ServerView;
  /** The names of the txns whose effect is in the state in memory. */
  stateInMemory(): string[];
}
