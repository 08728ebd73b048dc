/**
 * The configuration that an election uses: its quorums, and the text that each notification
 * carries. A server learns of a newer configuration from the notifications of others
 * (ZOOKEEPER-107), so it can take part in an election although it missed a reconfiguration.
 */
import { parseQuorumConfig, type PeerRole, type QuorumConfig, QuorumConfigError, type Sid } from '@tskeeper/protocol';
import type { QuorumVerifier } from './quorum-verifier.ts';

/** The configuration that a server uses. */
export interface ElectionConfig {
  /**
   * Quorums of the active configuration, and also of the last seen one if that is newer
   * (`JointQuorum`).
   */
  readonly verifier: QuorumVerifier;
  /** Its text as in /zookeeper/config, which is sent with each notification; and its version. */
  readonly text: string;
  readonly version: number;
  /** The text of the last seen configuration, if that is newer. It is sent as well. */
  readonly pendingText: string | undefined;
  /** What this server is in it. A participant that it does not name has no vote. */
  readonly ownRole: PeerRole;
  /** Voters of later configurations that others have announced: they are asked as well. */
  readonly announcedVoters: readonly Sid[];
}

export interface ConfigListener {
  /**
   * `from` has a configuration of a higher version than this server's. Called only with
   * `reconfigEnabled`, while this server is looking. If the owner adopts it, it starts a new election
   * before it reads the outcome. Returns whether its voters should be asked what they know.
   */
  configSeen(from: Sid, config: QuorumConfig): boolean;
  /**
   * `from` has this text in its log as a configuration that may not be committed; undefined if it
   * has none. Called as `configSeen`.
   */
  pendingConfigSeen(from: Sid, text: string | undefined): void;
}

/** The configuration in a notification's text, if it is newer than this server's. */
export function newerConfig(text: string | undefined, own: ElectionConfig): QuorumConfig | undefined {
  if (text === undefined || text === own.text) return undefined;
  try {
    const config = parseQuorumConfig(text);
    return config.version > own.version ? config : undefined;
  } catch (error) {
    // No server could use it. The vote with it is counted under the current configuration, as in
    // ZooKeeper.
    if (error instanceof QuorumConfigError) return undefined;
    throw error;
  }
}
