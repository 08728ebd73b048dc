/**
 * The configuration of this server, and the handling of those received from others.
 *
 * Servers send each other their configuration as text: in notifications, in NEWLEADER, in the txn
 * of a reconfig. A later version replaces an earlier one. The voters determine the quorums, and two
 * servers that count differently may both believe to have a quorum. This server does not change its
 * voters while it runs, so it adopts a later configuration with the same voters, and one with
 * others ends the server before anything is acknowledged by the wrong count.
 *
 * The first leader of an ensemble whose configuration has version 0, which every zoo.cfg has,
 * assigns a version (ZOOKEEPER-1783): from then on it is preferred to any that was only written
 * into a file. All of this requires `reconfigEnabled`; without it, configurations of other servers
 * have no effect (ZOOKEEPER-2819), and the txn of a reconfig changes only /zookeeper/config.
 */
import {
  formatQuorumConfig,
  isParticipant,
  makeZxid,
  parseQuorumConfig,
  type QuorumConfig,
  QuorumConfigError,
  type QuorumServer,
  type Sid,
  systemPath,
} from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import type { DataTree } from '../tree/data-tree.ts';
import type { ConfigListener, ElectionConfig } from './election-config.ts';
import { OracleQuorum } from './oracle-quorum.ts';

/**
 * The ensemble uses a configuration that this server cannot use. The message is for the operator:
 * one sentence names both, and one gives the remedy.
 */
export class ConfigurationConflict extends Error {
  override readonly name = 'ConfigurationConflict';
}

export class Configuration implements ConfigListener {
  readonly #reconfigEnabled: boolean;
  #active: ElectionConfig;
  #members: QuorumConfig;
  /** A configuration received from another server while this one was looking. */
  #lastSeen: string | undefined;

  /**
   * @param active the operator's configuration.
   * @param reconfigEnabled whether configurations of other servers are considered.
   */
  constructor(active: ElectionConfig, reconfigEnabled: boolean) {
    this.#reconfigEnabled = reconfigEnabled;
    this.#active = active;
    this.#members = parseQuorumConfig(active.text);
  }

  /** The active configuration. */
  get active(): ElectionConfig {
    return this.#active;
  }

  get version(): number {
    return this.#active.version;
  }

  /**
   * Adopts a configuration of other servers, if it is later. Returns whether it did. Throws a
   * `ConfigurationConflict` if its voters differ. A malformed one is ignored, as in ZooKeeper.
   */
  maybeAdopt(text: string): boolean {
    const later = this.#later(text);
    if (later === undefined || !this.#reconfigEnabled) return false;
    this.#active = { verifier: this.#active.verifier, text: formatQuorumConfig(later), version: later.version };
    this.#members = later;
    return true;
  }

  /**
   * An election, during which nothing may change, has received a later configuration. See
   * `maybeAdoptLastSeen`.
   */
  configSeen(_from: Sid, config: QuorumConfig): void {
    this.#lastSeen = formatQuorumConfig(config);
  }

  /** As `maybeAdopt`, for the configuration received last. */
  maybeAdoptLastSeen(): boolean {
    const lastSeen = this.#lastSeen;
    this.#lastSeen = undefined;
    return lastSeen !== undefined && this.maybeAdopt(lastSeen);
  }

  /**
   * As `maybeAdopt`, for the configuration in log and snapshot, where it is kept over a restart.
   */
  maybeAdoptStored(tree: DataTree): boolean {
    if (!this.#reconfigEnabled) return false;
    const node = tree.find(systemPath.config);
    return node !== 0 && this.maybeAdopt(tree.dataOf(node)?.toString('utf8') ?? '');
  }

  storeIn(tree: DataTree): void {
    tree.setConfig(this.#active.text, this.version);
  }

  /** Throws a `ConfigurationConflict` if this is a later configuration with other voters. */
  check(text: string): void {
    this.#later(text);
  }

  /** Whether the active configuration contains this server, as a voter or an observer. */
  isMember(sid: Sid): boolean {
    return this.#members.servers.has(sid);
  }

  /**
   * The configuration that a new leader sends in NEWLEADER; it adopts it once a quorum has
   * acknowledged it.
   */
  newLeaderConfig(epoch: number): string {
    if (!this.#reconfigEnabled || this.version !== 0) return this.#active.text;
    return formatQuorumConfig({ ...this.#members, version: makeZxid(epoch, 0) });
  }

  /**
   * Passes on the answer of the oracle of an ensemble of two: whether this server may continue
   * without the other. Returns whether the configuration has an oracle.
   */
  oracleAnswered(canServeAlone: boolean): boolean {
    const { verifier } = this.#active;
    if (!(verifier instanceof OracleQuorum)) return false;
    verifier.oracleAnswered(canServeAlone);
    return true;
  }

  /**
   * Notes whether a voter follows this server, which leads. Returns whether the oracle must be
   * asked again: its earlier answer is void.
   */
  setHasFollower(hasFollower: boolean): boolean {
    const { verifier } = this.#active;
    if (!(verifier instanceof OracleQuorum)) return false;
    verifier.setHasFollower(hasFollower);
    if (!hasFollower) verifier.oracleAnswered(false);
    return !hasFollower;
  }

  fingerprint(to: Fingerprint): void {
    to.text(this.#active.text);
    to.number(this.version);
  }

  #later(text: string): QuorumConfig | undefined {
    let other: QuorumConfig;
    try {
      other = parseQuorumConfig(text);
    } catch (error) {
      if (error instanceof QuorumConfigError) return undefined;
      throw error;
    }
    if (other.version <= this.version) return undefined;
    if (votingConfigText(other) === votingConfigText(this.#members)) return other;
    const version = other.version.toString(16);
    throw new ConfigurationConflict(
      `the ensemble uses configuration ${version} with voters ${votersOf(other)}, but this server uses configuration ` +
        `${this.version.toString(16)} with voters ${votersOf(this.#members)}, or with the same voters at other addresses. Write the ensemble's servers into a file ` +
        `whose name ends in .dynamic.${version}, set dynamicConfigFile in zoo.cfg to that file, and restart this server.`,
    );
  }
}

/** The part of a configuration that determines the quorums and the addresses of the voters. */
function votingConfigText({ servers, groups, weights }: QuorumConfig): string {
  const voters = new Map<Sid, QuorumServer>();
  for (const { sid, addresses, role } of servers.values()) {
    const server = { sid, addresses, role };
    if (isParticipant(server)) voters.set(sid, server);
  }
  return formatQuorumConfig({ version: 0, servers: voters, groups, weights });
}

function votersOf({ servers }: QuorumConfig): string {
  return [...servers.values()]
    .filter(isParticipant)
    .map(({ sid }) => sid)
    .sort((a, b) => a - b)
    .join(', ');
}
