/**
 * The other servers that the election port knows: those of the configuration, and a limited number
 * of others that have connected by themselves, such as observers without a number and servers that
 * are about to be added.
 *
 * Connections survive a change of the configuration: a removed server still has to get messages. It
 * becomes one of the others, and is forgotten when its connection closes.
 */
import { type HostPort, InitialMessageVersion, type Sid, writeInitialMessage, Writer } from '@tskeeper/protocol';
import type { PeerServer } from '../peer-server.ts';
import { ElectionLink } from './election-link.ts';
import type { ElectionPortOptions } from './election-port-options.ts';

export class ElectionLinkTable {
  readonly #options: ElectionPortOptions;
  readonly #links = new Map<Sid, ElectionLink>();
  #unknownPeerCount = 0;
  /** Links with work for the end of the turn. */
  #dirty: ElectionLink[] = [];
  /**
   * The addresses of this server. One that a reconfiguration has removed keeps its last ones, as its
   * port keeps listening there: without an address no server would accept its connections.
   */
  #ownAddresses: readonly HostPort[] = [];
  /** The initial message of this server, which names its own addresses. */
  #initialMessage: Buffer;

  constructor(options: ElectionPortOptions, servers: readonly PeerServer[]) {
    this.#options = options;
    this.#initialMessage = this.#applyServers(servers);
  }

  get initialMessage(): Buffer {
    return this.#initialMessage;
  }

  /** Number of servers outside the configuration. */
  get unknownPeerCount(): number {
    return this.#unknownPeerCount;
  }

  get(sid: Sid): ElectionLink | undefined {
    return this.#links.get(sid);
  }

  values(): Iterable<ElectionLink> {
    return this.#links.values();
  }

  /** Sets another configuration. The caller forgets the links that this leaves without a use. */
  setServers(servers: readonly PeerServer[]): void {
    this.#initialMessage = this.#applyServers(servers);
  }

  #applyServers(servers: readonly PeerServer[]): Buffer {
    for (const link of this.#links.values()) {
      if (!link.isConfigured) continue;
      link.isConfigured = false;
      link.addresses = [];
      this.#unknownPeerCount++;
    }
    for (const { sid, electionAddresses } of servers) {
      if (sid === this.#options.sid) {
        this.#ownAddresses = electionAddresses;
        continue;
      }
      let link = this.#links.get(sid);
      if (link === undefined) this.#links.set(sid, (link = new ElectionLink(sid)));
      else if (!link.isConfigured) this.#unknownPeerCount--;
      link.isConfigured = true;
      link.addresses = electionAddresses;
    }
    return initialMessageOf(this.#options, this.#ownAddresses);
  }

  /**
   * The server's link; a new one for a server that is not in the configuration, unless there are
   * too many of those.
   */
  maybeAdd(sid: Sid): ElectionLink | undefined {
    let link = this.#links.get(sid);
    if (link !== undefined || this.#unknownPeerCount >= this.#options.unknownPeersMax) return link;
    this.#unknownPeerCount++;
    this.#links.set(sid, (link = new ElectionLink(sid)));
    return link;
  }

  /**
   * Forgets a server outside the configuration that has no connection: it can only be reached over
   * one that it has made. Returns whether the link was removed.
   */
  maybeForget(link: ElectionLink): boolean {
    if (link.isConfigured || link.cnxn !== undefined || link.dial !== undefined || link.isDirty) return false;
    if (this.#links.get(link.sid) !== link) return false;
    this.#links.delete(link.sid);
    this.#unknownPeerCount--;
    return true;
  }

  /** The link has something to send, or needs a dial, at the end of the turn. */
  markDirty(link: ElectionLink): void {
    if (link.isDirty) return;
    link.isDirty = true;
    this.#dirty.push(link);
  }

  takeDirty(): readonly ElectionLink[] {
    const dirty = this.#dirty;
    this.#dirty = [];
    return dirty;
  }
}

function initialMessageOf({ sid, multiAddressEnabled }: ElectionPortOptions, own: readonly HostPort[]): Buffer {
  const { oneAddress, addresses } = InitialMessageVersion;
  const writer = new Writer(64);
  if (multiAddressEnabled) writeInitialMessage(writer, { sid, protocolVersion: addresses, addresses: own });
  else writeInitialMessage(writer, { sid, protocolVersion: oneAddress, addresses: own.slice(0, 1) });
  return Buffer.from(writer.written());
}
