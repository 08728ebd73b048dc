/**
 * Leaving a double barrier `b`, by the steps of ZooKeeper's recipes page, as `p`:
 *
 *     1.  getChildren b, no watch
 *     2.  none: done
 *     3.  p alone: delete it, done
 *     4.  p is the lowest: wait for the highest
 *     5.  otherwise delete p, if it still exists, and wait for the lowest
 *     6.  and 1. again
 *
 * Each participant that leaves wakes one other, the lowest, but the lowest itself wakes all. On the
 * page, step 2 is never reached, as `ready` is a child as well; here it is ignored, and one multi
 * deletes it together with the last of those that opened the round.
 *
 * Only participants that were inside at the first read count. One that has left and entered again
 * would otherwise wait inside for the slow ones of the round before, which would wait for it; and
 * so would one that arrived too late for the round. So this does not wait for a participant that
 * waits to enter, which its version shows. The waits form no cycle: a participant that waits while
 * its znode still exists is lower than the one it waits for.
 */
import { childPath, nameOf } from '@tskeeper/client/internal';
import { waitForEventUnless } from '../waiting/watch-once.ts';
import { type BarrierContext, participantNames } from './barrier-context.ts';
import type { EnteredBarrier } from './barrier-entry.ts';

/** The form of our participants' znode names. */
const guidName = /^_c_[0-9a-f-]{36}-/;

/** The exit of a participant that is inside. */
export class BarrierExit {
  readonly #context: BarrierContext;
  readonly #entered: EnteredBarrier;
  readonly #ownName: string;
  /** The participants at the first read, without those that were not inside. */
  seen: Set<string> | undefined;

  constructor(context: BarrierContext, entered: EnteredBarrier) {
    this.#context = context;
    this.#entered = entered;
    this.#ownName = nameOf(entered.node.path);
  }

  /** Deletes the znode by `release`, and resolves when all that are inside now have gone. */
  async run(release: () => Promise<void>, signal: AbortSignal): Promise<void> {
    const own = this.#ownName;
    const { node } = this.#entered;
    let isReleased = false;
    for (;;) {
      const names = await participantNames(this.#context, signal);
      const inside = this.namesInside(names);
      const [lowest] = inside;
      if (lowest === undefined) return;
      let next = lowest;
      if (!isReleased && lowest === own && inside.length > 1) {
        next = inside.at(-1)!;
      } else if (!isReleased) {
        node.isLastOpener = this.isLastOpener(names);
        await release();
        isReleased = true;
        if (lowest === own && node.isDeleted) return;
        // If no server could be reached, our znode still exists, and must not be found when this
        // client enters again.
        if (lowest === own) continue;
      }
      await this.#waitFor(next, signal);
    }
  }

  /** Waits for an event of that participant, or until it is known not to be inside. */
  async #waitFor(name: string, signal: AbortSignal): Promise<void> {
    const { zk, path } = this.#context;
    const each = childPath(path, name);
    const hasWaited = await waitForEventUnless(
      zk,
      each,
      (options) => zk.exists(each, options),
      (stat) => stat === null || !this.isInside(name, stat.version),
      signal,
    );
    if (!hasWaited) this.seen!.delete(name);
  }

  /**
   * A participant that arrived late sets its version to 1 (barrier-entry.ts). For other kinds of
   * clients this is unknown.
   */
  isInside(name: string, version: number): boolean {
    return version !== 0 || this.#entered.openers.has(name) || !guidName.test(name);
  }

  /** The participants to wait for, the lowest first. */
  namesInside(names: readonly string[]): string[] {
    this.seen ??= new Set(names);
    return names.filter((name) => this.seen!.has(name)).toSorted();
  }

  /** Whether it is the last of those that opened the round. */
  isLastOpener(names: readonly string[]): boolean {
    const { openers } = this.#entered;
    return openers.has(this.#ownName) && !names.some((name) => name !== this.#ownName && openers.has(name));
  }
}
