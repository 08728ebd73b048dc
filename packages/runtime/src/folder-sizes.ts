/**
 * The sizes of a server's folders, for four letter words and metrics. They need not be exact to the
 * second, and each measurement looks at every file, so they are measured from time to time.
 */
import type { Clock, TimerHandle } from './clock.ts';
import type { ServerParts } from './server-parts.ts';
import type { Storage, StorageSizes } from './storage/storage.ts';

/** Interval between two measurements. */
const sizesIntervalMs = 10_000;

export class FolderSizes {
  readonly #clock: Clock;
  readonly #storage: Storage;
  readonly #parts: ServerParts;
  #timer: TimerHandle | undefined;
  /** As last measured; 0 before that. */
  latest: StorageSizes = { dataDirBytes: 0, logDirBytes: 0 };

  constructor(clock: Clock, storage: Storage, parts: ServerParts) {
    this.#clock = clock;
    this.#storage = storage;
    this.#parts = parts;
  }

  /** Measures now, and again for as long as the server serves. */
  async measure(): Promise<void> {
    try {
      this.latest = await this.#storage.sizes();
    } catch {
      // A purge may be running; the next measurement works again.
    }
    if (this.#parts.stage === 'serving') this.#timer = this.#clock.after(sizesIntervalMs, () => void this.measure());
  }

  cancelTimer(): void {
    if (this.#timer !== undefined) this.#clock.cancel(this.#timer);
    this.#timer = undefined;
  }
}
