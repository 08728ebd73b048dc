/**
 * Schedules reads of paths: each path once, however often it was requested; one read of a path at a
 * time; and a bounded number in flight. A path that is requested while it is being read is read
 * again, since the order of the two at the server is unknown.
 *
 * Replies arrive in the order in which the reads were sent, as those of one session do, and each is
 * processed before the next.
 */

/** A `look` at one znode, or a `survey` of it and everything below. */
export type VisitKind = 'look' | 'survey';

export class Visits {
  readonly #concurrency: number;
  readonly #visit: (path: string, kind: VisitKind) => Promise<void>;
  /** In the order of the requests. */
  readonly #waiting = new Map<string, VisitKind>();
  /** With the visit that follows after the reply. */
  readonly #underWay = new Map<string, VisitKind | undefined>();
  #isOver = false;

  /** `visit` never rejects. */
  constructor(concurrency: number, visit: (path: string, kind: VisitKind) => Promise<void>) {
    if (!Number.isInteger(concurrency) || concurrency < 1) throw new RangeError(`concurrency is a whole number from 1, not ${concurrency}`);
    this.#concurrency = concurrency;
    this.#visit = visit;
  }

  isPending(path: string): boolean {
    return this.#underWay.has(path) || this.#waiting.has(path);
  }

  /** The kind of the visit that follows the current one of this path; undefined if none does. */
  following(path: string): VisitKind | undefined {
    return this.#underWay.get(path);
  }

  ask(path: string, kind: VisitKind): void {
    if (this.#underWay.has(path)) {
      this.#underWay.set(path, widest(this.#underWay.get(path), kind));
      return;
    }
    this.#waiting.set(path, widest(this.#waiting.get(path), kind));
    this.#begin();
  }

  /** Drops waiting visits and those that were to follow; visits in flight continue. */
  clear(): void {
    this.#waiting.clear();
    for (const path of this.#underWay.keys()) this.#underWay.set(path, undefined);
  }

  end(): void {
    this.#isOver = true;
    this.clear();
  }

  #begin(): void {
    for (const [path, kind] of this.#waiting) {
      if (this.#underWay.size >= this.#concurrency) return;
      this.#waiting.delete(path);
      this.#underWay.set(path, undefined);
      void this.#perform(path, kind);
    }
  }

  async #perform(path: string, kind: VisitKind): Promise<void> {
    await this.#visit(path, kind);
    const next = this.#underWay.get(path);
    this.#underWay.delete(path);
    if (this.#isOver) return;
    if (next !== undefined) this.#waiting.set(path, widest(this.#waiting.get(path), next));
    this.#begin();
  }
}

function widest(one: VisitKind | undefined, other: VisitKind): VisitKind {
  return one === 'survey' ? one : other;
}
