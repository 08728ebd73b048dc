/**
 * The configuration of this server: which servers there are, which of them vote, and where.
 *
 *     active     committed: the servers that count today
 *     last seen  proposed by a leader, in the log of this server, and not known to be committed
 *
 * While there is a last seen configuration, every decision needs a quorum of both (`JointQuorum`):
 * this server cannot know whether the other servers have activated it. The commit of its txn
 * activates it, and so does a leader that completes what an earlier one has begun, by NEWLEADER.
 * The last seen configuration is in the tree as well, since the log of a server that does not serve
 * has been applied to its end; so it survives a restart, and a TRUNC takes it back.
 *
 * A configuration is known by its version, the zxid of its txn: a later version replaces an earlier
 * one, and no two configurations have the same. The first leader of an ensemble whose configuration
 * has version 0, which every zoo.cfg has, assigns a version (ZOOKEEPER-1783): from then on it is
 * preferred to any that was only written into a file.
 *
 * All of this requires `reconfigEnabled`; without it, configurations of other servers have no
 * effect (ZOOKEEPER-2819), and the txn of a reconfig changes only /zookeeper/config.
 */
import {
  ErrorCode,
  formatQuorumConfig,
  isParticipant,
  makeZxid,
  parseQuorumConfig,
  type PeerRole,
  type QuorumConfig,
  QuorumConfigError,
  type QuorumServer,
  type ReconfigRequest,
  type Sid,
  systemPath,
  type Zxid,
} from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import type { DataTree } from '../tree/data-tree.ts';
import { ConfigAnnouncements } from './config-announcements.ts';
import { verifierOf } from './config-verifier.ts';
import { CurrentQuorum } from './current-quorum.ts';
import type { ElectionConfig } from './election-config.ts';
import { JointQuorum } from './joint-quorum.ts';
import { OracleQuorum } from './oracle-quorum.ts';
import type { QuorumVerifier } from './quorum-verifier.ts';
import { nextConfig } from './reconfig-request.ts';
import { ReportedQuorum } from './reported-quorum.ts';

export interface ConfigurationOptions {
  readonly sid: Sid;
  /** The operator's configuration, or the one that this server has activated last. */
  readonly active: QuorumConfig;
  /**
   * One that this server has stored and not activated, from a file; undefined for none. The log may
   * have a later one.
   */
  readonly lastSeen?: QuorumConfig | undefined;
  /** Whether configurations of other servers are considered. */
  readonly reconfigEnabled: boolean;
  /** `standaloneEnabled` in zoo.cfg: an ensemble has at least two voters. Default: true. */
  readonly standaloneEnabled?: boolean | undefined;
  /** `multiAddress.enabled`: a server may have several addresses. Default: false. */
  readonly multiAddressEnabled?: boolean | undefined;
  /** Whether an oracle decides for one of two voters (`oraclePath`). Default: false. */
  readonly hasOracle?: boolean | undefined;
}

/** A configuration, in both forms. */
interface VersionedConfig {
  readonly members: QuorumConfig;
  readonly text: string;
  readonly verifier: QuorumVerifier;
}

const noSids: readonly Sid[] = [];

export class Configuration implements ElectionConfig {
  readonly #options: ConfigurationOptions;
  #active: VersionedConfig;
  #lastSeen: VersionedConfig | undefined;
  readonly #quorum: CurrentQuorum;
  readonly #announced = new ConfigAnnouncements();
  /**
   * The one in the files, if the log has a later one that is active instead. Its servers are asked: an
   * operator may have written where they are today.
   */
  #overruled: VersionedConfig | undefined;
  /** What voters have in their logs, and the latest of it; see `maybeNotePending`. */
  readonly #pendingTexts = new Map<Sid, string>();
  #reported: VersionedConfig | undefined;
  /** The voters that follow this server; for the oracle. */
  #followers: ReadonlySet<Sid> = new Set();
  /** The last answer of the oracle, for the configurations that follow. */
  #canServeAlone = false;

  constructor(options: ConfigurationOptions) {
    this.#options = options;
    this.#active = this.#versioned(options.active);
    this.#quorum = new CurrentQuorum(this.#active.verifier);
    if (options.lastSeen !== undefined) this.#maybeSee(options.lastSeen);
  }

  // ---- the configuration in force

  /** The active configuration. */
  get members(): QuorumConfig {
    return this.#active.members;
  }

  /** Its text as in /zookeeper/config. */
  get text(): string {
    return this.#active.text;
  }

  get version(): number {
    return this.#active.members.version;
  }

  /** The configuration that may become active next; undefined if none is pending. */
  get lastSeen(): QuorumConfig | undefined {
    return this.#lastSeen?.members;
  }

  /** The quorums at any moment: of the active configuration, and of the last seen one as well. */
  get verifier(): QuorumVerifier {
    return this.#quorum;
  }

  /** The text of the last seen configuration. */
  get pendingText(): string | undefined {
    return this.#lastSeen?.text;
  }

  /** The number of voters of the active configuration. */
  get voterCount(): number {
    return this.#active.verifier.voters.length;
  }

  /**
   * What this server is. It takes part as a voter if the configuration that may become active next
   * gives it a vote: the others may need that vote to complete the change. A server that no
   * configuration names follows, without a vote.
   */
  get ownRole(): PeerRole {
    if (this.canVote) return 'participant';
    return this.members.servers.get(this.#options.sid)?.role ?? 'participant';
  }

  /** Whether this server votes. */
  get canVote(): boolean {
    return this.#quorum.isVoter(this.#options.sid);
  }

  /**
   * Whether this server's acknowledgements count, or do under the last seen configuration. What other
   * voters report of one gives it a vote in elections and no more: before it acknowledges anything, its
   * leader sends it that configuration.
   */
  get mustKeepLog(): boolean {
    const { sid } = this.#options;
    return this.#active.verifier.isVoter(sid) || this.#lastSeen?.verifier.isVoter(sid) === true;
  }

  /** As `mustKeepLog`, for a server that starts, and has not read the configurations of its tree yet. */
  mustKeepLogWith(tree: DataTree): boolean {
    return this.mustKeepLog || [this.#laterIn(tree), this.#replacedIn(tree)].some((each) => each?.verifier.isVoter(this.#options.sid));
  }

  /** Whether the active configuration allows the server to lead. */
  canLead(sid: Sid): boolean {
    return this.#active.verifier.weight(sid) > 0;
  }

  /** Whether the active or the last seen configuration contains the server. */
  isMember(sid: Sid): boolean {
    return this.members.servers.has(sid) || this.#lastSeen?.members.servers.has(sid) === true;
  }

  // ---- what other servers say

  /**
   * A leader has proposed this text, or will complete it: it may become active next. Returns
   * whether it is later than any that this server has seen. A malformed one is ignored, as in
   * ZooKeeper.
   */
  maybeSee(text: string): boolean {
    const config = this.#read(text);
    return config !== undefined && this.#maybeSee(config);
  }

  /**
   * Why this server cannot take part under a configuration of its leader: it does not follow them,
   * and other servers vote in this one. undefined if it can.
   */
  refusalOf(text: string): string | undefined {
    const other = this.#read(text);
    if (other === undefined || this.#options.reconfigEnabled || other.version <= this.version) return undefined;
    if (votingConfigText(other) === votingConfigText(this.members)) return undefined;
    const version = other.version.toString(16);
    return (
      `the ensemble uses configuration ${version} with voters ${votersOf(other)}, but this server uses configuration ` +
      `${this.version.toString(16)} with voters ${votersOf(this.members)}, or with the same voters at other addresses, and must not follow changes. ` +
      `Set reconfigEnabled=true in zoo.cfg, as on the other servers, and restart this server`
    );
  }

  #maybeSee(config: QuorumConfig): boolean {
    if (!this.#options.reconfigEnabled || config.version <= (this.#lastSeen?.members.version ?? this.version)) return false;
    this.#lastSeen = this.#versioned(config);
    this.#updateQuorum();
    return true;
  }

  /**
   * This configuration is committed, says a leader that is in force. Returns whether it is later than
   * the active one, which it then replaces. What voters have reported while they had no leader no
   * longer counts.
   */
  maybeActivate(text: string): boolean {
    this.#forgetReports();
    const config = this.#read(text);
    return config !== undefined && this.#maybeActivate(config);
  }

  #maybeActivate(config: QuorumConfig): boolean {
    if (!this.#options.reconfigEnabled || config.version <= this.version) return false;
    this.#active = this.#versioned(config);
    this.#overruled = undefined;
    this.#announced.clear();
    this.#forgetReports();
    if (this.#lastSeen !== undefined && this.#lastSeen.members.version <= this.version) this.#lastSeen = undefined;
    this.#updateQuorum();
    return true;
  }

  /**
   * `from` has announced its active configuration, a later one. Returns whether that is news, so
   * that its other voters should be asked: see `announcedVoters`.
   */
  maybeNoteAnnouncement(from: Sid, config: QuorumConfig): boolean {
    const versioned = this.#readVersioned(config);
    return versioned !== undefined && this.#announced.add(from, config, versioned.verifier);
  }

  /** Voters of configurations that are announced, or in the files, and not active here. */
  get announcedVoters(): readonly Sid[] {
    const written = this.#overruled?.verifier.voters ?? noSids;
    return this.#announced.isEmpty ? written : [...new Set([...written, ...this.#announced.voters()])];
  }

  /** Whether the log has a later configuration than the files, which is active instead. */
  get overrulesFiles(): boolean {
    return this.#overruled !== undefined;
  }

  /** Every configuration that may become active next: its servers must be reachable. */
  get others(): readonly QuorumConfig[] {
    return [this.#lastSeen?.members, this.#reported?.members, this.#overruled?.members, ...this.#announced.configs()].filter(
      (config) => config !== undefined,
    );
  }

  /** Activates the latest configuration that enough servers have announced. */
  maybeActivateAnnounced(): boolean {
    if (this.#announced.isEmpty) return false;
    const isKnown = (sid: Sid) => this.isMember(sid) || this.#overruled?.members.servers.has(sid) === true;
    const latest = this.#announced.latestConfirmed(this.#options.sid, this.#active, this.#lastSeen?.text, isKnown);
    return latest !== undefined && this.#maybeActivate(latest);
  }

  /**
   * `from` has this text in its log as a configuration that may not be committed; undefined if it
   * has none. The others may need this server's vote: under that configuration, or for a server that
   * may lead under it only. See `ReportedQuorum`. It is only a report: this server forgets it when
   * voters no longer say so. Returns whether another one counts now.
   */
  maybeNotePending(from: Sid, text: string | undefined): boolean {
    if (this.isMember(from)) this.#announced.notePending(from, text === undefined ? undefined : this.#read(text)?.version);
    if (!this.#active.verifier.isVoter(from)) return false;
    if (text === undefined) this.#pendingTexts.delete(from);
    else this.#pendingTexts.set(from, text);
    const before = this.#reported?.text;
    this.#updateQuorum();
    return this.#reported?.text !== before;
  }

  #forgetReports(): void {
    this.#pendingTexts.clear();
    if (this.#reported !== undefined) this.#updateQuorum();
  }

  #latestReported(): VersionedConfig | undefined {
    let latest: VersionedConfig | undefined;
    const ownVersion = this.#lastSeen?.members.version ?? this.version;
    for (const text of this.#pendingTexts.values()) {
      const config = this.#read(text);
      if (config !== undefined && config.version > (latest?.members.version ?? ownVersion)) latest = this.#versioned(config);
    }
    return latest;
  }

  // ---- the tree

  /**
   * Reads the last seen configuration anew: the log has been replaced or cut, and `tree` is the
   * state after it. If the log has one that is later than the active one and was replaced, the files
   * of this server are older than its log, and that one is active. Returns whether there is another
   * than before.
   */
  readFrom(tree: DataTree): boolean {
    if (!this.#options.reconfigEnabled) return false;
    const before = [this.text, this.#lastSeen?.text];
    const replaced = this.#replacedIn(tree);
    if (replaced !== undefined) {
      this.#overruled = this.#active;
      this.#active = replaced;
    }
    this.#lastSeen = this.#laterIn(tree);
    this.#updateQuorum();
    return this.text !== before[0] || this.#lastSeen?.text !== before[1];
  }

  /**
   * The configuration that the last reconfig in the log has replaced, if it is later than the active
   * one. No leader proposes another before the last is committed.
   */
  #replacedIn(tree: DataTree): VersionedConfig | undefined {
    if (!this.#options.reconfigEnabled || tree.replacedConfig === undefined) return undefined;
    const config = this.#read(tree.replacedConfig);
    // A snapshot may have had the later one already.
    const wasReplaced = config !== undefined && config.version < (this.#configIn(tree)?.version ?? 0);
    return wasReplaced && config.version > this.version ? this.#versioned(config) : undefined;
  }

  /** The configuration in the tree, if it is later than the active one and may have an effect. */
  #laterIn(tree: DataTree): VersionedConfig | undefined {
    if (!this.#options.reconfigEnabled) return undefined;
    const config = this.#configIn(tree);
    return config !== undefined && config.version > this.version ? this.#versioned(config) : undefined;
  }

  #configIn(tree: DataTree): QuorumConfig | undefined {
    const node = tree.find(systemPath.config);
    return node === 0 ? undefined : this.#read(tree.dataOf(node)?.toString('utf8') ?? '');
  }

  /** Shows the active configuration in /zookeeper/config, unless that is of a later txn. */
  storeIn(tree: DataTree): void {
    if (this.#options.reconfigEnabled) {
      const shown = this.#configIn(tree);
      if (shown !== undefined && shown.version >= this.version && shown.version !== 0) return;
    }
    tree.setConfig(this.text, this.version);
  }

  // ---- a leader

  /**
   * The configuration that a leader sends in NEWLEADER, before it serves: it completes a last seen
   * one, and assigns the first version. It activates it once a quorum has acknowledged it.
   */
  newLeaderConfig(epoch: number): string {
    if (this.#lastSeen !== undefined) return this.#lastSeen.text;
    if (!this.#options.reconfigEnabled || this.version !== 0) return this.text;
    return formatQuorumConfig({ ...this.members, version: makeZxid(epoch, 0) });
  }

  /** The last seen configuration's text, or else that of the active one. */
  get latestText(): string {
    return this.#lastSeen?.text ?? this.text;
  }

  /**
   * The configuration that a request asks for, with its txn's zxid as its version; or why it is
   * refused. `hasQuorum` tells whether the servers that are in step now are a quorum.
   */
  prepareReconfig(request: ReconfigRequest, zxid: Zxid, hasQuorum: (verifier: QuorumVerifier) => boolean): QuorumConfig | ErrorCode {
    if (this.#lastSeen !== undefined) return ErrorCode.ReconfigInProgress;
    if (request.curConfigId !== -1 && request.curConfigId !== this.version) return ErrorCode.BadVersion;
    const { standaloneEnabled = true, multiAddressEnabled = false } = this.#options;
    const next = nextConfig(this.members, request, { version: zxid, votersMin: standaloneEnabled ? 2 : 1, multiAddressEnabled });
    if (typeof next === 'number') return next;
    const versioned = this.#readVersioned(next);
    if (versioned === undefined) return ErrorCode.BadArguments;
    return hasQuorum(versioned.verifier) ? next : ErrorCode.NewConfigNoQuorum;
  }

  // ---- the oracle

  /**
   * Passes on the answer of the oracle of an ensemble of two: whether this server may continue
   * without the other. Returns whether the configuration has an oracle.
   */
  oracleAnswered(canServeAlone: boolean): boolean {
    if (this.#options.hasOracle !== true) return false;
    this.#canServeAlone = canServeAlone;
    for (const oracle of this.#oracles()) oracle.oracleAnswered(canServeAlone);
    return true;
  }

  /**
   * Notes which voters follow this server, which leads, and are in step. Returns whether the oracle
   * must be asked again: the other of two voters is lost, and the earlier answer is void.
   */
  setFollowers(followers: ReadonlySet<Sid>): boolean {
    this.#followers = followers;
    let isOtherLost = false;
    for (const oracle of this.#oracles()) if (oracle.setFollowers(followers)) isOtherLost = true;
    if (isOtherLost) this.oracleAnswered(false);
    return isOtherLost;
  }

  *#oracles(): Generator<OracleQuorum> {
    for (const config of [this.#active, this.#lastSeen]) if (config?.verifier instanceof OracleQuorum) yield config.verifier;
  }

  fingerprint(to: Fingerprint): void {
    to.text(this.text);
    to.text(this.#lastSeen?.text ?? '');
    to.text(this.#overruled?.text ?? '');
    this.#announced.fingerprint(to);
    to.text(this.#reported?.text ?? '');
    for (const [sid, text] of [...this.#pendingTexts].sort(([a], [b]) => a - b)) {
      to.number(sid);
      to.text(text);
    }
    if (this.#options.hasOracle !== true) return;
    to.number(this.#canServeAlone ? 1 : 0);
    for (const sid of [...this.#followers].sort((a, b) => a - b)) to.number(sid);
  }

  // ---- forms

  #updateQuorum(): void {
    this.#reported = this.#latestReported();
    const { verifier } = this.#active;
    const own = this.#lastSeen === undefined ? verifier : new JointQuorum(verifier, this.#lastSeen.verifier);
    this.#quorum.replace(this.#reported === undefined ? own : new ReportedQuorum(own, this.#reported.verifier));
  }

  /** The configuration in a text; undefined if no server could use it. */
  #read(text: string): QuorumConfig | undefined {
    try {
      const config = parseQuorumConfig(text);
      return this.#readVersioned(config)?.members;
    } catch (error) {
      if (error instanceof QuorumConfigError) return undefined;
      throw error;
    }
  }

  /** Of one from outside; undefined if it has no quorum, as one without a voter has none. */
  #readVersioned(config: QuorumConfig): VersionedConfig | undefined {
    const versioned = this.#versioned(config);
    return versioned.verifier.voters.some((sid) => versioned.verifier.weight(sid) > 0) ? versioned : undefined;
  }

  #versioned(members: QuorumConfig): VersionedConfig {
    const majority = verifierOf(members);
    if (this.#options.hasOracle !== true) return { members, text: formatQuorumConfig(members), verifier: majority };
    const oracle = new OracleQuorum(this.#options.sid, majority.voters);
    oracle.setFollowers(this.#followers);
    oracle.oracleAnswered(this.#canServeAlone);
    return { members, text: formatQuorumConfig(members), verifier: oracle };
  }
}

/** The part of a configuration that determines the quorums and the addresses of the voters. */
function votingConfigText({ servers, groups, weights }: QuorumConfig): string {
  const voters = new Map<Sid, QuorumServer>();
  for (const { sid, addresses, role } of servers.values()) if (role === 'participant') voters.set(sid, { sid, addresses, role });
  return formatQuorumConfig({ version: 0, servers: voters, groups, weights });
}

function votersOf({ servers }: QuorumConfig): string {
  return [...servers.values()]
    .filter(isParticipant)
    .map(({ sid }) => sid)
    .sort((a, b) => a - b)
    .join(', ');
}

/**
 * Whether a server that leads under `before` may go on under `after`: it votes, and its learners
 * reach it at the same quorum addresses.
 */
export function canLeadOn(sid: Sid, before: QuorumConfig, after: QuorumConfig): boolean {
  const [old, next] = [before.servers.get(sid), after.servers.get(sid)];
  return next?.role === 'participant' && (old === undefined || quorumAddressesOf(old) === quorumAddressesOf(next));
}

function quorumAddressesOf({ addresses }: QuorumServer): string {
  return addresses
    .map(({ host, quorumPort }) => `${host}:${quorumPort}`)
    .sort()
    .join('|');
}
