/**
 * The ports of a server and the configuration of its ensemble: which servers are dialled, and at
 * which addresses this server listens. A reconfiguration changes both while the server runs.
 *
 * A new address is bound before the old one is given up, so a port that is in use or a name that
 * does not resolve leaves the server reachable as before; the log says so. See replace-listeners for
 * addresses of one port, which may exclude each other.
 */
import type { MembershipListener, Now, Peer } from '@tskeeper/core';
import { formatHostPort, type HostPort, isWildcardHost, type QuorumConfig, type QuorumServer, type Sid } from '@tskeeper/protocol';
import type { Logger } from './logger.ts';
import type { Listener, Network } from './network.ts';
import { ownAddresses } from './own-addresses.ts';
import type { ElectionPort } from './ports/election/election-port.ts';
import type { LearnerPort } from './ports/learner/learner-port.ts';
import type { PeerServer } from './ports/peer-server.ts';
import { overlap } from './ports/replace-listeners.ts';

export interface MembershipPortsDependencies {
  readonly sid: Sid;
  readonly members: QuorumConfig;
  /** One that may become active, and may add this server. */
  readonly lastSeen: QuorumConfig | undefined;
  readonly listensOnAllIps: boolean;
  readonly electionPort: ElectionPort;
  readonly learnerPort: LearnerPort;
  /** Where followers accept observers; undefined: they do not. */
  readonly observerMasterPort: number | undefined;
  readonly network: Pick<Network, 'resolve'>;
  readonly logger: Logger;
  /** Runs work in a turn of its own. */
  readonly runTurn: (work: (now: Now) => void) => void;
  /** The configuration gives this server another address for its clients. */
  readonly clientAddressChanged: (address: HostPort) => void;
}

export class MembershipPorts implements MembershipListener {
  readonly #dependencies: MembershipPortsDependencies;
  #members: QuorumConfig;
  /** This server's line in the last configuration that had it: a removed server keeps its ports. */
  #own: QuorumServer | undefined;
  /** By address: where the election port listens. */
  readonly #listeners = new Map<string, Listener>();
  /** The changes of the election port's addresses, one after the other. */
  #relistening: Promise<void> = Promise.resolve();
  #isShutDown = false;
  #listensFor: Peer['acceptedLearners'] = 'none';
  /** Incremented whenever this server starts or stops to accept learners. */
  #listenGeneration = 0;

  constructor(dependencies: MembershipPortsDependencies) {
    this.#dependencies = dependencies;
    this.#members = dependencies.members;
    const { members, lastSeen, sid } = dependencies;
    this.#own = members.servers.get(sid) ?? lastSeen?.servers.get(sid);
  }

  /** The active configuration. */
  get members(): QuorumConfig {
    return this.#members;
  }

  changed(active: QuorumConfig, others: readonly QuorumConfig[]): void {
    const { sid, electionPort, learnerPort, clientAddressChanged } = this.#dependencies;
    const before = this.#members.servers.get(sid)?.clientAddress;
    const observersBefore = this.#addresses?.observerMaster;
    this.#own = active.servers.get(sid) ?? this.#own;
    // It introduces itself with its own addresses, also while no configuration has it.
    const { observerMasterPort } = this.#dependencies;
    const servers = peerServersOf(this.#own === undefined ? active : withServer(active, this.#own), others, observerMasterPort);
    electionPort.setServers(servers);
    learnerPort.setServers(servers);
    this.#members = active;
    // The next `followRole` listens at the new address.
    if (this.#listensFor === 'observers' && !isSame(observersBefore, this.#addresses?.observerMaster)) this.#stopListening();
    const after = active.servers.get(sid)?.clientAddress;
    if (after !== undefined && (before === undefined || formatHostPort(before) !== formatHostPort(after))) clientAddressChanged(after);
    this.#relistening = this.#relistening.then(() => this.#followElectionAddresses());
  }

  // --- The election port

  /**
   * Lets other servers send their votes to this one. Rejects with a sentence for the operator when
   * the port cannot be bound.
   */
  async listen(): Promise<void> {
    for (const address of this.#addresses?.election ?? []) await this.#listenForVotes(address);
  }

  async #listenForVotes(address: HostPort): Promise<void> {
    const listener = await this.#dependencies.electionPort.listen(address);
    if (listener !== undefined) this.#listeners.set(formatHostPort(address), listener);
  }

  async #followElectionAddresses(): Promise<void> {
    const wanted = this.#addresses?.election;
    if (wanted === undefined || this.#isShutDown || this.#listeners.size === 0) return;
    const names = new Set(wanted.map(formatHostPort));
    try {
      for (const address of wanted) {
        if (this.#listeners.has(formatHostPort(address)) || (await this.#maybeRename(address, names))) continue;
        if (!(await this.#maybeReplace(address, names))) await this.#listenForVotes(address);
      }
    } catch (error) {
      if (this.#isShutDown) return;
      this.#dependencies.logger.error(
        `${messageOf(error)} Other servers do not reach this one at its new address: free the port, and restart it.`,
        {
          event: 'port.unavailable',
          reason: messageOf(error),
        },
      );
      return;
    }
    for (const [name, listener] of this.#listeners) {
      if (names.has(name)) continue;
      this.#listeners.delete(name);
      await this.#dependencies.electionPort.stopListeningAt(listener);
    }
  }

  /**
   * Where a server gets another name of an address at which it listens already, nothing is bound.
   * Returns whether that is so.
   */
  async #maybeRename({ host, port }: HostPort, wanted: ReadonlySet<string>): Promise<boolean> {
    const unwanted = [...this.#listeners].filter(([name, { endpoint }]) => !wanted.has(name) && endpoint.port === port);
    if (unwanted.length === 0 || isWildcardHost(host)) return false;
    // One that does not resolve yet is waited for when it is bound.
    const addresses = await this.#dependencies.network.resolve(host).catch(() => []);
    const renamed = unwanted.find(([, { endpoint }]) => endpoint.address === addresses[0]);
    if (renamed === undefined) return false;
    this.#listeners.delete(renamed[0]);
    this.#listeners.set(formatHostPort({ host, port }), renamed[1]);
    return true;
  }

  /**
   * Between one address and all addresses of the same port one listener is replaced by another.
   * Returns whether that is so. Rejects if the new address cannot be bound.
   */
  async #maybeReplace(address: HostPort, wanted: ReadonlySet<string>): Promise<boolean> {
    const asked = { port: address.port, address: isWildcardHost(address.host) ? undefined : address.host };
    const old = [...this.#listeners].filter(([name, { endpoint }]) => !wanted.has(name) && overlap(endpoint, asked));
    if (old.length === 0) return false;
    const replacement = await this.#dependencies.electionPort.replace(
      old.map(([, listener]) => listener),
      address,
    );
    if (replacement?.kind === 'kept') {
      for (const [at, [name]] of old.entries()) this.#listeners.set(name, replacement.listeners[at]!);
      throw replacement.error;
    }
    for (const [name] of old) this.#listeners.delete(name);
    if (replacement !== undefined) this.#listeners.set(formatHostPort(address), replacement.listener);
    return true;
  }

  // --- The quorum port, and the port for observers

  /**
   * Listens for learners while this server leads or tries to, and for observers while it follows
   * and accepts them. A refused learner connects again a moment later; a learner accepted by a
   * server that does not lead would give up the leader it has found.
   */
  followRole(peer: Peer): void {
    const { acceptedLearners } = peer;
    if (acceptedLearners === this.#listensFor || this.#isShutDown) return;
    if (this.#listensFor !== 'none') this.#stopListening();
    this.#listensFor = acceptedLearners;
    this.#listenGeneration++;
    if (acceptedLearners !== 'none') void this.#listenForLearners(peer, acceptedLearners, this.#listenGeneration);
  }

  #stopListening(): void {
    this.#listensFor = 'none';
    void this.#dependencies.learnerPort.stopListening();
  }

  async #listenForLearners(peer: Peer, accepted: 'all' | 'observers', generation: number): Promise<void> {
    const { learnerPort, logger, runTurn } = this.#dependencies;
    const addresses = this.#addresses;
    try {
      for (const address of (accepted === 'all' ? addresses?.quorum : addresses?.observerMaster) ?? []) {
        if (generation === this.#listenGeneration) await learnerPort.listen(address, accepted === 'all' ? 'quorum' : 'observer master');
      }
    } catch (error) {
      if (generation !== this.#listenGeneration || this.#isShutDown) return;
      const consequence = accepted === 'all' ? 'This server cannot lead without it.' : 'This server accepts no observers without it.';
      logger.error(`${messageOf(error)} ${consequence}`, { event: 'port.unavailable', reason: messageOf(error) });
      if (accepted === 'all') runTurn((now) => peer.stepDown('its quorum port cannot be bound', now));
    }
  }

  shutDown(): void {
    this.#isShutDown = true;
  }

  get #addresses() {
    const { sid, listensOnAllIps, observerMasterPort } = this.#dependencies;
    return this.#own && ownAddresses(withServer(this.#members, this.#own), sid, listensOnAllIps, observerMasterPort);
  }
}

/**
 * The servers of all these configurations. A server that moves is dialled at its present addresses
 * first, and then at its next ones.
 */
export function peerServersOf(active: QuorumConfig, others: readonly QuorumConfig[], observerMasterPort?: number): PeerServer[] {
  const configs = [active, ...others];
  const sids = new Set(configs.flatMap(({ servers }) => [...servers.keys()]));
  return [...sids].map((sid) => {
    const all = configs.flatMap(({ servers }) => servers.get(sid)?.addresses ?? []);
    return {
      sid,
      electionAddresses: unique(all.map(({ host, electionPort }) => ({ host, port: electionPort }))),
      quorumAddresses: unique(all.map(({ host, quorumPort }) => ({ host, port: quorumPort }))),
      observerMasterAddresses: observerMasterPort === undefined ? [] : unique(all.map(({ host }) => ({ host, port: observerMasterPort }))),
    };
  });
}

function isSame(one: readonly HostPort[] = [], other: readonly HostPort[] = []): boolean {
  return one.map(formatHostPort).join() === other.map(formatHostPort).join();
}

function withServer(config: QuorumConfig, server: QuorumServer): QuorumConfig {
  return { ...config, servers: new Map([...config.servers, [server.sid, server]]) };
}

function unique(addresses: readonly HostPort[]): HostPort[] {
  return [...new Map(addresses.map((address) => [formatHostPort(address), address])).values()];
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
