/**
 * The connections of an election port, and which of them is the one with a server.
 *
 * Either side may dial. Of the two possible connections the one dialled by the larger sid is kept:
 * a server dialled by a smaller one closes that connection and dials back, and one that has dialled
 * a larger one closes as soon as it has introduced itself. For the smaller server a dial is
 * therefore a request to be dialled.
 */
import { type HostPort, type InitialMessage, type Millis, ProtocolError, type Sid } from '@tskeeper/protocol';
import type { Clock } from '../../clock.ts';
import type { Endpoint, Network, StreamId } from '../../network.ts';
import { type PeerStreamOwner, PeerStreams } from '../peer-streams.ts';
import type { RateLimitedLog } from '../rate-limited-log.ts';
import { ElectionCnxn, type ElectionLink } from './election-link.ts';
import type { ElectionLinkTable } from './election-link-table.ts';
import type { ElectionPortOptions } from './election-port-options.ts';
import type { ElectionTurn } from './election-turn.ts';
import type { DialReceiver, LinkDialler } from './link-dialler.ts';
import type { NotificationReader } from './notification-reader.ts';
import type { NotificationSender } from './notification-sender.ts';

export interface ElectionCnxnsDependencies {
  readonly network: Network;
  readonly clock: Pick<Clock, 'now' | 'after'>;
  readonly options: ElectionPortOptions;
  readonly log: RateLimitedLog;
  readonly turn: ElectionTurn;
  readonly links: ElectionLinkTable;
  readonly dials: LinkDialler;
  readonly reader: NotificationReader;
  readonly sender: NotificationSender;
}

export class ElectionCnxns implements PeerStreamOwner<ElectionCnxn>, DialReceiver {
  readonly #options: ElectionPortOptions;
  readonly #log: RateLimitedLog;
  readonly #turn: ElectionTurn;
  readonly #links: ElectionLinkTable;
  readonly #dials: LinkDialler;
  readonly #reader: NotificationReader;
  readonly #sender: NotificationSender;
  readonly streams: PeerStreams<ElectionCnxn>;
  #cnxnsMade = 0;
  #nextAnonymous: Sid = -1;

  constructor({ network, clock, options, log, turn, links, dials, reader, sender }: ElectionCnxnsDependencies) {
    this.#options = options;
    this.#log = log;
    this.#turn = turn;
    this.#links = links;
    this.#dials = dials;
    this.#reader = reader;
    this.#sender = sender;
    const { bindTriesMax, halfOpenMax, initialMessageTimeoutMs: halfOpenTimeoutMs } = options;
    this.streams = new PeerStreams({ network, clock, log, portName: 'election port', bindTriesMax, halfOpenMax, halfOpenTimeoutMs }, this);
  }

  createStream(stream: StreamId, remote: Endpoint, sinceMs: Millis): ElectionCnxn {
    return new ElectionCnxn(stream, remote, sinceMs, this.#cnxnsMade++, this.#reader.frameReader);
  }

  // --- Input

  receive(cnxn: ElectionCnxn, bytes: Buffer, start: number, end: number): void {
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
      this.streams.discard(cnxn, end - at, this.#turn.now);
      return;
    }
    cnxn.unansweredSinceMs = undefined;
    if (!cnxn.hasReceived) this.#markReachable(cnxn);
    this.#feed(cnxn, bytes, at, end);
  }

  resume(cnxn: ElectionCnxn): void {
    this.#feed(cnxn, undefined, 0, 0);
  }

  #feed(cnxn: ElectionCnxn, bytes: Buffer | undefined, start: number, end: number): void {
    let wantsMore = true;
    try {
      wantsMore = this.#reader.feed(cnxn, bytes, start, end);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#closeMalformed(cnxn, error);
    }
    if (cnxn.stage === 'closing') return;
    if (!wantsMore) this.streams.stall(cnxn);
    else if (cnxn.hasPeerEnded) this.#close(cnxn);
  }

  /** The server is there, and its messages arrive. */
  #markReachable(cnxn: ElectionCnxn): void {
    const link = cnxn.link!;
    cnxn.hasReceived = true;
    link.silentCnxnCount = 0;
    link.isUnreachableReported = true;
    link.lastFailure = '';
    this.#turn.core.reachable(link.sid);
  }

  // --- New connections

  /** The dialling side has introduced itself. */
  #onInitialMessage(cnxn: ElectionCnxn, { sid, addresses }: InitialMessage): void {
    const { elapsedMs } = this.#turn.now;
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
    const link = this.#links.maybeAdd(sid ?? this.#nextAnonymous);
    if (link === undefined) {
      const count = this.#links.unknownPeerCount;
      this.#log.warn(elapsedMs, `${cnxn.name} was closed: ${count} servers outside the configuration are connected already.`, {
        event: 'peer.strangers',
        address: cnxn.name,
        count,
      });
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
    this.disconnect(link);
    link.dialBack = [...addresses, ...link.addresses.filter((address) => !addresses.some((other) => isSame(address, other)))];
    if (link.dialBack.length === 0) {
      link.dialBack = undefined;
      this.#log.warn(
        this.#turn.now.elapsedMs,
        `Server ${link.sid} at ${cnxn.name} asks this server to connect to it, but gives no address.`,
        {
          event: 'peer.no-address',
          peer: link.sid,
          address: cnxn.name,
        },
      );
    }
    this.#dials.dialAtOnce(link);
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
    this.#dials.cancel(link);
    this.#adopt(link, cnxn);
    this.#markReachable(cnxn);
  }

  dialled(link: ElectionLink, stream: StreamId, remote: Endpoint, host: HostPort): void {
    const cnxn = this.streams.add(stream, remote, this.#turn.now);
    cnxn.dialledAddress = host;
    link.lostAddress = undefined;
    if (link.sid < this.#options.sid) {
      cnxn.initialMessage = this.#links.initialMessage;
      this.#adopt(link, cnxn);
    } else {
      link.dialBackRequestedMs = this.#turn.now.elapsedMs;
      cnxn.dialBackLink = link;
      this.#sender.introduce(cnxn);
      this.#close(cnxn);
    }
  }

  /** Makes this the connection with that server. */
  #adopt(link: ElectionLink, cnxn: ElectionCnxn): void {
    const old = link.cnxn;
    this.streams.markOpen(cnxn);
    cnxn.link = link;
    link.cnxn = cnxn;
    this.#dials.onConnected(link);
    link.pendingMessage = link.lastMessage;
    if (old !== undefined) {
      old.link = undefined;
      this.#close(old);
    }
    this.#links.markDirty(link);
  }

  // --- Going away

  /** Closes the connection with that server, if there is one, without a dial in its place. */
  disconnect(link: ElectionLink): void {
    const { cnxn } = link;
    if (cnxn === undefined) return;
    this.#unlink(link, cnxn);
    this.#close(cnxn);
  }

  /** The connection no longer belongs to that server. */
  #unlink(link: ElectionLink, cnxn: ElectionCnxn): void {
    cnxn.link = undefined;
    link.cnxn = undefined;
    if (cnxn.hasReceived) link.isUnreachableReported = false;
  }

  /** Accepts no more input; sends waiting output, then the end. */
  #close(cnxn: ElectionCnxn): void {
    this.streams.close(cnxn, this.#turn.now);
  }

  onClosing(cnxn: ElectionCnxn): void {
    cnxn.frameDecoder.close();
    this.#sender.endAfterOutput(cnxn);
    const { link } = cnxn;
    if (link === undefined) return;
    this.#unlink(link, cnxn);
    this.#dials.onDisconnected(link, cnxn.hasReceived);
  }

  #closeMalformed(cnxn: ElectionCnxn, error: ProtocolError): void {
    const who = cnxn.link === undefined ? cnxn.name : `Server ${cnxn.link.sid} at ${cnxn.name}`;
    this.#log.warn(this.#turn.now.elapsedMs, `${who} was closed on the election port: ${error.message}.`, {
      event: 'peer.malformed',
      address: cnxn.name,
      peer: cnxn.link?.sid,
      reason: error.message,
    });
    this.#close(cnxn);
  }
}

function isSame(a: HostPort, b: HostPort): boolean {
  return a.host === b.host && a.port === b.port;
}
