/**
 * What an election is started with, and its outcome. The defaults are ZooKeeper's where they can be
 * seen by others: the servers of a mixed ensemble must wait equally long.
 */
import type { Millis, Sid } from '@tskeeper/protocol';
import type { Vote } from './vote.ts';

export interface ElectionOptions {
  readonly sid: Sid;
  /** Whether configurations of other servers are considered. Default: false, as in ZooKeeper. */
  readonly reconfigEnabled?: boolean;
  /**
   * How long to wait for a better vote when a quorum agrees. Default: 200, as in ZooKeeper, so that
   * all servers of a mixed ensemble wait equally long.
   */
  readonly finalizeWaitMs?: Millis;
  /**
   * Whether this wait ends when every reachable voter agrees. Default: true. Java servers always
   * wait.
   */
  readonly earlyFinalization?: boolean;
  /**
   * The first interval after which a notification is repeated
   * (`zookeeper.fastleader.minNotificationInterval`). Default: 200.
   */
  readonly minNotificationIntervalMs?: Millis;
  /**
   * The interval doubles each time up to this (`zookeeper.fastleader.maxNotificationInterval`).
   * Default: 60,000. A server without a vote waits 5,000 at most.
   */
  readonly maxNotificationIntervalMs?: Millis;
}

/** The result of an election for this server. */
export interface ElectionOutcome {
  readonly state: 'leading' | 'following' | 'observing';
  readonly vote: Vote;
}
