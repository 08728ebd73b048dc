/**
 * The configuration that a server goes by, and what it makes of those that it hears of.
 *
 * Servers tell each other their configuration as text: in notifications, in NEWLEADER, in the txn of a reconfig. A later version takes the
 * place of an earlier one. Who votes decides what a quorum is, and two servers that count differently may both believe to have one. This
 * server does not change its voters while it runs, so a later configuration with the same voters is taken over, and one with others ends the
 * server before anything is acknowledged by the wrong count.
 *
 * The first leader of an ensemble whose configuration has version 0, which is that of every zoo.cfg, gives it a version of its own
 * (ZOOKEEPER-1783): from then on it is preferred to any that was only written into a file. All of this is so with `reconfigEnabled`; without
 * it, nobody's configuration changes by what others say (ZOOKEEPER-2819), and the txn of a reconfig changes /zookeeper/config alone.
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
import type { ConfigListener, ElectionConfig } from '../election/fast-leader-election.ts';
import type { Fingerprint } from '../fingerprint.ts';
import type { DataTree } from '../tree/data-tree.ts';
import { OracleQuorum } from './oracle-quorum.ts';

/**
 * The ensemble goes by a configuration that this server cannot go by. The message is for the operator: one sentence that says which, and
 * one that says what to do.
 */
export class ConfigurationConflict extends Error {
  override readonly name = 'ConfigurationConflict';
}

export class Configuration implements ConfigListener {
  readonly #reconfigEnabled: boolean;
  #active: ElectionConfig;
  #members: QuorumConfig;
  /** What others have said that they go by, while this server was looking. */
  #heard: string | undefined;

  /** `active` is what the operator has written. With `reconfigEnabled` configurations of others are heeded. */
  constructor(active: ElectionConfig, reconfigEnabled: boolean) {
    this.#reconfigEnabled = reconfigEnabled;
    this.#active = active;
    this.#members = parseQuorumConfig(active.text);
  }

  /** The one in force. */
  get active(): ElectionConfig {
    return this.#active;
  }

  get version(): number {
    return this.#active.version;
  }

  /**
   * Takes over a configuration that others go by, if it is a later one. Returns whether it did. Throws a `ConfigurationConflict` if others
   * vote in it. What nobody could read is passed over, as in ZooKeeper.
   */
  maybeAdopt(text: string): boolean {
    const later = this.#later(text);
    if (later === undefined || !this.#reconfigEnabled) return false;
    this.#active = { verifier: this.#active.verifier, text: formatQuorumConfig(later), version: later.version };
    this.#members = later;
    return true;
  }

  /** An election, in the middle of which nothing may change, has heard of a later one. See `maybeAdoptHeard`. */
  configSeen(_from: Sid, config: QuorumConfig): void {
    this.#heard = formatQuorumConfig(config);
  }

  /** As `maybeAdopt`, for what was heard last. */
  maybeAdoptHeard(): boolean {
    const heard = this.#heard;
    this.#heard = undefined;
    return heard !== undefined && this.maybeAdopt(heard);
  }

  /** As `maybeAdopt`, for what log and snapshot say of it, which is where it is kept over a restart. */
  maybeAdoptKept(tree: DataTree): boolean {
    if (!this.#reconfigEnabled) return false;
    const node = tree.find(systemPath.config);
    return node !== 0 && this.maybeAdopt(tree.dataOf(node)?.toString('utf8') ?? '');
  }

  keepIn(tree: DataTree): void {
    tree.keepConfig(this.#active.text, this.version);
  }

  /** Throws a `ConfigurationConflict` if this is a later configuration and others vote in it. */
  check(text: string): void {
    this.#later(text);
  }

  /** Whether the configuration in force has this server, as a voter or an observer. */
  has(sid: Sid): boolean {
    return this.#members.servers.has(sid);
  }

  /** What a new leader tells its learners in NEWLEADER; it goes by that itself once a quorum has acknowledged it. */
  proposedBy(epoch: number): string {
    if (!this.#reconfigEnabled || this.version !== 0) return this.#active.text;
    return formatQuorumConfig({ ...this.#members, version: makeZxid(epoch, 0) });
  }

  /** Whether the oracle of an ensemble of two lets this server go on without the other. Returns whether there is one to listen to. */
  oracleSaid(mayGoAlone: boolean): boolean {
    const { verifier } = this.#active;
    if (!(verifier instanceof OracleQuorum)) return false;
    verifier.oracleSaid(mayGoAlone);
    return true;
  }

  /** Whether a voter follows this server, which leads. Returns whether an oracle is to be asked anew: what it said when it had no say is of no account. */
  followed(isFollowed: boolean): boolean {
    const { verifier } = this.#active;
    if (!(verifier instanceof OracleQuorum)) return false;
    verifier.followed(isFollowed);
    if (!isFollowed) verifier.oracleSaid(false);
    return !isFollowed;
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
    if (votingPart(other) === votingPart(this.#members)) return other;
    const version = other.version.toString(16);
    throw new ConfigurationConflict(
      `the ensemble goes by configuration ${version}, in which servers ${votersOf(other)} vote, and this server by configuration ` +
        `${this.version.toString(16)}, in which servers ${votersOf(this.#members)} do, or the same ones at other addresses. Write its servers into a file ` +
        `whose name ends in .dynamic.${version}, name that as dynamicConfigFile in zoo.cfg, and start this server again.`,
    );
  }
}

/** All of a configuration that decides what a quorum is, and where its members are found. */
function votingPart({ servers, groups, weights }: QuorumConfig): string {
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
