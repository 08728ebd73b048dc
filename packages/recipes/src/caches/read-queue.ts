/**
 * Schedules reads of paths: each path once, however often it was requested; one read of a path at a
 * time; and a bounded number in flight. A path that is requested while it is being read is read
 * again, since the order of the two at the server is unknown.
 *
 * Replies arrive in the order in which the reads were sent, as those of one session do, and each is
 * processed before the next.
 */

/** A `look` at one znode, or a `survey` of it and everything below. */
export type ReadKind = 'look' | 'survey';

export class ReadQueue {
  readonly #concurrency: number;
  readonly #read: (path: string, kind: ReadKind) => Promise<void>;
  /** In the order of the requests. */
  readonly #waiting = new Map<string, ReadKind>();
  /** With the visit that follows after the reply. */
  readonly #inFlight = new Map<string, ReadKind | undefined>();
  #hasEnded = false;

  /** `read` never rejects. */
  constructor(concurrency: number, read: (path: string, kind: ReadKind) => Promise<void>) {
    if (!Number.isInteger(concurrency) || concurrency < 1)
      throw new RangeError(`concurrency must be a whole number from 1, not ${concurrency}`);
    this.#concurrency = concurrency;
    this.#read = read;
  }

  isPending(path: string): boolean {
    return this.#inFlight.has(path) || this.#waiting.has(path);
  }

  /** The kind of the visit that follows the current one of this path; undefined if none does. */
  followUpOf(path: string): ReadKind | undefined {
    return this.#inFlight.get(path);
  }

  enqueue(path: string, kind: ReadKind): void {
    if (this.#inFlight.has(path)) {
      this.#inFlight.set(path, widestKind(this.#inFlight.get(path), kind));
      return;
    }
    this.#waiting.set(path, widestKind(this.#waiting.get(path), kind));
    this.#startReads();
  }

  /** Drops waiting visits and those that were to follow; visits in flight continue. */
  clear(): void {
    this.#waiting.clear();
    for (const path of this.#inFlight.keys()) this.#inFlight.set(path, undefined);
  }

  end(): void {
    this.#hasEnded = true;
    this.clear();
  }

  #startReads(): void {
    for (const [path, kind] of this.#waiting) {
      if (this.#inFlight.size >= this.#concurrency) return;
      this.#waiting.delete(path);
      this.#inFlight.set(path, undefined);
      void this.#readOne(path, kind);
    }
  }

  async #readOne(path: string, kind: ReadKind): Promise<void> {
    await this.#read(path, kind);
    const next = this.#inFlight.get(path);
    this.#inFlight.delete(path);
    if (this.#hasEnded) return;
    if (next !== undefined) this.#waiting.set(path, widestKind(this.#waiting.get(path), next));
    this.#startReads();
  }
}

function widestKind(one: ReadKind | undefined, other: ReadKind): ReadKind {
  return one === 'survey' ? one : other;
}
