/**
 * Into a double barrier `b` of size x, by the steps of ZooKeeper's recipes page, as `p`:
 *
 *     1.  the name: b/guid-p
 *     2.  exists b/ready, with a watch
 *     3.  create b/guid-p (EPHEMERAL)
 *     4.  getChildren b, no watch
 *     5.  fewer than x: wait for `ready`, and in
 *     6.  otherwise create b/ready, and in
 *
 * The page leaves open what `ready` of an earlier round means, whom the x may be, and what comes of a list that is old by the time of step 6. So:
 *
 * - A round begins when `ready` is created, in one multi with a check on each participant that was seen in step 4: all of them are there, and
 *   their version is 0. `ready` has their names: the openers.
 * - As long as an opener is there `ready` is, since it is taken away along with the last of them (exit.ts), or when a list behind it has none of them
 *   (`clearAway`). So the round is on as long as one of its openers is inside, and the next one cannot begin before.
 * - Who comes when a round is on goes in at once, and sets its own data, which makes its version 1, in one multi with a check on an opener. So it is a
 *   participant of that round, or counts for the next, and never both.
 * - Who has left a round has seen all its openers go (exit.ts), so when it comes again it cannot come into the same round.
 *
 * Hence whoever gets in is in a round for whose beginning x were there that had been in no round before; packages/recipes/test/barriers/participants.test.ts.
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

/** Somebody inside. */
export interface Entered {
  readonly place: ParticipantPlace;
  /** Names of the znodes by which the round was opened. */
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

/** Of one who has its znode. */
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

  /** Waits for a round that it is let into. */
  async pass(first: Look<boolean>): Promise<Entered> {
    let look = first;
    // `ready` was not there before our znode was, if we have not heard of it by then.
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

  /** Who waits for a round to begin, this one among them. */
  async waiting(): Promise<string[]> {
    const names = await namesIn(this.#doors, this.signal);
    if (!names.includes(this.#own)) throw deletedByOthers(this.#place.path);
    return names.filter((name) => !this.#letInBefore.has(name));
  }

  /** Begins a round with those who wait; undefined when that is not what they do any more. */
  async open(waiting: readonly string[]): Promise<ReadonlySet<string> | undefined> {
    const { path, acl } = this.#doors;
    const checks = waiting.map((name) => op.check(childPath(path, name), { version: 0 }));
    try {
      // The create first: of many who see x at once, all but one are refused by it.
      await this.zk.multi([op.create(this.ready, readyData(waiting), { acl }), ...checks], { ...untilTheEnd, signal: this.signal });
      return new Set(waiting);
    } catch (error) {
      if (!KeeperError.is(error)) throw error;
      if (error.code === 'BadVersion') this.#letInBefore.add(waiting[error.failedIndex! - 1]!);
      // Somebody has died, or another was faster; or nobody can say what became of it, and `ready` tells.
      else if (!KeeperError.is(error, 'NoNode', 'NodeExists') && !error.retryable) throw error;
      return undefined;
    }
  }

  /** By `ready`, if it lets us in. `isNew`: it was made while our znode was there. */
  async goIn(isNew: boolean): Promise<ReadonlySet<string> | undefined> {
    const ready = await readReady(this.zk, this.ready, this.signal);
    // It has come and gone. With tskeeper's participants nobody has seen us; kazoo's delete it as soon as the first one leaves.
    if (ready === undefined) return isNew && (await this.mark([])) ? new Set() : undefined;
    const { openers, czxid } = ready;
    if (openers?.has(this.#own) === true) return openers;
    // Of another kind of client, taken at its word.
    if (openers === undefined) return (await this.mark([])) ? new Set() : undefined;
    const opener = (await namesIn(this.#doors, this.signal)).find((name) => openers.has(name));
    if (opener !== undefined) return (await this.mark([op.check(childPath(this.#doors.path, opener))])) ? openers : undefined;
    await this.clearAway(czxid);
    return undefined;
  }

  /** Makes the version of our znode 1, so that no later round counts us; false when a check speaks against it. */
  async mark(checks: readonly CheckOp[]): Promise<boolean> {
    for (;;) {
      try {
        const mark = op.setData(this.#place.path, this.#doors.data, { version: 0 });
        await this.zk.multi([mark, ...checks], { ...untilTheEnd, signal: this.signal });
        return true;
      } catch (error) {
        if (!KeeperError.is(error)) throw error;
        // Nobody else writes to it: it was an attempt of ours whose answer was lost.
        if (error.code === 'BadVersion') return true;
        if (error.code === 'NoNode' && error.failedIndex === 0) throw deletedByOthers(this.#place.path);
        if (error.code === 'NoNode') return false;
        if (!error.retryable) throw error;
      }
    }
  }

  /**
   * Takes away `ready` of a round whose openers are all gone, without one of them having done so. By its version it cannot be told from a later one, so what
   * guards this is the version of `b`: it is read while this `ready` is there, and whoever is faster changes it.
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
