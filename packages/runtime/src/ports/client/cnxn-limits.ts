/**
 * Decides who may connect. There is a limit per address, one in all, one for connections without a
 * handshake, and one for new sessions while memory is short or the throttle has no tokens left.
 *
 * A limit in all that knew no addresses would let one client keep all others out. So the last
 * places are kept for addresses that have fewer than an equal share, and a newcomer takes the place
 * of a connection that has had its chance.
 */
import type { MemoryState, Observer } from '@tskeeper/core';
import type { SessionKind } from '@tskeeper/core/internal';
import type { Millis, Reader } from '@tskeeper/protocol';
import type { PortObserver } from '../port-observer.ts';
import type { RateLimitedLog } from '../rate-limited-log.ts';
import type { ClientCnxn } from './client-cnxn.ts';
import type { ClientCnxns } from './client-cnxns.ts';
import type { ClientPortOptions } from './client-port-options.ts';
import type { ClientSender } from './client-sender.ts';
import type { PortTurn } from './port-turn.ts';

/** Offset of `sessionId` in a ConnectRequest: after protocolVersion, lastZxidSeen and timeOut. */
const sessionIdAt = 16;

/**
 * Decides whether one more session may be opened or resumed now. ConnectionThrottle has this shape.
 */
export interface Throttle {
  readonly deficit: number;
  admit(kind: SessionKind, elapsedMs: Millis): boolean;
}

export interface CnxnLimitsParts {
  readonly options: ClientPortOptions;
  readonly throttle: Throttle | undefined;
  readonly observer: PortObserver;
  readonly limitObserver: Pick<Observer, 'limitReached'>;
  readonly log: RateLimitedLog;
  readonly turn: PortTurn;
  readonly cnxns: ClientCnxns;
  readonly sender: ClientSender;
}

export class CnxnLimits {
  readonly #options: ClientPortOptions;
  readonly #throttle: Throttle | undefined;
  readonly #observer: PortObserver;
  readonly #limitObserver: Pick<Observer, 'limitReached'>;
  readonly #log: RateLimitedLog;
  readonly #turn: PortTurn;
  readonly #cnxns: ClientCnxns;
  readonly #sender: ClientSender;
  /**
   * The state of the memory of the process. Unless it is ample, no new sessions are accepted; live
   * ones may be resumed.
   */
  memoryState: MemoryState = 'ample';

  constructor(parts: CnxnLimitsParts) {
    this.#options = parts.options;
    this.#throttle = parts.throttle;
    this.#observer = parts.observer;
    this.#limitObserver = parts.limitObserver;
    this.#log = parts.log;
    this.#turn = parts.turn;
    this.#cnxns = parts.cnxns;
    this.#sender = parts.sender;
  }

  /**
   * Whether a connection from this address may be accepted. Drops another one for it if it must.
   */
  canAccept(remoteAddress: string): boolean {
    const { maxClientCnxns, maxCnxns, maxCnxnsRemedy, halfOpenMax } = this.#options;
    const { elapsedMs } = this.#turn.now;
    if (maxClientCnxns > 0 && this.#cnxns.countOf(remoteAddress) >= maxClientCnxns) {
      this.#log.warn(
        elapsedMs,
        `${remoteAddress} has ${maxClientCnxns} connections already; another one was refused. Raise maxClientCnxns to allow more.`,
        { event: 'cnxn.address-limit', address: remoteAddress, limit: maxClientCnxns },
      );
      return false;
    }
    const tooManyHalfOpen = this.#cnxns.halfOpen.size >= halfOpenMax && !this.#closeOldestHalfOpen();
    // The session is known only after the handshake. Live sessions must be able to connect, but not
    // at the price of a flood.
    if (tooManyHalfOpen && this.memoryState !== 'ample') {
      this.#log.warn(elapsedMs, `A connection of ${remoteAddress} was refused because memory is ${this.memoryState}.`, {
        event: 'cnxn.memory',
        address: remoteAddress,
        reason: `memory is ${this.memoryState}`,
      });
      return false;
    }
    if (this.#hasEqualShare(remoteAddress)) {
      const count = this.#cnxns.countOf(remoteAddress);
      this.#log.warn(
        elapsedMs,
        `${remoteAddress} has ${count} of ${maxCnxns} connections; another one was refused, because the last places are for addresses that have fewer. Raise ${maxCnxnsRemedy}.`,
        { event: 'cnxn.limit', address: remoteAddress, limit: maxCnxns },
      );
      return false;
    }
    if (maxCnxns > 0 && this.#cnxns.size >= maxCnxns && !this.#dropOldestLingering() && !this.#closeOldestHalfOpen()) {
      this.#log.warn(
        elapsedMs,
        `There are ${maxCnxns} connections already; one of ${remoteAddress} was refused. Raise ${maxCnxnsRemedy}.`,
        { event: 'cnxn.limit', address: remoteAddress, limit: maxCnxns },
      );
      return false;
    }
    return true;
  }

  /** Whether the handshake in `reader` may be passed to the core. Closes the connection if not. */
  admitHandshake(cnxn: ClientCnxn, reader: Reader): boolean {
    const { elapsedMs } = this.#turn.now;
    this.#observer.handshakeReceived(this.#throttle?.deficit ?? 0);
    if (this.#throttle !== undefined && !this.#throttle.admit(this.#sessionKindOf(reader), elapsedMs)) {
      this.#observer.cnxnRejected();
      this.#log.warn(elapsedMs, `${cnxn.name} was refused by the connection throttle.`, {
        event: 'cnxn.throttled',
        address: cnxn.name,
      });
      this.#cnxns.close(cnxn);
      return false;
    }
    if (this.memoryState !== 'ample' && !resumesSession(reader)) {
      this.#observer.cnxnRejected();
      this.#log.warn(elapsedMs, `${cnxn.name} was refused a new session because memory is ${this.memoryState}.`, {
        event: 'cnxn.memory',
        address: cnxn.name,
        reason: `memory is ${this.memoryState}`,
      });
      this.#cnxns.close(cnxn);
      return false;
    }
    return true;
  }

  /**
   * Makes room for a newcomer by dropping a client that has been sent the end of the stream and
   * keeps its side open.
   */
  #dropOldestLingering(): boolean {
    for (const ended of this.#sender.lingering) {
      this.#cnxns.drop(ended);
      return true;
    }
    return false;
  }

  /** Makes room for a newcomer by dropping a connection that has had its chance. */
  #closeOldestHalfOpen(): boolean {
    const oldest = this.#cnxns.halfOpen.oldestOfHeaviest(this.#turn.now.elapsedMs - this.#options.halfOpenGraceMs);
    if (oldest === undefined) return false;
    this.#limitObserver.limitReached('halfOpenMax');
    this.#observer.cnxnExpired();
    this.#cnxns.drop(oldest);
    return true;
  }

  #sessionKindOf(reader: Reader): SessionKind {
    if (resumesSession(reader)) return 'renew';
    return this.#options.opensLocalSessions ? 'local' : 'global';
  }

  /**
   * Whether the few places left are not for this address, because it already has an equal share of
   * connections.
   */
  #hasEqualShare(address: string): boolean {
    const { maxCnxns, reservedCnxnsMax, reservedCnxnsOneIn } = this.#options;
    const left = maxCnxns - this.#cnxns.size;
    // When none is left, a connection is dropped or the newcomer is refused, whatever its address.
    if (left <= 0 || left > Math.min(reservedCnxnsMax, Math.floor(maxCnxns / reservedCnxnsOneIn))) return false;
    // Counts one more address: the places are kept for one that is not connected yet.
    return this.#cnxns.countOf(address) * (this.#cnxns.addressCount + 1) >= maxCnxns;
  }
}

/** The decoder refuses a ConnectRequest that is too short for a session id. */
function resumesSession(reader: Reader): boolean {
  if (reader.remaining < sessionIdAt + 8) return false;
  for (let at = reader.offset + sessionIdAt, end = at + 8; at < end; at++) {
    if (reader.bytes[at] !== 0) return true;
  }
  return false;
}
