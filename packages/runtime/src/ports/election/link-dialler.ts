/**
 * When the election port dials a server, and when it reports one as unreachable.
 *
 * A closed connection is followed by a dial at once, because only a dial that is refused proves
 * that a server is down. Two pauses keep servers from dialling each other forever: one after a
 * request to dial back, and one between dials because of connections that close as soon as they are
 * made.
 *
 * Where a proxy or a tunnel accepts in place of the server, no dial is refused: a connection that
 * is closed before any message has arrived counts as a refusal too.
 */
import type { HostPort, Millis, Sid } from '@tskeeper/protocol';
import type { Endpoint, StreamId } from '../../network.ts';
import type { Dialler, DialLimits } from '../dialler.ts';
import type { RateLimitedLog } from '../rate-limited-log.ts';
import type { ElectionLink } from './election-link.ts';
import type { ElectionLinkTable } from './election-link-table.ts';
import type { ElectionPortOptions } from './election-port-options.ts';
import type { ElectionTurn } from './election-turn.ts';

export interface LinkDiallerDependencies {
  readonly options: ElectionPortOptions;
  readonly log: RateLimitedLog;
  readonly turn: ElectionTurn;
  readonly links: ElectionLinkTable;
  readonly dialler: Dialler;
}

/** Takes the connections that a dial has made. */
export interface DialReceiver {
  dialled(link: ElectionLink, stream: StreamId, remote: Endpoint, host: HostPort): void;
}

/**
 * A server that was asked to dial back has this long before it is asked again. Being asked makes it
 * drop its connection, so two servers that ask and answer at the same time could repeat this
 * forever.
 */
const dialBackIntervalMs: Millis = 500;
/**
 * A server whose connections close as soon as they are made is not dialled for each of them at
 * once.
 */
const redialPauseMs: Millis = 1000;

export class LinkDialler {
  readonly #sid: Sid;
  readonly #limits: DialLimits;
  readonly #log: RateLimitedLog;
  readonly #turn: ElectionTurn;
  readonly #links: ElectionLinkTable;
  readonly #dialler: Dialler;
  /** Servers to be dialled later. */
  readonly #postponed = new Set<ElectionLink>();
  /**
   * Servers that were asked to dial back over a connection that they, or an intermediary, have
   * ended: the request has arrived.
   */
  readonly #awaitingDialBack = new Set<ElectionLink>();
  #isShutDown = false;

  constructor({ options, log, turn, links, dialler }: LinkDiallerDependencies) {
    this.#sid = options.sid;
    this.#limits = { attemptMs: options.cnxTimeoutMs, totalMs: Infinity, staggerMs: options.reachabilityCheckTimeoutMs };
    this.#log = log;
    this.#turn = turn;
    this.#links = links;
    this.#dialler = dialler;
  }

  // --- Requests for a dial

  /** At the end of this turn, unless there is a connection by then. */
  dialAtOnce(link: ElectionLink): void {
    link.dialDueMs = -Infinity;
    this.#links.markDirty(link);
  }

  /**
   * At once, and twice in redialPauseMs: the sockets of a killed process close one after the other,
   * so that one may accept a dial and close after a connection has.
   */
  #redial(link: ElectionLink): void {
    link.redialMs = Math.max(this.#turn.now.elapsedMs - redialPauseMs, link.redialMs + redialPauseMs);
    link.dialDueMs = Math.min(link.dialDueMs, link.redialMs);
    this.#links.markDirty(link);
  }

  /** The connection that the dial in progress would make is not needed. */
  cancel(link: ElectionLink): void {
    if (link.dial !== undefined) this.#dialler.cancel(link.dial);
    link.dial = undefined;
  }

  /** There is a connection with this server. */
  onConnected(link: ElectionLink): void {
    link.dialBack = undefined;
    link.dialDueMs = link.dialBackDueMs = Infinity;
    this.forget(link);
  }

  forget(link: ElectionLink): void {
    this.#postponed.delete(link);
    this.#awaitingDialBack.delete(link);
  }

  shutDown(): void {
    this.#isShutDown = true;
    this.#dialler.cancelAll();
    this.#postponed.clear();
    this.#awaitingDialBack.clear();
    for (const link of this.#links.values()) link.dial = link.dialBack = undefined;
  }

  // --- Dialling

  /** Starts or postpones the dial that is due, if one is. */
  maybeDial(link: ElectionLink, receiver: DialReceiver): void {
    if (link.dialDueMs === Infinity) return;
    const { elapsedMs } = this.#turn.now;
    if (this.#isShutDown || link.dial !== undefined) {
      link.dialDueMs = Infinity;
      return;
    }
    if (link.sid > this.#sid) link.dialDueMs = Math.max(link.dialDueMs, link.dialBackRequestedMs + dialBackIntervalMs);
    if (link.dialDueMs > elapsedMs) {
      this.#postponed.add(link);
      return;
    }
    link.dialDueMs = Infinity;
    this.#postponed.delete(link);
    // Where one address accepts and no server answers, the others are tried.
    const first = link.addresses.length === 0 ? 0 : link.silentDialCount % link.addresses.length;
    const inTurn = link.dialBack ?? [...link.addresses.slice(first), ...link.addresses.slice(0, first)];
    const { lostAddress } = link;
    const hosts =
      lostAddress === undefined
        ? inTurn
        : [...inTurn.filter((each) => !isSame(each, lostAddress)), ...inTurn.filter((each) => isSame(each, lostAddress))];
    link.dialBack = undefined;
    if (hosts.length === 0) return;
    this.#dial(link, hosts, receiver);
  }

  #dial(link: ElectionLink, hosts: readonly HostPort[], receiver: DialReceiver): void {
    link.dial = this.#dialler.dial(hosts, this.#limits, this.#turn.now, (outcome, now) => {
      this.#turn.now = now;
      link.dial = undefined;
      if (outcome.kind === 'open') receiver.dialled(link, outcome.stream, outcome.remote, outcome.host);
      else this.#dialFailed(link, outcome.refused, outcome.reason);
    });
  }

  #dialFailed(link: ElectionLink, refused: boolean, reason: string): void {
    if (reason !== link.lastFailure) {
      this.#log.warn(this.#turn.now.elapsedMs, `Server ${link.sid} cannot be reached: ${reason}.`, {
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
      this.#turn.core.unreachable(link.sid, this.#turn.now);
    }
    if (link.dialBack !== undefined) link.dialDueMs = -Infinity;
    this.#links.markDirty(link);
  }

  // --- Connections that have closed

  /** The connection with this server has closed. */
  onDisconnected(link: ElectionLink, hasReceived: boolean): void {
    if (hasReceived || this.#isShutDown) this.#redial(link);
    else this.onClosedWithoutMessage(link, 1);
  }

  /**
   * A connection that asked this server to dial back was ended at the other side. Nothing follows if
   * it does not, unless that is to be reported or it has another address.
   */
  onDialBackEnded(link: ElectionLink): void {
    if (link.isUnreachableReported && link.addresses.length < 2) return;
    link.dialBackDueMs = Math.min(link.dialBackDueMs, this.#turn.now.elapsedMs + dialBackIntervalMs);
    this.#awaitingDialBack.add(link);
  }

  /**
   * An intermediary has accepted for the server and closed, without a result. That may happen once
   * by chance; when it happens again, and at each of its addresses, the server does not listen.
   */
  onClosedWithoutMessage(link: ElectionLink, times: number): void {
    link.dialBackDueMs = Infinity;
    this.#awaitingDialBack.delete(link);
    this.#links.markDirty(link);
    if (!link.isConfigured) return;
    link.silentCnxnCount += times;
    link.silentDialCount++;
    const hasUntriedAddress = link.silentDialCount % link.addresses.length > 0;
    if (hasUntriedAddress || (!link.isUnreachableReported && link.silentCnxnCount <= link.addresses.length)) {
      link.dialBackRequestedMs = -Infinity;
      this.#redial(link);
    } else {
      this.#dialFailed(link, true, 'the connection was accepted, and closed before the server sent anything');
    }
  }

  // --- Time

  /** When to call `wake` if nothing else happens; Infinity when there is no such time. */
  deadline(): Millis {
    let due = Infinity;
    for (const { dialDueMs } of this.#postponed) due = Math.min(due, dialDueMs);
    for (const { dialBackDueMs } of this.#awaitingDialBack) due = Math.min(due, dialBackDueMs);
    return due;
  }

  wake(): void {
    const { elapsedMs } = this.#turn.now;
    for (const link of this.#postponed) if (link.dialDueMs <= elapsedMs) this.#links.markDirty(link);
    for (const link of this.#awaitingDialBack) if (link.dialBackDueMs <= elapsedMs) this.onClosedWithoutMessage(link, 2);
  }
}

function isSame(a: HostPort, b: HostPort): boolean {
  return a.host === b.host && a.port === b.port;
}
