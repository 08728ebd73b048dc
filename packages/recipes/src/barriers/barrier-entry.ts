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
 *   (barrier-exit.ts), or after a list without any of them (`removeStaleReady`). So a round lasts as long as one
 *   of its openers is inside, and the next one cannot begin before.
 * - A participant that arrives during a round enters at once, and sets its own data, which makes
 *   its version 1, in one multi with a check on an opener. So it either participates in that round
 *   or counts for the next, never both.
 * - A participant that has left a round has seen all its openers go (barrier-exit.ts), so when it enters
 *   again it cannot enter the same round.
 *
 * Hence a participant that enters is in a round at whose beginning x were present that had been in
 * no round before; packages/recipes/test/barriers/participants.test.ts.
 */
import { type CheckOp, type ClientView, KeeperError, op } from '@tskeeper/client';
import { childPath, nameOf } from '@tskeeper/client/internal';
import { nodeDeletedError } from '../wait-queue/wait-queue.ts';
import type { Deadline } from '../waiting/deadline.ts';
import { retryForever } from '../waiting/own-znode.ts';
import { WatchedRead } from '../waiting/watch-once.ts';
import { type BarrierContext, participantNames } from './barrier-context.ts';
import { ParticipantNode } from './participant-node.ts';
import { readReady, readyData, readyName } from './ready.ts';

/** A participant inside. */
export interface EnteredBarrier {
  readonly node: ParticipantNode;
  /** The names of the znodes that opened the round. */
  readonly openers: ReadonlySet<string>;
}

/** Rejects as `DoubleBarrier.enter` does. */
export async function enterBarrier(context: BarrierContext, deadline: Deadline): Promise<EnteredBarrier> {
  const look = await readReadyWithWatch(context, deadline.signal);
  let node: ParticipantNode;
  try {
    node = await ParticipantNode.create(context, deadline.signal);
  } catch (error) {
    look.cancel();
    throw error;
  }
  node.onGone((reason) => deadline.abort(reason));
  try {
    return await new BarrierEntry(context, node, deadline.signal).run(look);
  } catch (error) {
    await node.leave();
    throw error;
  }
}

function readReadyWithWatch({ zk, path }: BarrierContext, signal: AbortSignal): Promise<WatchedRead<boolean>> {
  const ready = childPath(path, readyName);
  return WatchedRead.start(zk, ready, async (watch) => (await zk.exists(ready, { ...retryForever, watch, signal })) !== null);
}

/** The entry of a participant that has its znode. */
export class BarrierEntry {
  readonly #context: BarrierContext;
  readonly zk: ClientView;
  readonly signal: AbortSignal;
  /** The path of `ready`. */
  readonly readyPath: string;
  readonly #node: ParticipantNode;
  readonly #ownName: string;
  readonly #enteredEarlier = new Set<string>();

  constructor(context: BarrierContext, node: ParticipantNode, signal: AbortSignal) {
    this.#context = context;
    this.zk = context.zk;
    this.readyPath = childPath(context.path, readyName);
    this.#node = node;
    this.#ownName = nameOf(node.path);
    this.signal = signal;
  }

  /** Waits for a round that it may enter. */
  async run(first: WatchedRead<boolean>): Promise<EnteredBarrier> {
    let look = first;
    // If no event has arrived by now, `ready` did not exist before our znode did.
    let isNew = !look.hasFired;
    try {
      for (;;) {
        let openers: ReadonlySet<string> | undefined;
        if (look.result) {
          openers = await this.tryEnter(false);
        } else {
          const waiting = await this.waitingNames();
          if (waiting.length >= this.#context.size) openers = await this.tryOpen(waiting);
          else openers = await this.tryEnter((await look.nextEvent(this.signal)) === 'NodeCreated' && isNew);
        }
        if (openers !== undefined) return { node: this.#node, openers };
        look.cancel();
        look = await readReadyWithWatch(this.#context, this.signal);
        isNew = true;
      }
    } finally {
      look.cancel();
    }
  }

  /** The participants that wait for a round to begin, including this one. */
  async waitingNames(): Promise<string[]> {
    const names = await participantNames(this.#context, this.signal);
    if (!names.includes(this.#ownName)) throw nodeDeletedError(this.#node.path);
    return names.filter((name) => !this.#enteredEarlier.has(name));
  }

  /** Begins a round with the waiting participants; undefined if they no longer all wait. */
  async tryOpen(waiting: readonly string[]): Promise<ReadonlySet<string> | undefined> {
    const { path, acl } = this.#context;
    const checks = waiting.map((name) => op.check(childPath(path, name), { version: 0 }));
    try {
      // The create comes first: if many see x participants at once, it rejects all but one.
      await this.zk.multi([op.create(this.readyPath, readyData(waiting), { acl }), ...checks], { ...retryForever, signal: this.signal });
      return new Set(waiting);
    } catch (error) {
      if (!KeeperError.is(error)) throw error;
      if (error.code === 'BadVersion') this.#enteredEarlier.add(waiting[error.failedIndex! - 1]!);
      // A participant is gone, or another one was faster; or the outcome is unknown, and reading
      // `ready` shows it.
      else if (!KeeperError.is(error, 'NoNode', 'NodeExists') && !error.retryable) throw error;
      return undefined;
    }
  }

  /** Enters as `ready` says, if it admits us. `isNew`: it was created while our znode existed. */
  async tryEnter(isNew: boolean): Promise<ReadonlySet<string> | undefined> {
    const ready = await readReady(this.zk, this.readyPath, this.signal);
    // It was created and deleted. With tskeeper's participants, none has counted us; kazoo's delete
    // it as soon as the first one leaves.
    if (ready === undefined) return isNew && (await this.markEntered([])) ? new Set() : undefined;
    const { openers, czxid } = ready;
    if (openers?.has(this.#ownName) === true) return openers;
    // It was created by another kind of client, and is taken as it is.
    if (openers === undefined) return (await this.markEntered([])) ? new Set() : undefined;
    const opener = (await participantNames(this.#context, this.signal)).find((name) => openers.has(name));
    if (opener !== undefined) return (await this.markEntered([op.check(childPath(this.#context.path, opener))])) ? openers : undefined;
    await this.removeStaleReady(czxid);
    return undefined;
  }

  /**
   * Sets the version of our znode to 1, so that no later round counts us; false if one of the
   * checks fails.
   */
  async markEntered(checks: readonly CheckOp[]): Promise<boolean> {
    for (;;) {
      try {
        const mark = op.setData(this.#node.path, this.#context.data, { version: 0 });
        await this.zk.multi([mark, ...checks], { ...retryForever, signal: this.signal });
        return true;
      } catch (error) {
        if (!KeeperError.is(error)) throw error;
        // No other client writes to it: this was our own attempt, whose reply was lost.
        if (error.code === 'BadVersion') return true;
        if (error.code === 'NoNode' && error.failedIndex === 0) throw nodeDeletedError(this.#node.path);
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
  async removeStaleReady(czxid: bigint): Promise<void> {
    const options = { ...retryForever, signal: this.signal };
    const { path } = this.#context;
    const { data, stat } = await this.zk.getData(path, options);
    if ((await this.zk.exists(this.readyPath, options))?.czxid !== czxid) return;
    try {
      await this.zk.multi([op.setData(path, data, { version: stat.version }), op.delete(this.readyPath)], options);
    } catch (error) {
      if (!KeeperError.is(error)) throw error;
      if (!KeeperError.is(error, 'BadVersion', 'NoNode') && !error.retryable) throw error;
    }
  }
}
