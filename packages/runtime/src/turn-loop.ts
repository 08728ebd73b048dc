/**
 * Drives a server in turns, and decides when the next one runs.
 *
 * A turn is one input from the world (a batch from the network, a completed sync, a timer), all
 * work of the core for it, and then one flush: first the log, so that the disk works while output
 * is sent, then all output. Time is read once per turn.
 */
import type { Now } from '@tskeeper/core';
import type { Millis } from '@tskeeper/protocol';
import type { Clock, TimerHandle } from './clock.ts';
import { earliestDeadline } from './ensemble-runtime.ts';
import type { PendingExpirations } from './pending-expirations.ts';
import type { PendingTransfers } from './pending-transfers.ts';
import type { ServerParts } from './server-parts.ts';
import type { SnapshotTaker } from './snapshot-taker.ts';
import type { Storage, StorageSink } from './storage/storage.ts';

export interface TurnLoopDependencies {
  readonly parts: ServerParts;
  readonly clock: Clock;
  readonly storage: Storage;
  readonly snapshots: SnapshotTaker;
  readonly expirations: PendingExpirations;
  readonly transfers: PendingTransfers;
  /** A longer gap between turns counts as a pause of the process. */
  readonly tickTimeMs: Millis;
  readonly owner: Pick<StorageSink, 'failed'>;
}

export class TurnLoop {
  readonly #parts: ServerParts;
  readonly #clock: Clock;
  readonly #storage: Storage;
  readonly #snapshots: SnapshotTaker;
  readonly #expirations: PendingExpirations;
  readonly #transfers: PendingTransfers;
  readonly #tickTimeMs: Millis;
  readonly #owner: Pick<StorageSink, 'failed'>;
  #timer: TimerHandle | undefined;
  /** Start of the last turn. */
  #lastTurnMs: Millis = Infinity;
  /** When the timer is due; Infinity without one. */
  #timerDueMs: Millis = Infinity;
  #isWakeScheduled = false;
  /** Everything that had arrived by this time has been delivered. */
  #inputWatermarkMs: Millis = -Infinity;
  /** Start of the round in progress; when it ends, `#inputWatermarkMs` becomes this. */
  #inputRoundStartMs: Millis | undefined;
  #wakeAfterInputRound = false;

  constructor({ parts, clock, storage, snapshots, expirations, transfers, tickTimeMs, owner }: TurnLoopDependencies) {
    this.#parts = parts;
    this.#clock = clock;
    this.#storage = storage;
    this.#snapshots = snapshots;
    this.#expirations = expirations;
    this.#transfers = transfers;
    this.#tickTimeMs = tickTimeMs;
    this.#owner = owner;
  }

  /** Runs a turn for this input. Does nothing before the server serves and after it has ended. */
  run(input: (now: Now) => void): void {
    const { stage, clientPort, ensemble } = this.#parts;
    if (stage === 'starting' || stage === 'ended') return;
    const now = this.#clock.now();
    const pausedMs = now.elapsedMs - this.#lastTurnMs;
    this.#lastTurnMs = now.elapsedMs;
    try {
      if (pausedMs > this.#tickTimeMs) ensemble?.peer.resumedAfterPause(now);
      input(now);
      this.#storage.flush();
      clientPort.endTurn(now);
      ensemble?.endTurn(now);
      this.#storage.flush();
      this.#snapshots.maybeStart();
      this.#expirations.resolveEnded(now);
      this.#transfers.settle();
      this.#scheduleWake(now);
    } catch (error) {
      this.#owner.failed(error);
    }
  }

  /** Runs a turn without an input: flushes what the parts have to do. */
  runEmpty(): void {
    this.run(noop);
  }

  #scheduleWake(now: Now): void {
    const { stage, core, clientPort, ensemble } = this.#parts;
    if (this.#isWakeScheduled || stage !== 'serving') return;
    const timed = Math.min(core.deadline() ?? Infinity, clientPort.deadline() ?? Infinity);
    const own = clientPort.needsTurn ? 0 : timed;
    const due = ensemble === undefined ? own : Math.min(own, earliestDeadline(ensemble.ports));
    if (due <= now.elapsedMs) {
      this.#isWakeScheduled = true;
      this.#clock.setImmediate(this.#wake);
      if (timed <= now.elapsedMs) this.#startInputRound(now);
    } else if (due < this.#timerDueMs) {
      this.cancelTimer();
      this.#timerDueMs = due;
      this.#timer = this.#clock.after(due - now.elapsedMs, this.#onTimer);
    }
  }

  cancelTimer(): void {
    if (this.#timer !== undefined) this.#clock.cancel(this.#timer);
    this.#timer = undefined;
  }

  readonly #onTimer = (): void => {
    this.#timer = undefined;
    this.#timerDueMs = Infinity;
    this.#wakeAfterInputRound = true;
    this.#startInputRound(this.#clock.now());
  };

  /**
   * A session is silent only as far as the server has listened: the process may have been suspended
   * or busy, and bytes may wait unread. A round reads everything that arrived before it began: one
   * pass of the loop to accept connections, one to read their bytes, one to deliver them. Sessions
   * expire as of its beginning, so that gaps in time need not be detected, and none postpones
   * anything.
   */
  #startInputRound(now: Now): void {
    if (this.#inputRoundStartMs !== undefined) return;
    this.#inputRoundStartMs = now.elapsedMs;
    this.#parts.clientPort.beginProbes(now);
    this.#clock.setImmediate(this.#afterAccepts);
  }

  readonly #afterAccepts = (): void => this.#clock.setImmediate(this.#afterReads);

  readonly #afterReads = (): void => this.#clock.setImmediate(this.#afterDelivery);

  readonly #afterDelivery = (): void => {
    this.#inputWatermarkMs = this.#inputRoundStartMs!;
    this.#inputRoundStartMs = undefined;
    this.#parts.clientPort.endProbes();
    if (this.#wakeAfterInputRound && !this.#isWakeScheduled) this.#wake();
    this.#wakeAfterInputRound = false;
  };

  readonly #wake = (): void => {
    this.#isWakeScheduled = false;
    this.run((now) => {
      const { stage, core, clientPort, ensemble } = this.#parts;
      // A closing server no longer listens, and expires no session.
      core.wake(now, stage === 'serving' ? this.#inputWatermarkMs : -Infinity);
      clientPort.wake(now);
      if (ensemble !== undefined) for (const port of ensemble.ports) port.wake(now);
    });
  };
}

function noop(): void {}
