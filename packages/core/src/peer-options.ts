import type { Millis } from '@tskeeper/protocol';
import type { ElectionOptions } from './election/election-options.ts';
import type { CoreOptions } from './options.ts';
import type { ZabOptions } from './zab/zab-options.ts';

/** The options of a server of an ensemble. */
export interface PeerOptions {
  readonly core: CoreOptions;
  readonly zab: ZabOptions;
  /** Whether a leader accepts clients (`zookeeper.leaderServes`). Default: true. */
  readonly leaderServes?: boolean;
  /**
   * Delay between two attempts to reach the leader (`zookeeper.leaderConnectDelayDuringRetryMs`).
   * Default: 100.
   */
  readonly leaderConnectDelayMs?: Millis;
  /**
   * The maximum of the random delay after which an observer that has lost its leader looks for
   * another (`zookeeper.observer.election.DelayMs`). Default: 0.
   */
  readonly observerElectionDelayMs?: Millis;
  /**
   * Whether it serves reads to clients that accept stale ones once it has had no leader for 2
   * seconds, or for a tick if that is longer (`readonlymode.enabled`). Default: false.
   */
  readonly readOnlyMode?: boolean;
  /**
   * The maximum of the random delay before an observer dials its leader, or, after it has tried all
   * servers that accept observers, the first of them again (`zookeeper.observer.reconnectDelayMs`).
   * Default: 0.
   */
  readonly observerReconnectDelayMs?: Millis;
  /**
   * Whether followers accept observers, and observers learn from them (`observerMasterPort`).
   * Default: false.
   */
  readonly observerMasterEnabled?: boolean;
  readonly election?: Pick<ElectionOptions, 'minNotificationIntervalMs' | 'maxNotificationIntervalMs'>;
}
