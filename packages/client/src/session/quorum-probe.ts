/**
 * Searches for a server with a quorum while the client is connected to one without: asks the other
 * servers of the list in turn, one at a time, each on a connection of its own. The client then
 * moves to the first that has a quorum.
 */
import type { Millis } from '@tskeeper/protocol';
import type { ServerAddress } from '../transport.ts';
import type { DialPlan } from './dial-plan.ts';

export interface ProbeOutput {
  /**
   * Ask this server, on a separate connection, whether it is part of a quorum; then call `probed`.
   */
  probe(server: ServerAddress): void;
}

/**
 * Pauses between probes for a server with a quorum, doubling as in ZooKeeper's client; there they
 * grow to a minute, so that with several servers a client may stay read-only for minutes after a
 * quorum is back.
 */
const pauseMsMin = 100;
const pauseMsMax = 5000;

export class QuorumProbe {
  readonly #dialPlan: DialPlan;
  readonly #output: ProbeOutput;
  #nextAtMs: Millis = 0;
  #pauseMs: Millis = 0;
  /** The server whose answer is due; undefined: none. */
  #server: ServerAddress | undefined;

  constructor(dialPlan: DialPlan, output: ProbeOutput) {
    this.#dialPlan = dialPlan;
    this.#output = output;
  }

  /** When to start the next probe; Infinity while one waits for its answer. */
  get deadlineMs(): Millis {
    return this.#server === undefined ? this.#nextAtMs : Infinity;
  }

  connected(nowMs: Millis): void {
    this.#pauseMs = pauseMsMin;
    this.#nextAtMs = nowMs + pauseMsMin;
  }

  disconnected(): void {
    this.#server = undefined;
  }

  start(nowMs: Millis): void {
    this.#server = this.#dialPlan.nextToProbe();
    this.#nextAtMs = nowMs + this.#pauseMs;
    this.#pauseMs = Math.min(this.#pauseMs * 2, pauseMsMax);
    this.#output.probe(this.#server);
  }

  /** Ends the probe. Returns its server; undefined if the connection that needed it was lost. */
  finish(): ServerAddress | undefined {
    const server = this.#server;
    this.#server = undefined;
    return server;
  }
}
