/**
 * Entering a double barrier `b` of size x, by the steps of ZooKeeper's recipes page, as `p`:
 *
 *     1.  the name: b/guid-p
 *     2.  exists b/ready, with a watch
 *     3.  create b/guid-p (EPHEMERAL)
 *     4.  getChildren b, no watch
 *     5.  fewer than x: wait for `ready`, and enter
 *     6.  otherwise create b/ready, and enter
 *
 * The page does not say what a `ready` of an earlier round means, which participants count for x,
 * and what happens if the list is out of date by step 6. So:
 *
 * - A round begins when `ready` is created, in one multi with a check on each participant that was
 *   seen in step 4: all of them exist, and their version is 0. `ready` has their names: the
 *   openers.
 * - As long as an opener exists, `ready` does: it is deleted together with the last opener
 *   (exit.ts), or after a list without any of them (`clearAway`). So a round lasts as long as one
 *   of its openers is inside, and the next one cannot begin before.
 * - A participant that arrives during a round enters at once, and sets its own data, which makes
 *   its version 1, in one multi with a check on an opener. So it either participates in that round
 *   or counts for the next, never both.
 * - A participant that has left a round has seen all its openers go (exit.ts), so when it enters
 *   again it cannot enter the same round.
 *
 * Hence a participant that enters is in a round at whose beginning x were present that had been in
 * no round before; packages/recipes/test/barriers/participants.test.ts.
 */
import { type CheckOp, type ClientView, KeeperError, op } from '@tskeeper/client';
import { childPath, nameOf } from '@tskeeper/client/internal';
import { deletedByOthers } from '../line/line.ts';
import type { Limit } from '../waiting/limit.ts';
import { Look } from '../waiting/look.ts';
import { untilTheEnd } from '../waiting/next-event.ts';
import { type Doors, namesIn } from './doors.ts';
import { ParticipantPlace } from './participant-place.ts';
import { readReady, readyData, readyName } from './ready.ts';

/** A participant inside. */
export interface Entered {
  readonly place: ParticipantPlace;
  /** The names of the znodes that opened the round. */
  readonly openers: ReadonlySet<string>;
}

/** Rejects as `DoubleBarrier.enter` does. */
export async function enter(doors: Doors, limit: Limit): Promise<Entered> {
  const look = await lookAtReady(doors, limit.signal);
  let place: ParticipantPlace;
  try {
    place = await ParticipantPlace.make(doors, limit.signal);
  } catch (error) {
    look.forget();
    throw error;
  }
  place.whenGone((reason) => limit.end(reason));
  try {
    return await new Entrance(doors, place, limit.signal).pass(look);
  } catch (error) {
    await place.leave();
    throw error;
  }
}

function lookAtReady({ zk, path }: Doors, signal: AbortSignal): Promise<Look<boolean>> {
  const ready = childPath(path, readyName);
  return Look.take(zk, ready, async (watch) => (await zk.exists(ready, { ...untilTheEnd, watch, signal })) !== null);
}

/** The entry of a participant that has its znode. */
export class Entrance {
  readonly #doors: Doors;
  readonly zk: ClientView;
  readonly signal: AbortSignal;
  /** The path of `ready`. */
  readonly ready: string;
  readonly #place: ParticipantPlace;
  readonly #own: string;
  readonly #letInBefore = new Set<string>();

  constructor(doors: Doors, place: ParticipantPlace, signal: AbortSignal) {
    this.#doors = doors;
    this.zk = doors.zk;
    this.ready = childPath(doors.path, readyName);
    this.#place = place;
    this.#own = nameOf(place.path);
    this.signal = signal;
  }

  /** Waits for a round that it may enter. */
  async pass(first: Look<boolean>): Promise<Entered> {
    let look = first;
    // If no event has arrived by now, `ready` did not exist before our znode did.
    let isNew = !look.isOver;
    try {
      for (;;) {
        let openers: ReadonlySet<string> | undefined;
        if (look.answer) {
          openers = await this.goIn(false);
        } else {
          const waiting = await this.waiting();
          if (waiting.length >= this.#doors.size) openers = await this.open(waiting);
          else openers = await this.goIn((await look.next(this.signal)) === 'NodeCreated' && isNew);
        }
        if (openers !== undefined) return { place: this.#place, openers };
        look.forget();
        look = await lookAtReady(this.#doors, this.signal);
        isNew = true;
      }
    } finally {
      look.forget();
    }
  }

  /** The participants that wait for a round to begin, including this one. */
  async waiting(): Promise<string[]> {
    const names = await namesIn(this.#doors, this.signal);
    if (!names.includes(this.#own)) throw deletedByOthers(this.#place.path);
    return names.filter((name) => !this.#letInBefore.has(name));
  }

  /** Begins a round with the waiting participants; undefined if they no longer all wait. */
  async open(waiting: readonly string[]): Promise<ReadonlySet<string> | undefined> {
    const { path, acl } = this.#doors;
    const checks = waiting.map((name) => op.check(childPath(path, name), { version: 0 }));
    try {
      // The create comes first: if many see x participants at once, it rejects all but one.
      await this.zk.multi([op.create(this.ready, readyData(waiting), { acl }), ...checks], { ...untilTheEnd, signal: this.signal });
      return new Set(waiting);
    } catch (error) {
      if (!KeeperError.is(error)) throw error;
      if (error.code === 'BadVersion') this.#letInBefore.add(waiting[error.failedIndex! - 1]!);
      // A participant is gone, or another one was faster; or the outcome is unknown, and reading
      // `ready` shows it.
      else if (!KeeperError.is(error, 'NoNode', 'NodeExists') && !error.retryable) throw error;
      return undefined;
    }
  }

  /** Enters as `ready` says, if it admits us. `isNew`: it was created while our znode existed. */
  async goIn(isNew: boolean): Promise<ReadonlySet<string> | undefined> {
    const ready = await readReady(this.zk, this.ready, this.signal);
    // It was created and deleted. With tskeeper's participants, none has counted us; kazoo's delete
    // it as soon as the first one leaves.
    if (ready === undefined) return isNew && (await this.mark([])) ? new Set() : undefined;
    const { openers, czxid } = ready;
    if (openers?.has(this.#own) === true) return openers;
    // It was created by another kind of client, and is taken as it is.
    if (openers === undefined) return (await this.mark([])) ? new Set() : undefined;
    const opener = (await namesIn(this.#doors, this.signal)).find((name) => openers.has(name));
    if (opener !== undefined) return (await this.mark([op.check(childPath(this.#doors.path, opener))])) ? openers : undefined;
    await this.clearAway(czxid);
    return undefined;
  }

  /**
   * Sets the version of our znode to 1, so that no later round counts us; false if one of the
   * checks fails.
   */
  async mark(checks: readonly CheckOp[]): Promise<boolean> {
    for (;;) {
      try {
        const mark = op.setData(this.#place.path, this.#doors.data, { version: 0 });
        await this.zk.multi([mark, ...checks], { ...untilTheEnd, signal: this.signal });
        return true;
      } catch (error) {
        if (!KeeperError.is(error)) throw error;
        // No other client writes to it: this was our own attempt, whose reply was lost.
        if (error.code === 'BadVersion') return true;
        if (error.code === 'NoNode' && error.failedIndex === 0) throw deletedByOthers(this.#place.path);
        if (error.code === 'NoNode') return false;
        if (!error.retryable) throw error;
      }
    }
  }

  /**
   * Deletes the `ready` of a round whose openers are all gone, if none of them has. Its version
   * does not distinguish it from a later one, so the version of `b` guards this: it is read while
   * this `ready` exists, and any faster participant changes it.
   */
  async clearAway(czxid: bigint): Promise<void> {
    const options = { ...untilTheEnd, signal: this.signal };
    const { path } = this.#doors;
    const { data, stat } = await this.zk.getData(path, options);
    if ((await this.zk.exists(this.ready, options))?.czxid !== czxid) return;
    try {
      await this.zk.multi([op.setData(path, data, { version: stat.version }), op.delete(this.ready)], options);
    } catch (error) {
      if (!KeeperError.is(error)) throw error;
      if (!KeeperError.is(error, 'BadVersion', 'NoNode') && !error.retryable) throw error;
    }
  }
}
