/**
 * Out of a double barrier `b`, by the steps of ZooKeeper's recipes page, as `p`:
 *
 *     1.  getChildren b, no watch
 *     2.  nobody: out
 *     3.  p alone: delete it, and out
 *     4.  p is the lowest: wait for the highest
 *     5.  otherwise delete p, if it is still there, and wait for the lowest
 *     6.  and 1. again
 *
 * Each one that goes wakes one other, the lowest, but the lowest itself wakes all. On the page nobody ever sees step 2, as `ready` is a child as well: it is passed
 * over, and goes in one multi with the last of those who opened the round.
 *
 * Only those count who were inside at the first look. One that has left and is back would wait inside for the slow ones of the round before, who would wait for
 * it; and so would one that came too late for the round. So of one that waits to get in, which its version tells, the wait is given up. The wait has no circle:
 * whoever waits with its znode still there is lower than the one it waits for.
 */
import { childPath, nameOf } from '@tskeeper/client/internal';
import { eventUnless } from '../waiting/next-event.ts';
import { type Doors, namesIn } from './doors.ts';
import type { Entered } from './entrance.ts';

/** How the znodes of our participants are called. */
const guidName = /^_c_[0-9a-f-]{36}-/;

/** Of one who is inside. */
export class Exit {
  readonly #doors: Doors;
  readonly #entered: Entered;
  readonly #own: string;
  /** Who was there at the first look, without those who were not inside. */
  seen: Set<string> | undefined;

  constructor(doors: Doors, entered: Entered) {
    this.#doors = doors;
    this.#entered = entered;
    this.#own = nameOf(entered.place.path);
  }

  /** Deletes the znode by `release`, and resolves when all have gone who are inside now. */
  async pass(release: () => Promise<void>, signal: AbortSignal): Promise<void> {
    const own = this.#own;
    const { place } = this.#entered;
    let isReleased = false;
    for (;;) {
      const names = await namesIn(this.#doors, signal);
      const inside = this.inside(names);
      const [lowest] = inside;
      if (lowest === undefined) return;
      let next = lowest;
      if (!isReleased && lowest === own && inside.length > 1) {
        next = inside.at(-1)!;
      } else if (!isReleased) {
        place.isLast = this.isLast(names);
        await release();
        isReleased = true;
        if (lowest === own && place.isGone) return;
        // Where no server could be reached it is still there, and must not be found by ourselves when we come again.
        if (lowest === own) continue;
      }
      await this.#next(next, signal);
    }
  }

  /** Until something has happened to that one, or it is known not to be inside. */
  async #next(name: string, signal: AbortSignal): Promise<void> {
    const { zk, path } = this.#doors;
    const each = childPath(path, name);
    const isWaited = await eventUnless(
      zk,
      each,
      (options) => zk.exists(each, options),
      (stat) => stat === null || !this.isInside(name, stat.version),
      signal,
    );
    if (!isWaited) this.seen!.delete(name);
  }

  /** Those who came late have another version than 0, since they say so (entrance.ts). Of other kinds of clients nobody knows. */
  isInside(name: string, version: number): boolean {
    return version !== 0 || this.#entered.openers.has(name) || !guidName.test(name);
  }

  /** For whom it waits, the lowest first. */
  inside(names: readonly string[]): string[] {
    this.seen ??= new Set(names);
    return names.filter((name) => this.seen!.has(name)).toSorted();
  }

  /** Of those who opened the round. */
  isLast(names: readonly string[]): boolean {
    const { openers } = this.#entered;
    return openers.has(this.#own) && !names.some((name) => name !== this.#own && openers.has(name));
  }
}
