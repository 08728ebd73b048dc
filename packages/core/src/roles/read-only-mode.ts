import type { Millis } from '@tskeeper/protocol';
import { msUntil, type Fingerprint } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import { ReadOnlySequencer } from '../request/read-only-sequencer.ts';
import type { Server } from '../server.ts';
import type { PeerState } from './peer-state.ts';

/** As ZooKeeper's: clients can wait for the end of a shorter election. */
const delayMsMin = 2000;

/**
 * The read-only mode of a server that has had no leader for a while (`readonlymode.enabled`). It
 * then serves the state of its log to clients that have asked for such a server: whatever it has
 * logged, committed or not, and nothing newer.
 *
 * Belongs to one election. During an election the disk is idle and no txn is applied, so nothing
 * replaces or changes the state under the clients; whatever does, a leader's TRUNC or SNAP among
 * them, comes in a later role, and the server has stopped by then.
 */
export class ReadOnlyMode {
  readonly #state: PeerState;
  #fromMs: Millis;
  #server: Server | undefined;
  /** The configuration that the served state holds. */
  #configText: string;

  constructor(state: PeerState, now: Now) {
    this.#state = state;
    this.#fromMs = now.elapsedMs + Math.max(delayMsMin, state.options.core.tickTimeMs);
    this.#configText = state.config.text;
  }

  /** Serves read-only clients; undefined until the delay is over. */
  get server(): Server | undefined {
    return this.#server;
  }

  wake(now: Now): void {
    if (this.#server !== undefined || now.elapsedMs < this.#fromMs) return;
    this.#configText = this.#state.config.text;
    this.#server = this.#state.newServer(now, (parts) => new ReadOnlySequencer(parts), false);
  }

  deadline(): Millis | undefined {
    return this.#server === undefined ? this.#fromMs : undefined;
  }

  /**
   * Another server may have sent a later configuration, which has been written into the state. No
   * watch has fired for that, so the clients connect again: they learn of it when they set their watches again.
   */
  maybeRestart(now: Now): void {
    if (this.#server === undefined || this.#state.config.text === this.#configText) return;
    this.stop(now);
    this.#fromMs = now.elapsedMs;
  }

  /** The election has ended, or this server starts anew. */
  stop(now: Now): void {
    if (this.#server === undefined) return;
    this.#server.stop(now);
    this.#server = undefined;
    this.#state.observer.readOnlyEnded();
  }

  /** `Peer` writes the server. */
  fingerprint(to: Fingerprint, now: Now): void {
    to.number(msUntil(this.#fromMs, now.elapsedMs));
    to.number(this.#server === undefined ? 0 : 1);
  }
}
