/**
 * The election port: notifications from and to the other servers of the ensemble, over one
 * connection for each pair.
 *
 * Either side may dial. Of the two possible connections the one dialled by the larger sid is kept:
 * a server dialled by a smaller one closes that connection and dials back, and one that has dialled
 * a larger one closes as soon as it has introduced itself. For the smaller server a dial is
 * therefore a request to be dialled.
 *
 * Only the newest message to a server counts, so at most one waits for it. A message may be lost
 * with a connection, without a sign of it; so the last one is sent again over each new connection.
 *
 * The core learns when a server is down (`unreachable`): its connection has closed, and another
 * dial was refused. That is why a closed connection is followed by a dial at once;
 * docs/internals/election.md describes what depends on it. Where a proxy or a tunnel accepts in
 * place of the server, no dial is refused: a connection that is closed before any message has
 * arrived counts as a refusal too, and only the first message of the other side proves that it can
 * be reached.
 *
 * The owner drives it in turns, as the client port: events as they occur, then `endTurn` once.
 * Nothing is dialled or sent before that, and the core is never called from inside a call of its
 * own.
 */
import type { ElectionLinks, Now, Observer } from '@tskeeper/core';
import {
  type HostPort,
  type InitialMessage,
  InitialMessageVersion,
  type Millis,
  type Notification,
  ProtocolError,
  Reader,
  readNotification,
  type Sid,
  writeInitialMessage,
  writeNotification,
  Writer,
} from '@tskeeper/protocol';
import type { Clock } from '../clock.ts';
import type { Logger } from '../logger.ts';
import type { Endpoint, Listener, Network, ReceivedBatch, StreamId } from '../network.ts';
import { Dialler, type DialOutcome } from './dialler.ts';
import { ElectionCnxn, ElectionLink } from './election-link.ts';
import { RateLimitedLog } from './rate-limited-log.ts';
import type { ElectionCore, PeerServer } from './peer-core.ts';
import { PeerStreams } from './peer-streams.ts';
import { SendList } from './send-list.ts';

export interface ElectionPortOptions {
  /** myid. */
  readonly sid: Sid;
  /** zookeeper.cnxTimeout: for one look-up of a name, or for connecting to one address. */
  readonly cnxTimeoutMs: Millis;
  /**
   * zookeeper.quorumCnxnTimeoutMs, or tickTime x syncLimit: limit for the introduction of a
   * dialling server.
   */
  readonly initialMessageTimeoutMs: Millis;
  /**
   * multiAddress.enabled: the initial message contains all addresses of this server and not just
   * the first.
   */
  readonly multiAddressEnabled: boolean;
  /** zookeeper.electionPortBindRetry: number of tries to listen; 0 = no limit. */
  readonly bindTriesMax: number;
  /** Limit of connections that have not introduced themselves. */
  readonly halfOpenMax: number;
  /**
   * Limit of connected servers outside the configuration: observers without a number, servers that
   * are about to be added.
   */
  readonly unknownPeersMax: number;
  /** Messages of one connection before another gets its turn. */
  readonly messagesPerQuantum: number;
}

/** ZooKeeper's values with a tick of 2 s, where it has any. */
export const electionPortDefaults = {
  cnxTimeoutMs: 5000,
  initialMessageTimeoutMs: 10_000,
  multiAddressEnabled: false,
  bindTriesMax: 3,
  halfOpenMax: 256,
  unknownPeersMax: 256,
  messagesPerQuantum: 64,
} as const satisfies Omit<ElectionPortOptions, 'sid'>;

export interface ElectionPortDependencies {
  readonly network: Network;
  readonly clock: Pick<Clock, 'now' | 'after'>;
  readonly options: ElectionPortOptions;
  readonly limitObserver: Pick<Observer, 'limitReached'>;
  readonly logger: Logger;
  /** Runs work in a turn of its own, `endTurn` included. */
  readonly runTurn: (work: (now: Now) => void) => void;
}

/**
 * A server that was asked to dial back has this long before it is asked again. Being asked makes it
 * drop its connection, so two servers that ask and answer at the same time could go on for ever.
 */
const dialBackIntervalMs: Millis = 500;
/**
 * A server whose connections close as soon as they are made is not dialled for each of them at
 * once.
 */
const redialPauseMs: Millis = 1000;
/**
 * A connection that has been silent this long is replaced when there is something to send: the
 * intermediary that accepted it may have lost its way to the server.
 */
const silentCnxnMs: Millis = 1000;

export class ElectionPort implements ElectionLinks {
  readonly #network: Network;
  #core!: ElectionCore;
  readonly #options: ElectionPortOptions;
  readonly #limitObserver: Pick<Observer, 'limitReached'>;
  readonly #log: RateLimitedLog;
  readonly #dialler: Dialler;

  readonly #cnxns: PeerStreams<ElectionCnxn>;

  readonly #links = new Map<Sid, ElectionLink>();
  /** Servers to be dialled later. */
  readonly #postponedDials = new Set<ElectionLink>();
  /**
   * Servers that were asked to dial back over a connection that they, or an intermediary, have
   * ended: the request has arrived.
   */
  readonly #awaitingDialBack = new Set<ElectionLink>();
  #unknownPeerCount = 0;
  #dirty: ElectionLink[] = [];
  /** Connections that close once their output has been sent. */
  #closingCnxns: ElectionCnxn[] = [];
  #initialMessage: Buffer;

  readonly #reader = new Reader();
  readonly #sends = new SendList();
  /** The last encoded notification: the same one goes to every server. */
  #encoded: { readonly notification: Notification; readonly frame: Buffer } | undefined;
  #cnxnsMade = 0;
  #nextAnonymous: Sid = -1;
  #feeding: ElectionCnxn | undefined;
  #quantumMessagesLeft = 0;
  #now: Now = { elapsedMs: 0, wallMs: 0 };
  #needsTurn = false;
  #isShutDown = false;

  readonly #onFrame = (reader: Reader): boolean => this.#onNotificationFrame(reader);

  constructor(parts: ElectionPortDependencies, servers: readonly PeerServer[]) {
    this.#network = parts.network;
    this.#options = parts.options;
    this.#limitObserver = parts.limitObserver;
    this.#log = new RateLimitedLog(parts.logger);
    this.#dialler = new Dialler(parts);
    const { bindTriesMax, halfOpenMax, initialMessageTimeoutMs } = parts.options;
    const { network, clock } = parts;
    this.#cnxns = new PeerStreams(
      { network, clock, log: this.#log, portName: 'election port', bindTriesMax, halfOpenMax, halfOpenTimeoutMs: initialMessageTimeoutMs },
      {
        createStream: (stream, remote, sinceMs) => new ElectionCnxn(stream, remote, sinceMs, this.#cnxnsMade++, this.#reader),
        receive: (cnxn, bytes, start, end) => this.#receive(cnxn, bytes, start, end),
        resume: (cnxn) => this.#feed(cnxn, undefined),
        onClosing: (cnxn) => this.#closing(cnxn),
      },
    );
    this.#initialMessage = this.#applyServers(servers);
  }

  // --- The configuration

  /**
   * Sets another configuration. Connections stay: a removed server still has to get messages, and
   * is forgotten when it closes. The next dial uses new addresses.
   */
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
    let own: readonly HostPort[] = [];
    for (const { sid, electionAddresses } of servers) {
      if (sid === this.#options.sid) {
        own = electionAddresses;
        continue;
      }
      let link = this.#links.get(sid);
      if (link === undefined) this.#links.set(sid, (link = new ElectionLink(sid)));
      else if (!link.isConfigured) this.#unknownPeerCount--;
      link.isConfigured = true;
      link.addresses = electionAddresses;
    }
    for (const link of this.#links.values()) this.#maybeForget(link);
    const { oneAddress, addresses } = InitialMessageVersion;
    const { sid, multiAddressEnabled } = this.#options;
    const writer = new Writer(64);
    if (multiAddressEnabled) writeInitialMessage(writer, { sid, protocolVersion: addresses, addresses: own });
    else writeInitialMessage(writer, { sid, protocolVersion: oneAddress, addresses: own.slice(0, 1) });
    return Buffer.from(writer.written());
  }

  /**
   * Sets the core that this port delivers to. It is made after the port, which it writes to at
   * once.
   */
  attach(core: ElectionCore): void {
    this.#core = core;
  }

  // --- Listening

  /**
   * Listens on one of this server's election addresses; see `PeerStreams.listen`. When it rejects
   * the owner has to end the process: a server that cannot be dialled must not vote.
   */
  listen(address: HostPort): Promise<Listener | undefined> {
    return this.#cnxns.listen(address);
  }

  owns(listener: Listener): boolean {
    return this.#cnxns.owns(listener);
  }

  ownsStream(stream: StreamId): boolean {
    return this.#cnxns.has(stream) || this.#dialler.ownsStream(stream);
  }

  /**
   * Stops dialling and accepting, and closes all connections; output written to them is still sent.
   */
  async shutDown(now: Now): Promise<void> {
    this.#now = now;
    this.#isShutDown = true;
    this.#dialler.cancelAll();
    this.#postponedDials.clear();
    this.#awaitingDialBack.clear();
    for (const link of this.#links.values()) link.dial = link.dialBack = undefined;
    for (const { link } of this.#cnxns.values()) if (link !== undefined) this.#flushLink(link);
    await this.#cnxns.shutDown(now);
  }

  // --- What the network reports

  accepted(stream: StreamId, listener: Listener, remote: Endpoint, now: Now): void {
    this.#now = now;
    this.#cnxns.accepted(stream, listener, remote, now);
  }

  connected(stream: StreamId, now: Now): void {
    this.#now = now;
    this.#dialler.connected(stream, now);
  }

  /** Takes the connections of this port out of the batch and ignores the others. */
  received(batch: ReceivedBatch, now: Now): void {
    this.#now = now;
    this.#cnxns.received(batch, now);
  }

  drained(stream: StreamId, now: Now): void {
    this.#now = now;
    const cnxn = this.#cnxns.get(stream);
    if (cnxn === undefined || !cnxn.writePending) return;
    cnxn.writePending = false;
    if (cnxn.stage === 'closing') this.#closingCnxns.push(cnxn);
    else if (cnxn.link !== undefined) this.#markDirty(cnxn.link);
  }

  ended(stream: StreamId, now: Now): void {
    this.#now = now;
    const dialBackLink = this.#cnxns.get(stream)?.dialBackLink;
    if (dialBackLink !== undefined && dialBackLink.cnxn === undefined && !dialBackLink.isUnreachableReported) {
      dialBackLink.dialBackDueMs = Math.min(dialBackLink.dialBackDueMs, now.elapsedMs + dialBackIntervalMs);
      this.#awaitingDialBack.add(dialBackLink);
    }
    this.#cnxns.ended(stream, now);
  }

  closed(stream: StreamId, error: string | undefined, now: Now): void {
    this.#now = now;
    const cnxn = this.#cnxns.get(stream);
    if (!this.#cnxns.closed(stream, now)) this.#dialler.closed(stream, error, now);
    else if (error !== undefined && cnxn?.dialBackLink !== undefined && cnxn.dialBackLink.cnxn === undefined)
      this.#closedWithoutMessage(cnxn.dialBackLink, 1);
  }

  // --- What the core asks for

  /** As `ElectionLinks.notify`. */
  notify(to: Sid, notification: Notification): void {
    const link = this.#links.get(to);
    if (link === undefined) {
      if (to !== this.#options.sid) {
        this.#log.warn(this.#now.elapsedMs, `Server ${to} is not in the configuration, so no vote is sent to it.`, {
          event: 'peer.unknown',
          peer: to,
        });
      }
      return;
    }
    if (this.#encoded?.notification !== notification) this.#encoded = { notification, frame: frameOf(notification) };
    link.pendingMessage = link.lastMessage = this.#encoded.frame;
    const { cnxn } = link;
    if (cnxn !== undefined && !cnxn.hasReceived && this.#now.elapsedMs - cnxn.openedMs >= silentCnxnMs) {
      this.#unlink(link);
      this.#close(cnxn);
    }
    link.dialDueMs = -Infinity;
    this.#markDirty(link);
  }

  /**
   * As `ElectionLinks.reconnect`. An earlier connection may work in one direction only; a new one
   * works in both.
   */
  reconnect(sid: Sid): void {
    const link = this.#links.get(sid);
    if (link === undefined) return;
    const { cnxn } = link;
    if (cnxn !== undefined) {
      this.#unlink(link);
      this.#close(cnxn);
    }
    link.dialDueMs = -Infinity;
    this.#markDirty(link);
  }

  // --- Time

  /** When to call `wake` if nothing else happens. */
  deadline(): Millis | undefined {
    let due = Math.min(this.#dialler.deadline() ?? Infinity, this.#cnxns.deadline() ?? Infinity);
    for (const { dialDueMs } of this.#postponedDials) due = Math.min(due, dialDueMs);
    for (const { dialBackDueMs } of this.#awaitingDialBack) due = Math.min(due, dialBackDueMs);
    return due === Infinity ? undefined : due;
  }

  /** There is more work that can be done at once: the owner should run another turn soon. */
  get needsTurn(): boolean {
    return this.#needsTurn;
  }

  /** Gives up on connections and dials whose time is over. */
  wake(now: Now): void {
    this.#now = now;
    this.#dialler.wake(now);
    for (const link of this.#postponedDials) if (link.dialDueMs <= now.elapsedMs) this.#markDirty(link);
    for (const link of this.#awaitingDialBack) if (link.dialBackDueMs <= now.elapsedMs) this.#closedWithoutMessage(link, 2);
    this.#cnxns.wake(now);
  }

  // --- The end of a turn

  /**
   * Feeds connections that had to wait, dials servers that this turn needs, and sends all output at
   * once.
   */
  endTurn(now: Now): void {
    this.#now = now;
    this.#needsTurn = false;
    if (this.#cnxns.resumeStalled()) this.#needsTurn = true;
    const dirty = this.#dirty;
    this.#dirty = [];
    for (const link of dirty) {
      link.isDirty = false;
      if (link.cnxn !== undefined) this.#flushLink(link);
      else if (link.dialDueMs < Infinity) this.#maybeDial(link);
      this.#maybeForget(link);
    }
    this.#send();
    this.#sendEnds();
  }

  /** One write for each stream. */
  #flushLink({ cnxn }: ElectionLink): void {
    if (cnxn === undefined || cnxn.writePending) return;
    const { initialMessage, link } = cnxn;
    const waiting = link!.pendingMessage;
    cnxn.initialMessage = link!.pendingMessage = undefined;
    if (initialMessage !== undefined && waiting !== undefined) this.#sends.add(cnxn.stream, Buffer.concat([initialMessage, waiting]));
    else if (initialMessage !== undefined || waiting !== undefined) this.#sends.add(cnxn.stream, (initialMessage ?? waiting)!);
  }

  #send(): void {
    this.#sends.send(this.#network, (stream) => {
      const cnxn = this.#cnxns.get(stream);
      if (cnxn !== undefined) cnxn.writePending = true;
    });
  }

  #sendEnds(): void {
    const parting = this.#closingCnxns;
    this.#closingCnxns = [];
    for (const cnxn of parting) if (!cnxn.writePending) this.#cnxns.sendEnd(cnxn, this.#now);
  }

  #markDirty(link: ElectionLink): void {
    if (link.isDirty) return;
    link.isDirty = true;
    this.#dirty.push(link);
  }

  // --- Connections

  #receive(cnxn: ElectionCnxn, bytes: Buffer, start: number, end: number): void {
    let at = start;
    if (cnxn.stage === 'half-open') {
      try {
        at = cnxn.initialMessageDecoder.feed(bytes, start, end);
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error;
        this.#closeMalformed(cnxn, error);
        return;
      }
      const { message } = cnxn.initialMessageDecoder;
      if (message === undefined) return;
      this.#onInitialMessage(cnxn, message);
    }
    if (cnxn.stage === 'closing') {
      this.#cnxns.discard(cnxn, end - at, this.#now);
      return;
    }
    if (!cnxn.hasReceived) this.#markReachable(cnxn);
    this.#feed(cnxn, bytes, at, end);
  }

  /** The server is there, and its messages arrive. */
  #markReachable(cnxn: ElectionCnxn): void {
    const link = cnxn.link!;
    cnxn.hasReceived = true;
    link.silentCnxnCount = 0;
    link.isUnreachableReported = true;
    link.lastFailure = '';
    this.#core.reachable(link.sid);
  }

  /** The dialling side has introduced itself. */
  #onInitialMessage(cnxn: ElectionCnxn, { sid, addresses }: InitialMessage): void {
    const { elapsedMs } = this.#now;
    const own = this.#options.sid;
    if (sid === own || (sid !== undefined && sid < 0)) {
      const claim = sid === own ? 'is the number of this server: two servers have one myid, or one dials itself' : 'is not valid';
      this.#log.warn(elapsedMs, `${cnxn.name} was closed: it introduced itself as server ${sid}, which ${claim}.`, {
        event: 'peer.wrong-sid',
        address: cnxn.name,
        peer: sid,
      });
      this.#close(cnxn);
      return;
    }
    const link = this.#linkOf(sid ?? this.#nextAnonymous);
    if (link === undefined) {
      this.#log.warn(
        elapsedMs,
        `${cnxn.name} was closed: ${this.#unknownPeerCount} servers outside the configuration are connected already.`,
        {
          event: 'peer.strangers',
          address: cnxn.name,
          count: this.#unknownPeerCount,
        },
      );
      this.#close(cnxn);
    } else if (sid === undefined) {
      // An observer without a number counts as larger than any server, so that its dialled
      // connection is kept.
      this.#nextAnonymous--;
      this.#adopt(link, cnxn);
      this.#markReachable(cnxn);
    } else if (sid > own) {
      this.#adoptAccepted(link, cnxn);
    } else {
      this.#dialBack(link, cnxn, addresses);
    }
  }

  /**
   * A smaller server has dialled: it asks to be dialled, and believes that it has no connection
   * with this one.
   */
  #dialBack(link: ElectionLink, cnxn: ElectionCnxn, addresses: readonly HostPort[]): void {
    this.#close(cnxn);
    const old = link.cnxn;
    if (old !== undefined) {
      this.#unlink(link);
      this.#close(old);
    }
    link.dialBack = [...addresses, ...link.addresses.filter((address) => !addresses.some((other) => isSame(address, other)))];
    if (link.dialBack.length === 0) {
      link.dialBack = undefined;
      this.#log.warn(this.#now.elapsedMs, `Server ${link.sid} at ${cnxn.name} asks this server to connect to it, but gives no address.`, {
        event: 'peer.no-address',
        peer: link.sid,
        address: cnxn.name,
      });
    }
    link.dialDueMs = -Infinity;
    this.#markDirty(link);
  }

  #adoptAccepted(link: ElectionLink, cnxn: ElectionCnxn): void {
    const { cnxn: old } = link;
    // It was dialled before the current one: a late message of a connection that its owner has
    // given up.
    if (old !== undefined && old.order > cnxn.order) {
      this.#close(cnxn);
      return;
    }
    // The dial in progress would only make the other side drop this connection and dial again.
    if (link.dial !== undefined) this.#dialler.cancel(link.dial);
    link.dial = undefined;
    this.#adopt(link, cnxn);
    this.#markReachable(cnxn);
  }

  /** Makes this the connection with that server. */
  #adopt(link: ElectionLink, cnxn: ElectionCnxn): void {
    const old = link.cnxn;
    this.#cnxns.markOpen(cnxn);
    cnxn.link = link;
    link.cnxn = cnxn;
    link.dialBack = undefined;
    link.dialDueMs = Infinity;
    this.#postponedDials.delete(link);
    link.dialBackDueMs = Infinity;
    this.#awaitingDialBack.delete(link);
    link.pendingMessage = link.lastMessage;
    if (old !== undefined) {
      old.link = undefined;
      this.#close(old);
    }
    this.#markDirty(link);
  }

  /**
   * The server's link; a new one for a server that is not in the configuration, unless there are
   * too many of those.
   */
  #linkOf(sid: Sid): ElectionLink | undefined {
    let link = this.#links.get(sid);
    if (link !== undefined || this.#unknownPeerCount >= this.#options.unknownPeersMax) return link;
    this.#unknownPeerCount++;
    this.#links.set(sid, (link = new ElectionLink(sid)));
    return link;
  }

  /**
   * A server outside the configuration can only be reached over the connection that it has made.
   */
  #maybeForget(link: ElectionLink): void {
    if (link.isConfigured || link.cnxn !== undefined || link.dial !== undefined || link.isDirty) return;
    if (this.#links.get(link.sid) !== link) return;
    this.#postponedDials.delete(link);
    this.#awaitingDialBack.delete(link);
    this.#links.delete(link.sid);
    this.#unknownPeerCount--;
  }

  // --- Dialling

  #maybeDial(link: ElectionLink): void {
    const { elapsedMs } = this.#now;
    if (this.#isShutDown || link.dial !== undefined) {
      link.dialDueMs = Infinity;
      return;
    }
    if (link.sid > this.#options.sid) link.dialDueMs = Math.max(link.dialDueMs, link.dialBackRequestedMs + dialBackIntervalMs);
    if (link.dialDueMs > elapsedMs) {
      this.#postponedDials.add(link);
      return;
    }
    link.dialDueMs = Infinity;
    this.#postponedDials.delete(link);
    // Where one address accepts and no server answers, the others are tried.
    const first = link.addresses.length === 0 ? 0 : link.silentCnxnCount % link.addresses.length;
    const hosts = link.dialBack ?? [...link.addresses.slice(first), ...link.addresses.slice(0, first)];
    link.dialBack = undefined;
    if (hosts.length === 0) return;
    const limits = { attemptMs: this.#options.cnxTimeoutMs, totalMs: Infinity };
    link.dial = this.#dialler.dial(hosts, limits, this.#now, (outcome, now) => {
      this.#now = now;
      link.dial = undefined;
      if (outcome.kind === 'open') this.#dialled(link, outcome);
      else this.#dialFailed(link, outcome);
    });
  }

  #dialled(link: ElectionLink, { stream, remote }: Extract<DialOutcome, { kind: 'open' }>): void {
    const cnxn = this.#cnxns.add(stream, remote, this.#now);
    if (link.sid < this.#options.sid) {
      cnxn.initialMessage = this.#initialMessage;
      this.#adopt(link, cnxn);
    } else {
      link.dialBackRequestedMs = this.#now.elapsedMs;
      cnxn.dialBackLink = link;
      this.#sends.add(stream, this.#initialMessage);
      this.#close(cnxn);
    }
  }

  /**
   * An intermediary has accepted for the server and closed, without a result. That may happen once
   * by chance; when it happens again, and at each of its addresses, the server does not listen.
   */
  #closedWithoutMessage(link: ElectionLink, times: number): void {
    link.dialBackDueMs = Infinity;
    this.#awaitingDialBack.delete(link);
    this.#markDirty(link);
    if (!link.isConfigured) return;
    link.silentCnxnCount += times;
    if (!link.isUnreachableReported && link.silentCnxnCount <= link.addresses.length) {
      link.dialBackRequestedMs = -Infinity;
      this.#redial(link);
    } else {
      this.#dialFailed(link, { refused: true, reason: 'the connection was accepted, and closed before the server sent anything' });
    }
  }

  #dialFailed(link: ElectionLink, { refused, reason }: Pick<Extract<DialOutcome, { kind: 'failed' }>, 'refused' | 'reason'>): void {
    if (reason !== link.lastFailure) {
      this.#log.warn(this.#now.elapsedMs, `Server ${link.sid} cannot be reached: ${reason}.`, {
        event: 'peer.unreachable',
        peer: link.sid,
        reason,
      });
    }
    link.lastFailure = reason;
    // A dial and a connection never exist together, so this dial began after the last connection
    // closed.
    if (refused && link.isConfigured && !link.isUnreachableReported) {
      link.isUnreachableReported = true;
      this.#core.unreachable(link.sid, this.#now);
    }
    if (link.dialBack !== undefined) link.dialDueMs = -Infinity;
    this.#markDirty(link);
  }

  // --- Going away

  /** The connection does not belong to that server any more. */
  #unlink(link: ElectionLink): void {
    const cnxn = link.cnxn!;
    cnxn.link = undefined;
    link.cnxn = undefined;
    if (cnxn.hasReceived) link.isUnreachableReported = false;
  }

  /** Accepts no more input; sends waiting output, then the end. */
  #close(cnxn: ElectionCnxn): void {
    this.#cnxns.close(cnxn, this.#now);
  }

  #closing(cnxn: ElectionCnxn): void {
    cnxn.frameDecoder.close();
    this.#closingCnxns.push(cnxn);
    const { link } = cnxn;
    if (link === undefined) return;
    this.#unlink(link);
    if (cnxn.hasReceived || this.#isShutDown) this.#redial(link);
    else this.#closedWithoutMessage(link, 1);
  }

  /**
   * At once, and twice in redialPauseMs: the sockets of a killed process close one after the other,
   * so that one may accept a dial and close after a connection has.
   */
  #redial(link: ElectionLink): void {
    link.redialMs = Math.max(this.#now.elapsedMs - redialPauseMs, link.redialMs + redialPauseMs);
    link.dialDueMs = Math.min(link.dialDueMs, link.redialMs);
    this.#markDirty(link);
  }

  #closeMalformed(cnxn: ElectionCnxn, error: ProtocolError): void {
    const who = cnxn.link === undefined ? cnxn.name : `Server ${cnxn.link.sid} at ${cnxn.name}`;
    this.#log.warn(this.#now.elapsedMs, `${who} was closed on the election port: ${error.message}.`, {
      event: 'peer.malformed',
      address: cnxn.name,
      peer: cnxn.link?.sid,
      reason: error.message,
    });
    this.#close(cnxn);
  }

  // --- Messages

  /** `bytes` undefined: the retained ones. */
  #feed(cnxn: ElectionCnxn, bytes: Buffer | undefined, start = 0, end = 0): void {
    this.#feeding = cnxn;
    this.#quantumMessagesLeft = this.#options.messagesPerQuantum;
    let wantsMore = true;
    try {
      wantsMore = bytes === undefined ? cnxn.frameDecoder.resume(this.#onFrame) : cnxn.frameDecoder.feed(bytes, start, end, this.#onFrame);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#closeMalformed(cnxn, error);
    } finally {
      this.#feeding = undefined;
    }
    if (cnxn.stage === 'closing') return;
    if (!wantsMore) this.#cnxns.stall(cnxn);
    else if (cnxn.hasPeerEnded) this.#close(cnxn);
  }

  /** The frame cutter's consumer. Returns whether the connection may pass another message. */
  #onNotificationFrame(reader: Reader): boolean {
    const cnxn = this.#feeding!;
    const { sid } = cnxn.link!;
    let notification: Notification;
    try {
      notification = readNotification(reader);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      // Only the message is lost: a server that is disconnected for a message that this one does
      // not understand would never vote again (ZOOKEEPER-3769).
      this.#log.warn(this.#now.elapsedMs, `A notification of server ${sid} at ${cnxn.name} was dropped: ${error.message}.`, {
        event: 'peer.notification-dropped',
        address: cnxn.name,
        peer: sid,
        reason: error.message,
      });
      return this.#hasQuantumLeft();
    }
    this.#core.notified(sid, notification, this.#now);
    return this.#hasQuantumLeft() && cnxn.stage === 'open';
  }

  #hasQuantumLeft(): boolean {
    if (--this.#quantumMessagesLeft > 0) return true;
    this.#limitObserver.limitReached('messagesPerQuantum');
    return false;
  }
}

function frameOf(notification: Notification): Buffer {
  const writer = new Writer(256);
  const start = writer.beginFrame();
  writeNotification(writer, notification);
  writer.endFrame(start);
  return Buffer.from(writer.written());
}

function isSame(a: HostPort, b: HostPort): boolean {
  return a.host === b.host && a.port === b.port;
}
