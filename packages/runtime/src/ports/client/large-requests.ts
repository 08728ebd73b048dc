/**
 * Counts large requests that the core has not answered. The core keeps a write until it is
 * committed, so what clients may send of them is limited by their length and not by their number.
 */
import type { ClientCnxn } from './client-cnxn.ts';
import type { ClientPortOptions } from './client-port-options.ts';
import type { PortTurn } from './port-turn.ts';

export class LargeRequests {
  readonly #options: ClientPortOptions;
  readonly #turn: PortTurn;
  readonly #cnxns = new Set<ClientCnxn>();
  #bytes = 0;

  constructor(options: ClientPortOptions, turn: PortTurn) {
    this.#options = options;
    this.#turn = turn;
  }

  get areLimited(): boolean {
    return this.#options.largeRequestThreshold >= 0;
  }

  /** Whether one more request of this length must be rejected. */
  exceeds(bytes: number): boolean {
    const { largeRequestThreshold, largeRequestMaxBytes } = this.#options;
    return largeRequestThreshold >= 0 && bytes > largeRequestThreshold && this.#bytes + bytes > largeRequestMaxBytes;
  }

  /** Counts the request that is passed to the core now, if it is a large one. */
  add(cnxn: ClientCnxn, bytes: number): void {
    const { largeRequestThreshold } = this.#options;
    if (largeRequestThreshold < 0 || bytes <= largeRequestThreshold) return;
    this.#bytes += bytes;
    (cnxn.largeRequests ??= []).push({ frame: cnxn.framesFed, bytes });
    this.#cnxns.add(cnxn);
  }

  /** Forgets the requests of a connection that closes. */
  release(cnxn: ClientCnxn): void {
    if (cnxn.largeRequests === undefined) return;
    for (const { bytes } of cnxn.largeRequests) this.#bytes -= bytes;
    cnxn.largeRequests = undefined;
    this.#cnxns.delete(cnxn);
  }

  /**
   * Replies are in the order of requests, so the number of outstanding ones says which are done.
   */
  forgetAnswered(): void {
    for (const cnxn of this.#cnxns) {
      const requests = cnxn.largeRequests!;
      const answered = cnxn.framesFed - (this.#turn.front.inspect.cnxn(cnxn.stream)?.outstandingRequests ?? 0);
      let done = 0;
      while (done < requests.length && requests[done]!.frame <= answered) this.#bytes -= requests[done++]!.bytes;
      requests.splice(0, done);
      if (requests.length === 0) {
        cnxn.largeRequests = undefined;
        this.#cnxns.delete(cnxn);
      }
    }
  }
}
