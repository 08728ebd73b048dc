/**
 * Judges what participants of a double barrier tell, in the order in which they tell it. By the names of those who opened a round, which each participant hears of as
 * it gets in, it is known which round it is in.
 */
import type { Participation } from '../../src/index.ts';

/** One way of a participant through the barrier, from the call of `enter` on. */
export interface Passage {
  readonly who: string;
  readonly called: number;
  /** Of its znode, as soon as it is known. */
  name?: string;
  admitted?: number;
  inside?: Participation;
  openers?: ReadonlySet<string>;
  leaving?: number;
  /** When `leave` had resolved. */
  left?: number;
  /** Its process has died, or has given up, and its znode may be there for a while. */
  isOver?: boolean;
}

export class Rounds {
  readonly passages: Passage[] = [];
  readonly #size: number;
  readonly #rounds = new Map<string, ReadonlySet<string>>();
  #now = 0;

  constructor(size: number) {
    this.#size = size;
  }

  get count(): number {
    return this.#rounds.size;
  }

  called(who: string): Passage {
    const passage: Passage = { who, called: ++this.#now };
    this.passages.push(passage);
    return passage;
  }

  /** Whether it came when the round was on. */
  admitted(passage: Passage, inside: Participation): boolean {
    const openers = passage.openers!;
    passage.admitted = ++this.#now;
    passage.inside = inside;
    // It has heard of `ready`, and found it gone: there was a round between its call and now, judged in the end.
    if (openers.size === 0) return true;
    const key = keyOf(passage);
    if (!this.#rounds.has(key)) this.#begins(key, openers);
    const isLate = !openers.has(passage.name!);
    const isOn = this.passages.some(({ name, left }) => openers.has(name!) && (left === undefined || left > passage.called));
    if (isLate && !isOn) throw new Error(`${passage.who} comes into a round whose openers had left`);
    const before = this.passages.findLast(({ who, left }) => who === passage.who && left !== undefined && left < passage.called);
    if (before !== undefined && keyOf(before) === key) throw new Error(`${passage.who} comes into a round that it has left`);
    return isLate;
  }

  #begins(key: string, openers: ReadonlySet<string>): void {
    if (openers.size < this.#size) throw new Error(`a round begins early, with ${openers.size} of ${this.#size}`);
    for (const other of this.#rounds.values()) {
      const shared = [...openers].find((name) => other.has(name));
      if (shared !== undefined) throw new Error(`a round begins early: ${shared} opens two`);
      const inside = this.passages.find(({ name }) => other.has(name!));
      if (inside !== undefined && this.#isAtWork(inside))
        throw new Error(`a round begins early: ${inside.who} is at work in the one before`);
    }
    this.#rounds.set(key, openers);
  }

  #isAtWork({ inside, leaving, isOver }: Passage): boolean {
    return inside?.state === 'held' && leaving === undefined && isOver !== true;
  }

  leaves(passage: Passage): void {
    passage.leaving = ++this.#now;
  }

  left(passage: Passage): void {
    passage.left = ++this.#now;
    const isBehind = (other: Passage) => (other.admitted ?? Infinity) < passage.leaving! && this.#isAtWork(other);
    const behind = this.passages.find((other) => keyOf(other) === keyOf(passage) && isBehind(other));
    if (behind !== undefined) throw new Error(`${passage.who} has left while ${behind.who} was at work`);
  }

  /** What can be judged only when all names are known. */
  judge(): void {
    const named = new Map(this.passages.map((passage) => [passage.name, passage]));
    const nameless = this.passages.filter(({ name }) => name === undefined).length;
    let unknown = 0;
    for (const openers of this.#rounds.values()) {
      const passages = [...openers].flatMap((name) => named.get(name) ?? []);
      unknown += openers.size - passages.length;
      for (const passage of passages) {
        if (passage.openers !== undefined && passage.openers.size > 0 && !passage.openers.has(passage.name!))
          throw new Error(`a round begins early, with ${passage.who}, who came late into another`);
        const early = passages.find(({ admitted }) => admitted !== undefined && admitted < passage.called);
        if (early !== undefined) throw new Error(`a round begins early: ${early.who} was inside before ${passage.who} came`);
      }
    }
    // Made for one who had given up by then.
    if (unknown > nameless) throw new Error(`${unknown} have opened rounds whom nobody knows`);
  }
}

/** Of the round. */
function keyOf({ openers }: Passage): string {
  return [...(openers ?? [])].toSorted().join();
}
