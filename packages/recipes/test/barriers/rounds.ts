/**
 * Checks what participants of a double barrier report, in the order of their reports. A participant
 * learns the names of those that opened its round, which identify the round.
 */
import type { Participation } from '../../src/index.ts';

/** One passage of a participant through the barrier, from the call of `enter` on. */
export interface Passage {
  readonly who: string;
  readonly called: number;
  /** The name of its znode, as soon as it is known. */
  name?: string;
  admitted?: number;
  inside?: Participation;
  openers?: ReadonlySet<string>;
  leaving?: number;
  /** When `leave` had resolved. */
  left?: number;
  /** Its process has died, or has given up, and its znode may still exist for a while. */
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

  /** Whether it entered during the round. */
  admitted(passage: Passage, inside: Participation): boolean {
    const openers = passage.openers!;
    passage.admitted = ++this.#now;
    passage.inside = inside;
    // It received the event of `ready`, and found it gone: there was a round between its call and
    // now, checked at the end.
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

  /** The checks that need all names. */
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
    // Created by a participant that had given up by then.
    if (unknown > nameless) throw new Error(`${unknown} unknown participants have opened rounds`);
  }
}

/** Of the round. */
function keyOf({ openers }: Passage): string {
  return [...(openers ?? [])].toSorted().join();
}
