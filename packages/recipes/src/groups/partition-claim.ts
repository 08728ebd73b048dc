/** One item of a set, from its claim until its release: its lock, and the work under that lock. */
import { onAbort } from '@tskeeper/client/internal';
import type { Held } from '../line/held.ts';
import type { Lock } from '../locks/lock.ts';
import { RecipeError } from '../recipe-error.ts';

/**
 * An item that this member owns: no other member works on it, as far as this one knows, and no
 * other can write what is written through `held`.
 */
export interface OwnPartition {
  /** Its name. */
  readonly item: string;
  /** The lock, which distinguishes suspended from lost, and fences writes. */
  readonly held: Held;
  /**
   * Aborted when the item has to be released, or its lock is lost: then end the work. The reason is
   * a RecipeError, Revoked, Closed or Lost.
   */
  readonly signal: AbortSignal;
}

/**
 * The work on an item. The item is released when the result is settled and its signal is aborted.
 */
export type PartitionWork = (partition: OwnPartition) => Promise<void> | void;

export interface ClaimListener {
  /** The item is now owned, or no longer. */
  changed(): void;
  failed(error: unknown): void;
}

export class PartitionClaim {
  readonly item: string;
  /** Resolves when it is released. */
  readonly over: Promise<void>;
  readonly #lock: Lock;
  readonly #work: PartitionWork;
  readonly #listener: ClaimListener;
  readonly #back = new AbortController();
  #partition: OwnPartition | undefined;

  constructor(item: string, lock: Lock, work: PartitionWork, listener: ClaimListener) {
    this.item = item;
    this.#lock = lock;
    this.#work = work;
    this.#listener = listener;
    this.over = this.#run();
  }

  /** Set while it is owned. */
  get partition(): OwnPartition | undefined {
    return this.#partition;
  }

  get isGivenBack(): boolean {
    return this.#back.signal.aborted;
  }

  giveBack(reason: unknown): void {
    if (!this.isGivenBack) this.#back.abort(reason);
  }

  async #run(): Promise<void> {
    while (!this.isGivenBack) {
      try {
        await this.#own(await this.#lock.acquire({ signal: this.#back.signal }));
      } catch (error) {
        const isEnded = this.isGivenBack && error === this.#back.signal.reason;
        // Lost: another client has deleted the znode of the wait, or of the lock. Queue again, at
        // the end.
        if (isEnded || (error instanceof RecipeError && error.code === 'Lost')) continue;
        // Also when it is being released: the next owner would wait for a znode that may not be
        // deleted.
        this.#listener.failed(error);
        return;
      }
    }
  }

  async #own(held: Held): Promise<void> {
    const end = new AbortController();
    const partition: OwnPartition = { item: this.item, held, signal: end.signal };
    const over = new Promise<void>((resolve) => {
      for (const { signal } of [this.#back, held]) {
        const ended = () => {
          end.abort(signal.reason);
          resolve();
        };
        if (signal.aborted) ended();
        else onAbort(signal, ended);
      }
    });
    this.#partition = partition;
    this.#listener.changed();
    await this.#workOn(partition);
    await over;
    this.#partition = undefined;
    await held.release();
    this.#listener.changed();
  }

  /**
   * What the work throws is the program's own error, and becomes an unhandled rejection; the item
   * stays owned until it is revoked.
   */
  async #workOn(partition: OwnPartition): Promise<void> {
    try {
      await this.#work(partition);
    } catch (error) {
      void Promise.reject(error);
    }
  }
}
