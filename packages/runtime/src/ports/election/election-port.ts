/**
 * The election port: notifications from and to the other servers of the ensemble, over one
 * connection for each pair.
 *
 * Only the newest message to a server counts, so at most one waits for it. A message may be lost
 * with a connection, without a sign of it; so the last one is sent again over each new connection.
 *
 * The core learns when a server is down (`unreachable`): its connection has closed, and another
 * dial was refused. That is why a closed connection is followed by a dial at once;
 * docs/internals/election.md describes what depends on it.
 *
 * The owner drives it in turns, as the client port: events as they occur, then `endTurn` once.
 * Nothing is dialled or sent before that, and the core is never called from inside a call of its
 * own.
 *
 * This file has the inputs and their order; each part of the work has its own file:
 * election-link-table (which servers there are), election-cnxns (which connection with a server is
 * kept), link-dialler (when a server is dialled), notification-reader (bytes to the core) and
 * notification-sender (bytes to servers).
 */
import type { ElectionLinks, Now, Observer } from '@tskeeper/core';
import type { HostPort, Millis, Notification, Sid } from '@tskeeper/protocol';
import type { Clock } from '../../clock.ts';
import type { Logger } from '../../logger.ts';
import type { Endpoint, Listener, Network, ReceivedBatch, StreamId } from '../../network.ts';
import { Dialler } from '../dialler.ts';
import type { PeerServer } from '../peer-server.ts';
import type { PeerStreams } from '../peer-streams.ts';
import { RateLimitedLog } from '../rate-limited-log.ts';
import type { Replacement } from '../replace-listeners.ts';
import { ElectionCnxns } from './election-cnxns.ts';
import type { ElectionCore } from './election-core.ts';
import type { ElectionCnxn, ElectionLink } from './election-link.ts';
import { ElectionLinkTable } from './election-link-table.ts';
import type { ElectionPortOptions } from './election-port-options.ts';
import { ElectionTurn } from './election-turn.ts';
import { LinkDialler } from './link-dialler.ts';
import { NotificationReader } from './notification-reader.ts';
import { NotificationSender } from './notification-sender.ts';

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
 * A connection that has been silent this long is replaced when there is something to send: the
 * intermediary that accepted it may have lost its way to the server. An answer needs a round trip,
 * so a shorter time would replace connections before the answer is there, in one election after
 * the other.
 */
const silentCnxnMs: Millis = 1000;

export class ElectionPort implements ElectionLinks {
  readonly #sid: Sid;
  /** How long a server with several addresses may leave a message unanswered. */
  readonly #unansweredMaxMs: Millis;
  readonly #log: RateLimitedLog;
  readonly #turn = new ElectionTurn();
  readonly #dialler: Dialler;
  readonly #links: ElectionLinkTable;
  readonly #dials: LinkDialler;
  readonly #sender: NotificationSender;
  readonly #cnxns: ElectionCnxns;
  readonly #streams: PeerStreams<ElectionCnxn>;
  #needsTurn = false;

  constructor(dependencies: ElectionPortDependencies, servers: readonly PeerServer[]) {
    const { network, clock, options, limitObserver, logger } = dependencies;
    const turn = this.#turn;
    const log = new RateLimitedLog(logger);
    const dialler = new Dialler(dependencies);
    const links = new ElectionLinkTable(options, servers);
    const dials = new LinkDialler({ options, log, turn, links, dialler });
    const reader = new NotificationReader({ options, limitObserver, log, turn });
    const sender = new NotificationSender({ network, links, turn });
    this.#sid = options.sid;
    this.#unansweredMaxMs = Math.max(silentCnxnMs, options.reachabilityCheckTimeoutMs ?? Infinity);
    this.#log = log;
    this.#dialler = dialler;
    this.#links = links;
    this.#dials = dials;
    this.#sender = sender;
    this.#cnxns = new ElectionCnxns({ network, clock, options, log, turn, links, dials, reader, sender });
    this.#streams = this.#cnxns.streams;
  }

  /**
   * Sets another configuration. Connections stay: a removed server still has to get messages, and
   * is forgotten when it closes. The next dial uses new addresses.
   */
  setServers(servers: readonly PeerServer[]): void {
    this.#links.setServers(servers);
    for (const link of this.#links.values()) this.#maybeForget(link);
  }

  #maybeForget(link: ElectionLink): void {
    if (this.#links.maybeForget(link)) this.#dials.forget(link);
  }

  /**
   * Sets the core that this port delivers to. It is made after the port, which it writes to at
   * once.
   */
  attach(core: ElectionCore): void {
    this.#turn.core = core;
  }

  // --- Listening

  /**
   * Listens on one of this server's election addresses; see `PeerStreams.listen`. When it rejects
   * the owner has to end the process: a server that cannot be dialled must not vote.
   */
  listen(address: HostPort): Promise<Listener | undefined> {
    return this.#streams.listen(address);
  }

  /** Listens at another address instead of these; see `PeerStreams.replace`. */
  replace(old: readonly Listener[], address: HostPort): Promise<Replacement | undefined> {
    return this.#streams.replace(old, address);
  }

  /** Stops listening at one address; connections stay. */
  stopListeningAt(listener: Listener): Promise<void> {
    return this.#streams.stopListeningAt(listener);
  }

  owns(listener: Listener): boolean {
    return this.#streams.owns(listener);
  }

  ownsStream(stream: StreamId): boolean {
    return this.#streams.has(stream) || this.#dialler.ownsStream(stream);
  }

  /**
   * Stops dialling and accepting, and closes all connections; output written to them is still sent.
   */
  async shutDown(now: Now): Promise<void> {
    this.#turn.now = now;
    this.#dials.shutDown();
    for (const { link } of this.#streams.values()) if (link !== undefined) this.#sender.flush(link);
    await this.#streams.shutDown(now);
  }

  // --- What the network reports

  accepted(stream: StreamId, listener: Listener, remote: Endpoint, now: Now): void {
    this.#turn.now = now;
    this.#streams.accepted(stream, listener, remote, now);
  }

  connected(stream: StreamId, now: Now): void {
    this.#turn.now = now;
    this.#dialler.connected(stream, now);
  }

  /** Takes the connections of this port out of the batch and ignores the others. */
  received(batch: ReceivedBatch, now: Now): void {
    this.#turn.now = now;
    this.#streams.received(batch, now);
  }

  drained(stream: StreamId, now: Now): void {
    this.#turn.now = now;
    const cnxn = this.#streams.get(stream);
    if (cnxn !== undefined) this.#sender.drained(cnxn);
  }

  ended(stream: StreamId, now: Now): void {
    this.#turn.now = now;
    const dialBackLink = this.#streams.get(stream)?.dialBackLink;
    if (dialBackLink !== undefined && dialBackLink.cnxn === undefined) this.#dials.onDialBackEnded(dialBackLink);
    this.#streams.ended(stream, now);
  }

  closed(stream: StreamId, error: string | undefined, now: Now): void {
    this.#turn.now = now;
    const dialBackLink = this.#streams.get(stream)?.dialBackLink;
    if (!this.#streams.closed(stream, now)) this.#dialler.closed(stream, error, now);
    else if (error !== undefined && dialBackLink !== undefined && dialBackLink.cnxn === undefined)
      this.#dials.onClosedWithoutMessage(dialBackLink, 1);
  }

  // --- What the core asks for

  /** As `ElectionLinks.notify`. */
  notify(to: Sid, notification: Notification): void {
    const { elapsedMs } = this.#turn.now;
    const link = this.#links.get(to);
    if (link === undefined) {
      if (to !== this.#sid) {
        this.#log.warn(elapsedMs, `Server ${to} is not in the configuration, so no vote is sent to it.`, {
          event: 'peer.unknown',
          peer: to,
        });
      }
      return;
    }
    this.#sender.put(link, notification);
    const { cnxn } = link;
    if (cnxn !== undefined) this.#checkCnxn(link, cnxn, elapsedMs);
    this.#dials.dialAtOnce(link);
  }

  /**
   * There is something to send: a connection that leads nowhere is replaced. A server in an
   * election is answered; with several addresses, one that is not answered may have lost the
   * network of this address only.
   */
  #checkCnxn(link: ElectionLink, cnxn: ElectionCnxn, elapsedMs: Millis): void {
    const { unansweredSinceMs } = cnxn;
    const isNew = !cnxn.hasReceived && elapsedMs - cnxn.openedMs >= silentCnxnMs;
    const isLost = link.addresses.length > 1 && unansweredSinceMs !== undefined && elapsedMs - unansweredSinceMs >= this.#unansweredMaxMs;
    if (isLost) link.lostAddress = cnxn.dialledAddress;
    if (isNew || isLost) this.#cnxns.disconnect(link);
    else cnxn.unansweredSinceMs ??= elapsedMs;
  }

  /**
   * As `ElectionLinks.reconnect`. An earlier connection may work in one direction only; a new one
   * works in both.
   */
  reconnect(sid: Sid): void {
    const link = this.#links.get(sid);
    if (link === undefined) return;
    this.#cnxns.disconnect(link);
    this.#dials.dialAtOnce(link);
  }

  // --- Time

  /** When to call `wake` if nothing else happens. */
  deadline(): Millis | undefined {
    const due = Math.min(this.#dialler.deadline() ?? Infinity, this.#streams.deadline() ?? Infinity, this.#dials.deadline());
    return due === Infinity ? undefined : due;
  }

  /** There is more work that can be done at once: the owner should run another turn soon. */
  get needsTurn(): boolean {
    return this.#needsTurn;
  }

  /** Closes connections and ends dials that have timed out. */
  wake(now: Now): void {
    this.#turn.now = now;
    this.#dialler.wake(now);
    this.#dials.wake();
    this.#streams.wake(now);
  }

  /**
   * Feeds connections that had to wait, dials servers that this turn needs, and sends all output at
   * once.
   */
  endTurn(now: Now): void {
    this.#turn.now = now;
    this.#needsTurn = this.#streams.resumeStalled();
    for (const link of this.#links.takeDirty()) {
      link.isDirty = false;
      if (link.cnxn !== undefined) this.#sender.flush(link);
      else this.#dials.maybeDial(link, this.#cnxns);
      this.#maybeForget(link);
    }
    this.#sender.send(this.#streams);
  }
}
