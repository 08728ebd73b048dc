/**
 * Later configurations that other servers have announced to one that looks for a leader.
 *
 * A server that was down during a reconfiguration learns of it in this way. It does not take the
 * word of one server out of many: a single one that lies, or was copied from another ensemble, should
 * not decide who votes. A configuration counts once a quorum of it has announced it, and a server that
 * this one knows: strangers could announce one in which only they vote. The server may know only one
 * of the voters, or one that was removed, so it asks the others itself, at the addresses that were
 * announced.
 *
 * A server that has a later configuration in its log has had this one before, and counts as well: it
 * started with older files. Otherwise servers whose files were lost could not learn of it from the last one
 * that has kept them, which follows none of them.
 *
 * Of two voters with an oracle one may be all that is left, and has announced it if it leads.
 *
 * A server that votes there counts itself. Otherwise two voters, or three of which one is down, could
 * never go on after one of them had missed the change.
 */
import { formatQuorumConfig, isParticipant, type QuorumConfig, type Sid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import type { QuorumVerifier } from './quorum-verifier.ts';

interface Announcement {
  readonly config: QuorumConfig;
  readonly verifier: QuorumVerifier;
  readonly announcers: Set<Sid>;
}

/** How many different configurations are kept: any server can announce any number. */
const announcementsMax = 4;

export class ConfigAnnouncements {
  /** By their texts. */
  readonly #announcements = new Map<string, Announcement>();
  /** The versions of configurations that others have in their logs, and may not have activated. */
  readonly #pendingVersions = new Map<Sid, number>();

  /**
   * Notes an announcement. One of a server that has no vote in it, as of one that was removed, does
   * not count, but says whom to ask. Returns whether the configuration is new.
   */
  add(from: Sid, config: QuorumConfig, verifier: QuorumVerifier): boolean {
    const text = formatQuorumConfig(config);
    for (const { announcers } of this.#announcements.values()) announcers.delete(from);
    let announcement = this.#announcements.get(text);
    const isNew = announcement === undefined;
    if (announcement === undefined) {
      if (this.#announcements.size >= announcementsMax) this.#announcements.delete(this.#leastAnnounced());
      this.#announcements.set(text, (announcement = { config, verifier, announcers: new Set() }));
    }
    announcement.announcers.add(from);
    return isNew;
  }

  #leastAnnounced(): string {
    return [...this.#announcements].reduce((least, each) => (each[1].announcers.size < least[1].announcers.size ? each : least))[0];
  }

  /** A server that this one knows has a configuration of this version in its log; undefined: none later than its active one. */
  notePending(from: Sid, version: number | undefined): void {
    if (version === undefined) this.#pendingVersions.delete(from);
    else this.#pendingVersions.set(from, version);
  }

  clear(): void {
    this.#announcements.clear();
    this.#pendingVersions.clear();
  }

  get isEmpty(): boolean {
    return this.#announcements.size === 0;
  }

  /** Every announced configuration. */
  configs(): QuorumConfig[] {
    return [...this.#announcements.values()].map(({ config }) => config);
  }

  /** The voters of all that is announced: they are asked what they know. */
  voters(): Sid[] {
    return [...new Set(this.configs().flatMap(({ servers }) => [...servers.values()].filter(isParticipant).map(({ sid }) => sid)))];
  }

  /**
   * The latest configuration after the active one that a quorum of it, this server included, and a
   * server that `isKnown` have announced or had, or a quorum of the active one, or whose text this server has in its own log.
   * If only the version is another, as after a restart with the operator's file, the word of one known
   * server is enough: the quorums are the same.
   */
  latestConfirmed(
    own: Sid,
    { members: active, verifier: activeVerifier }: { readonly members: QuorumConfig; readonly verifier: QuorumVerifier },
    loggedText: string | undefined,
    isKnown: (sid: Sid) => boolean,
  ): QuorumConfig | undefined {
    let latest: QuorumConfig | undefined;
    for (const [text, { config, verifier, announcers }] of this.#announcements) {
      if (config.version <= (latest?.version ?? active.version)) continue;
      const isSame = formatQuorumConfig({ ...active, version: config.version }) === text;
      const hadIt = (sid: Sid) => (this.#pendingVersions.get(sid) ?? 0) > config.version;
      const vouches = (sid: Sid) => announcers.has(sid) || hadIt(sid);
      const isVouchedFor = activeVerifier.containsQuorum({ has: (sid: Sid) => sid !== own && vouches(sid) });
      const agrees = { has: (sid: Sid) => sid === own || vouches(sid) };
      const mayBeAlone = verifier.mayLackMajority && [...announcers].some((sid) => verifier.isVoter(sid));
      const isConfirmed = (isSame || mayBeAlone || verifier.containsQuorum(agrees)) && [...announcers].some(isKnown);
      if (text === loggedText || isVouchedFor || isConfirmed) latest = config;
    }
    return latest;
  }

  fingerprint(to: Fingerprint): void {
    for (const [text, { announcers }] of [...this.#announcements].sort(([a], [b]) => (a < b ? -1 : 1))) {
      to.text(text);
      for (const sid of [...announcers].sort((a, b) => a - b)) to.number(sid);
    }
    for (const [sid, version] of [...this.#pendingVersions].sort(([a], [b]) => a - b)) {
      to.number(sid);
      to.number(version);
    }
  }
}
