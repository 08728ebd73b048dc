import type { Millis } from '@tskeeper/protocol';
import type { ElectionOptions } from './election/fast-leader-election.ts';
import type { CoreOptions } from './options.ts';
import type { ZabOptions } from './zab/zab-options.ts';

/** The options of a server of an ensemble. */
export interface PeerOptions {
  readonly core: CoreOptions;
  readonly zab: ZabOptions;
  readonly role: 'participant' | 'observer';
  /** Whether a leader accepts clients (`zookeeper.leaderServes`). Default: true. */
  readonly leaderServes?: boolean;
  /** How long after a try to reach the leader the next one follows (`zookeeper.leaderConnectDelayDuringRetryMs`). Default: 100. */
  readonly leaderConnectDelayMs?: Millis;
  /**
   * How long at most an observer that has lost its leader waits before it looks for another (`zookeeper.observer.election.DelayMs`); the wait is
   * random. Default: 0.
   */
  readonly observerElectionDelayMs?: Millis;
  readonly election?: Pick<ElectionOptions, 'minNotificationIntervalMs' | 'maxNotificationIntervalMs'>;
}
