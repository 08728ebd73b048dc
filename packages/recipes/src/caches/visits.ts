/**
 * Which paths are to be read: each once, however often it was asked for; one read of a path at a time; and a bounded number of them under
 * way. A path that is asked for while it is being read is read once more, since nobody can say which of the two came first at the server.
 *
 * Answers come in the order in which the reads were begun, as those of one session do, and each is taken over before the next.
 */

/** A `look` at one znode, or a `survey` of it and of everything below. */
export type VisitKind = 'look' | 'survey';

export class Visits {
  readonly #concurrency: number;
  readonly #visit: (path: string, kind: VisitKind) => Promise<void>;
  /** In the order in which they were asked for. */
  readonly #waiting = new Map<string, VisitKind>();
  /** With what is to follow once it is answered. */
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

  /** As what the path is read once more when it has been; undefined when it is not. */
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

  /** Forgets what waits to be read, and what was to be read once more; what is under way goes on. */
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
