/**
 * Checks the memory and the disk of a running server ten times a second.
 *
 * A disk that does not answer is as bad as one that fails: after a while every session that waits
 * for it has expired, and a server that waits longer serves no client. So the server fails, as it
 * does when it takes that long to close.
 */
import type { Millis } from '@tskeeper/protocol';
import type { Clock, TimerHandle } from './clock.ts';
import { DiskError } from './disk.ts';
import type { Logger } from './logger.ts';
import { MemoryGuard } from './memory-guard.ts';
import type { MemoryProbe } from './memory-use.ts';
import type { ServerParts } from './server-parts.ts';
import type { Storage, StorageSink } from './storage/storage.ts';
import type { TurnLoop } from './turn-loop.ts';

export interface WatchdogDependencies {
  readonly parts: ServerParts;
  readonly clock: Clock;
  readonly storage: Storage;
  readonly turns: TurnLoop;
  /** See `RuntimeHooks.memory`. */
  readonly memory: MemoryProbe | undefined;
  readonly logger: Logger;
  readonly maxSessionTimeoutMs: Millis;
  /** For the error of a server that cannot close. */
  readonly dataDir: string;
  readonly owner: Pick<StorageSink, 'failed'>;
}

/** How often a server checks its memory and its disk. */
const watchdogIntervalMs = 100;
/** Minimum time limit of the disk for one batch of the log, and for closing. */
const diskTimeoutMsMin = 10_000;

export class Watchdog {
  readonly #dependencies: WatchdogDependencies;
  readonly #diskTimeoutMs: Millis;
  #timer: TimerHandle | undefined;
  #guard: MemoryGuard | undefined;
  /** How long the server has been closing, without time in which the process was suspended. */
  #closingMs: Millis = 0;

  constructor(dependencies: WatchdogDependencies) {
    this.#dependencies = dependencies;
    this.#diskTimeoutMs = Math.max(diskTimeoutMsMin, dependencies.maxSessionTimeoutMs);
  }

  start(): void {
    const { memory, logger, parts, clock } = this.#dependencies;
    if (memory !== undefined) this.#guard = new MemoryGuard(memory, parts.core, logger);
    this.#timer = clock.after(watchdogIntervalMs, this.#check);
  }

  stop(): void {
    if (this.#timer !== undefined) this.#dependencies.clock.cancel(this.#timer);
    this.#timer = undefined;
  }

  readonly #check = (): void => {
    const { parts, clock, storage, dataDir, owner } = this.#dependencies;
    this.#timer = clock.after(watchdogIntervalMs, this.#check);
    this.#checkMemory();
    storage.checkDiskTimeout(this.#diskTimeoutMs, watchdogIntervalMs);
    if (parts.stage === 'closing' && (this.#closingMs += watchdogIntervalMs) >= this.#diskTimeoutMs) {
      owner.failed(new DiskError('ETIMEDOUT', 'close', dataDir));
    }
  };

  #checkMemory(): void {
    const guard = this.#guard;
    const { parts, clock, turns } = this.#dependencies;
    if (guard === undefined || !guard.check(clock.now().elapsedMs)) return;
    turns.run(() => {
      parts.core.setMemoryState(guard.state, guard.watchesMayGrow);
      parts.clientPort.memoryState = guard.state;
    });
  }
}
