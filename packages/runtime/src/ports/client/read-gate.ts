/**
 * Decides which connections the network reads. A connection is not read while its frames wait, or
 * while its output waits above a limit: then TCP slows its client down, and nothing more of it has
 * to be held here.
 *
 * A connection that is not read may have sent bytes nevertheless: it waits for its turn, or does
 * not read its replies. So connections without recent input are read between `beginProbes` and
 * `endProbes`, a chunk each, so that no active client counts as silent.
 */
import type { Millis } from '@tskeeper/protocol';
import type { Now } from '@tskeeper/core';
import type { Network } from '../../network.ts';
import type { ClientCnxn } from './client-cnxn.ts';
import type { ClientPortOptions } from './client-port-options.ts';
import type { PortTurn } from './port-turn.ts';

export class ReadGate {
  readonly #network: Network;
  readonly #options: ClientPortOptions;
  readonly #turn: PortTurn;
  /** Connections that the network does not read. */
  readonly #paused = new Set<ClientCnxn>();
  /** Connections whose frames have begun to wait in this turn. */
  readonly #newlyStalled: ClientCnxn[] = [];
  #probed: ClientCnxn[] = [];
  #nextProbeMs: Millis = 0;

  constructor(network: Network, options: ClientPortOptions, turn: PortTurn) {
    this.#network = network;
    this.#options = options;
    this.#turn = turn;
  }

  update(cnxn: ClientCnxn): void {
    const pause =
      cnxn.stage !== 'closing' &&
      (cnxn.isStalled ||
        cnxn.countedOutputBytes > this.#options.outputHighWaterBytes ||
        (cnxn.address.isOverShare && cnxn.countedOutputBytes > 0 && cnxn.stage === 'open'));
    if (pause === cnxn.isPaused) return;
    cnxn.isPaused = pause;
    if (pause) {
      if (this.#paused.size === 0) this.#nextProbeMs = this.#turn.now.elapsedMs + this.#options.probeIntervalMs;
      this.#paused.add(cnxn);
      this.#network.pause(cnxn.stream);
    } else {
      this.#paused.delete(cnxn);
      this.#network.resume(cnxn.stream);
    }
  }

  /**
   * `updateStalled` comes back to this connection. Most connections that begin to wait are fed in
   * the same turn, and need no call of the network.
   */
  addStalled(cnxn: ClientCnxn): void {
    this.#newlyStalled.push(cnxn);
  }

  updateStalled(): void {
    for (const cnxn of this.#newlyStalled) this.update(cnxn);
    this.#newlyStalled.length = 0;
  }

  /** For a connection that is gone. */
  remove(cnxn: ClientCnxn): void {
    this.#paused.delete(cnxn);
  }

  /** When to probe next; undefined while all connections are read. */
  get nextProbeMs(): Millis | undefined {
    return this.#paused.size === 0 ? undefined : this.#nextProbeMs;
  }

  beginProbes(now: Now): void {
    if (this.#paused.size === 0) return;
    const { probeIntervalMs } = this.#options;
    this.#nextProbeMs = now.elapsedMs + probeIntervalMs;
    for (const cnxn of this.#paused) {
      if (cnxn.isProbed || now.elapsedMs - Math.max(cnxn.receivedMs, cnxn.probedMs) < probeIntervalMs) continue;
      cnxn.isProbed = true;
      cnxn.probedMs = now.elapsedMs;
      this.#probed.push(cnxn);
      this.#network.resume(cnxn.stream);
    }
  }

  endProbes(): void {
    const probed = this.#probed;
    if (probed.length === 0) return;
    this.#probed = [];
    for (const cnxn of probed) this.endProbe(cnxn);
  }

  /** Bytes have arrived, or the round has ended. */
  endProbe(cnxn: ClientCnxn): void {
    if (!cnxn.isProbed) return;
    cnxn.isProbed = false;
    if (cnxn.isPaused && !cnxn.isDropped) this.#network.pause(cnxn.stream);
  }
}
