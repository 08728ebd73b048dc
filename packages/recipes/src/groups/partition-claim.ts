/** One item of a set, from its claim until its release: its lock, and the work under that lock. */
import { onAbort } from '@tskeeper/client/internal';
import type { Hold } from '../wait-queue/hold.ts';
import type { Lock } from '../locks/lock.ts';
import { RecipeError } from '../recipe-error.ts';

/**
 * An item that this member owns: no other member works on it, as far as this one knows, and no
 * other can write what is written through `hold`.
 */
export interface OwnedPartition {
  /** Its name. */
  readonly item: string;
  /** The lock, which distinguishes suspended from lost, and fences writes. */
  readonly hold: Hold;
  /**
   * Aborted when the item has to be released, or its lock is lost: then end the work. The reason is
   * a RecipeError, Revoked, Closed or Lost.
   */
  readonly signal: AbortSignal;
}

/**
 * The work on an item. The item is released when the result is settled and its signal is aborted.
 */
export type PartitionWork = (partition: OwnedPartition) => Promise<void> | void;

export interface ClaimListener {
  /** The item is now owned, or no longer. */
  onChange(): void;
  onError(error: unknown): void;
}

export class PartitionClaim {
  readonly item: string;
  /** Resolves when it is released. */
  readonly ended: Promise<void>;
  readonly #lock: Lock;
  readonly #work: PartitionWork;
  readonly #listener: ClaimListener;
  readonly #releaseController = new AbortController();
  #partition: OwnedPartition | undefined;

  constructor(item: string, lock: Lock, work: PartitionWork, listener: ClaimListener) {
    this.item = item;
    this.#lock = lock;
    this.#work = work;
    this.#listener = listener;
    this.ended = this.#run();
  }

  /** Set while it is owned. */
  get partition(): OwnedPartition | undefined {
    return this.#partition;
  }

  get isReleased(): boolean {
    return this.#releaseController.signal.aborted;
  }

  release(reason: unknown): void {
    if (!this.isReleased) this.#releaseController.abort(reason);
  }

  async #run(): Promise<void> {
    while (!this.isReleased) {
      try {
        await this.#workUnderLock(await this.#lock.acquire({ signal: this.#releaseController.signal }));
      } catch (error) {
        const isEnded = this.isReleased && error === this.#releaseController.signal.reason;
        // Lost: another client has deleted the znode of the wait, or of the lock. Queue again, at
        // the end.
        if (isEnded || (error instanceof RecipeError && error.code === 'Lost')) continue;
        // Also when it is being released: the next owner would wait for a znode that may not be
        // deleted.
        this.#listener.onError(error);
        return;
      }
    }
  }

  async #workUnderLock(hold: Hold): Promise<void> {
    const end = new AbortController();
    const partition: OwnedPartition = { item: this.item, hold, signal: end.signal };
    const over = new Promise<void>((resolve) => {
      for (const { signal } of [this.#releaseController, hold]) {
        const ended = () => {
          end.abort(signal.reason);
          resolve();
        };
        if (signal.aborted) ended();
        else onAbort(signal, ended);
      }
    });
    this.#partition = partition;
    this.#listener.onChange();
    await this.#runWork(partition);
    await over;
    this.#partition = undefined;
    await hold.release();
    this.#listener.onChange();
  }

  /**
   * What the work throws is the program's own error, and becomes an unhandled rejection; the item
   * stays owned until it is revoked.
   */
  async #runWork(partition: OwnedPartition): Promise<void> {
    try {
      await this.#work(partition);
    } catch (error) {
      void Promise.reject(error);
    }
  }
}
