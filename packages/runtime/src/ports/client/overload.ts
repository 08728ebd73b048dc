/**
 * Keeps what is held for clients below its limit. load-shedder.ts decides by address; this applies
 * its decisions to connections: those of a heavy address are not read while output waits for them,
 * and above the limit the heaviest are closed, one after the other, until the rest fits.
 */
import type { Observer } from '@tskeeper/core';
import type { PortObserver } from '../port-observer.ts';
import type { RateLimitedLog } from '../rate-limited-log.ts';
import type { ClientCnxns } from './client-cnxns.ts';
import type { ClientPortOptions } from './client-port-options.ts';
import type { ClientSender } from './client-sender.ts';
import type { HeldBytes } from './held-bytes.ts';
import type { LoadShedder } from './load-shedder.ts';
import type { PortTurn } from './port-turn.ts';
import type { ReadGate } from './read-gate.ts';

export interface OverloadParts {
  readonly options: ClientPortOptions;
  readonly observer: PortObserver;
  readonly limitObserver: Pick<Observer, 'limitReached'>;
  readonly log: RateLimitedLog;
  readonly turn: PortTurn;
  readonly held: HeldBytes;
  readonly loadShedder: LoadShedder;
  readonly readGate: ReadGate;
  readonly sender: ClientSender;
  readonly cnxns: ClientCnxns;
}

export class Overload {
  readonly #options: ClientPortOptions;
  readonly #observer: PortObserver;
  readonly #limitObserver: Pick<Observer, 'limitReached'>;
  readonly #log: RateLimitedLog;
  readonly #turn: PortTurn;
  readonly #held: HeldBytes;
  readonly #loadShedder: LoadShedder;
  readonly #readGate: ReadGate;
  readonly #sender: ClientSender;
  readonly #cnxns: ClientCnxns;

  constructor(parts: OverloadParts) {
    this.#options = parts.options;
    this.#observer = parts.observer;
    this.#limitObserver = parts.limitObserver;
    this.#log = parts.log;
    this.#turn = parts.turn;
    this.#held = parts.held;
    this.#loadShedder = parts.loadShedder;
    this.#readGate = parts.readGate;
    this.#sender = parts.sender;
    this.#cnxns = parts.cnxns;
  }

  /** Stops or resumes reading where an address has begun or ceased to hold too much. */
  updateShares(): void {
    if (!this.#loadShedder.updateShares()) return;
    this.#limitObserver.limitReached('heldBytesMax');
    for (const cnxn of this.#sender.awaitingDrain) this.#readGate.update(cnxn);
  }

  shed(): void {
    const isShared = this.#cnxns.addressCount > 1;
    if (!this.#loadShedder.isExceeded(isShared)) return;
    for (const cnxn of this.#loadShedder.cnxnsToClose(this.#cnxns.all(), isShared)) {
      const { address, heldBytes, name } = cnxn;
      this.#log.warn(
        this.#turn.now.elapsedMs,
        `${name} was closed: it held ${heldBytes} of the ${address.heldBytes} bytes that are held for ${address.name}, and of ${this.#held.total} that are held for clients; the limit is ${this.#options.inFlightBytesMax}. A client must read its replies and events.`,
        { event: 'cnxn.shed', address: name, bytes: heldBytes, limitBytes: this.#options.inFlightBytesMax },
      );
      this.#observer.cnxnRejected();
      this.#cnxns.drop(cnxn);
    }
  }
}
