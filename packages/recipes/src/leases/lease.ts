/**
 * Something held for a stated time, whatever becomes of the session: kazoo's NonBlockingLease, with a fence.
 *
 *     /leases/cleanup
 *       ├─ lease_holder                      {"version": 1, "holder": "host7", "end": "2026-11-22T21:15:00"}
 *       ├─ _c_2b7e...-lease-0000000004       of the holder: it is gone before anybody else holds
 *       └─ _c_91aa...-waiting-0000000007     waits for the end, or for lease_holder to change
 *
 *     1. the lock of the znode, in kazoo's line (`__lock__`): one at a time looks and writes
 *     2. create guid-lease- (PERSISTENT, SEQUENTIAL): its ctime says how late it is, its czxid is the token
 *     3. getData lease_holder: of another, and its end has not come: delete the own one again
 *     4. multi: delete the lease- of others, write lease_holder, if the lock and the own one are still there
 *     5. release the lock
 *
 * kazoo goes by the clocks of the clients, which have to agree. Here the time is that of the leader of the ensemble, which it writes into each Stat; the holder
 * itself counts from before it asked, so its own end is never the later one. What is left to believe: that clocks run at the same pace; and that
 * the leader's clock does not jump forward, nor that of the next leader stand ahead of it, by more than the time that is left.
 */
import { type ClientView, KeeperError, op, type Stat, type WriteOp } from '@tskeeper/client';
import { childPath } from '@tskeeper/client/internal';
import { checkCount, checkOptions, checkPlace, checkSettings, named } from '../given.ts';
import { acquire } from '../line/acquire.ts';
import { lineUp } from '../line/contender.ts';
import { fenced } from '../line/fenced.ts';
import { deletedByOthers, Line, type LineOptions, nextAhead } from '../line/line.ts';
import type { Held } from '../line/held.ts';
import { firstOf } from '../waiting/first-of.ts';
import { Limit } from '../waiting/limit.ts';
import { makeOwn } from '../waiting/make-own.ts';
import { nextEvent, untilTheEnd } from '../waiting/next-event.ts';
import { pause } from '../waiting/pause.ts';
import { isUnanswered } from '../waiting/unanswered.ts';
import { inSessions, type SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../waiting/wait-options.ts';
import { HeldLease } from './held-lease.ts';
import { type LeaseRecord, readRecord, textOf } from './lease-record.ts';

/** How a lease is kept. All who want it have the same, but for `holder` and `durationMs`. */
export interface LeaseOptions extends LineOptions {
  /** For how long, in milliseconds, from when it was asked for. */
  readonly durationMs: number;
  /**
   * Who this is to the others. Whoever comes with the same name takes the lease over at once: a process that was started again, say. One
   * that has it still under that name believes so until it renews or writes, or its time is over; also when its successor has given it back by then, or had it for a
   * shorter time, and somebody else has it.
   */
  readonly holder: string;
}

/** What is far beyond that has no date. */
const durationMsMax = 100 * 365 * 86_400_000;

const leaseKind = 'lease-';
const waitingKind = 'waiting-';

/** Something held for a stated time: kazoo's NonBlockingLease. */
export class Lease {
  /** The znode of the lease. */
  readonly path: string;
  readonly #source: SessionSource;
  readonly #options: LeaseOptions;
  readonly #locks: Line;
  readonly #waiting: Line;

  /**
   * Nothing is asked of a server yet. The znode need not exist. Throws a TypeError for what is no client, no path or no holder, and a RangeError for a duration
   * that is not positive, or longer than a hundred years.
   */
  constructor(source: SessionSource, path: string, options: LeaseOptions) {
    checkPlace(source, path);
    checkOptions(options, "{ durationMs: 60_000, holder: 'host7' }");
    checkSettings(options, 'Lease', arguments.length);
    const { durationMs, holder } = options;
    if (!(typeof durationMs === 'number' && durationMs > 0 && durationMs <= durationMsMax))
      throw new RangeError(`a lease is for a positive number of milliseconds, up to a hundred years, not for ${named(durationMs)}`);
    if (typeof holder !== 'string' || holder === '')
      throw new TypeError(`the holder of a lease is a string that no other holder has, not ${named(holder)}`);
    this.path = path;
    this.#source = source;
    this.#options = options;
    this.#locks = new Line(path, ['__lock__'], options);
    this.#waiting = new Line(path, [waitingKind], options);
  }

  /**
   * The lease, if nobody has it; undefined otherwise. Rejects with a RecipeError: Mismatch, when its znode is no lease; TimedOut; Lost, when somebody deletes the znode
   * of the lock meanwhile; with the signal's reason; with SessionExpired and the like; and with NoAuth. If that is about the deletion of its place in line, the lease
   * may have been taken, and lasts to its end.
   */
  async tryAcquire(options: WaitOptions = {}): Promise<HeldLease | undefined> {
    checkCount(arguments.length, 1, 'tryAcquire(options)');
    using limit = new Limit(this.#source, options, `an answer about the lease ${this.path}`);
    const { signal } = limit;
    const answer = await inSessions(this.#source, signal, (zk) => this.#try(zk, signal));
    return answer instanceof HeldLease ? answer : undefined;
  }

  /** Waits until it is free or over, in the order of coming, and resolves with it. Rejects as `tryAcquire` does. */
  async acquire(options: WaitOptions = {}): Promise<HeldLease> {
    checkCount(arguments.length, 1, 'acquire(options)');
    const what = `the lease ${this.path}`;
    using limit = new Limit(this.#source, options, what);
    const { signal } = limit;
    return await inSessions(this.#source, signal, async (zk) => {
      using ofSession = new Limit(zk, { signal }, what);
      return await this.#acquireIn(zk, ofSession);
    });
  }

  async #acquireIn(zk: ClientView, limit: Limit): Promise<HeldLease> {
    const place = await this.#waiting.join(zk, waitingKind, this.#options.holder, limit.signal);
    try {
      await place.turn(nextAhead, limit);
      for (;;) {
        const answer = await this.#try(zk, limit.signal);
        if (answer instanceof HeldLease) return answer;
        await firstOf<unknown>(limit.signal, [
          (signal) => nextEvent(zk, this.#holderPath, signal),
          (signal) => pause(zk.clock, Math.max(answer.leftMs, 1), signal),
        ]);
      }
    } finally {
      await place.leave();
    }
  }

  get #holderPath(): string {
    return childPath(this.path, 'lease_holder');
  }

  async #try(zk: ClientView, signal: AbortSignal): Promise<HeldLease | { readonly leftMs: number }> {
    const claim = {
      line: this.#locks,
      kind: '__lock__',
      data: this.#options.holder,
      ahead: nextAhead,
      what: `the lock of the lease ${this.path}`,
    };
    await using lock = await acquire(zk, claim, { signal });
    try {
      return await this.#tryWith(lock, signal);
    } catch (error) {
      // What they stand below is gone, and so is the lock.
      throw KeeperError.is(error, 'NoNode') ? deletedByOthers(lock.path) : error;
    }
  }

  async #tryWith(lock: Held, signal: AbortSignal): Promise<HeldLease | { readonly leftMs: number }> {
    const { zk } = lock;
    const { acl, durationMs, holder } = this.#options;
    const askedAtMs = zk.clock.now().elapsedMs;
    const own = await makeOwn(zk, childPath(this.path, leaseKind), holder, { mode: 'persistentSequential', acl, signal });
    let has = false;
    /** Of the record, if a take was carried out of which nobody knows here. */
    let version: number | undefined;
    try {
      const nowMs = own.stat.ctime;
      const data = textOf({ holder, endMs: nowMs + durationMs });
      for (;;) {
        const now = await readRecord(zk, this.#holderPath, signal);
        if (now !== undefined && now.holder !== holder && now.endMs > nowMs) return { leftMs: now.endMs - nowMs };
        version = ((now?.version ?? 0) + 1) | 0;
        const record = await this.#take(zk, now, data, [lock.path, own.path], signal);
        if (record === 'refused') version = undefined;
        if (typeof record === 'string') continue;
        has = true;
        return new HeldLease({
          source: this.#source,
          path: own.path,
          holderPath: this.#holderPath,
          holder,
          durationMs,
          token: own.stat.czxid,
          record,
          askedAtMs,
        });
      }
    } finally {
      if (!has) await this.#giveUp(zk, own.path, version);
    }
  }

  /** Where no server can be reached, a take that was carried out is left to its end. */
  async #giveUp(zk: ClientView, own: string, version: number | undefined): Promise<void> {
    if (version !== undefined) {
      const both = [op.delete(own), op.delete(this.#holderPath, { version })];
      const areGone = await zk.multi(both).then(
        () => true,
        () => false,
      );
      if (areGone) return;
    }
    await zk.delete(own, { guaranteed: true }).catch(() => undefined);
  }

  /** The record as it was written; otherwise it is to be tried again, as something has changed, or no answer came. */
  async #take(
    zk: ClientView,
    now: LeaseRecord | undefined,
    data: string,
    [lock, own]: readonly [string, string],
    signal: AbortSignal,
  ): Promise<Stat | 'refused' | 'unanswered'> {
    const { children } = await zk.getChildren(this.path, { ...untilTheEnd, signal });
    const others = lineUp(this.path, children, [leaseKind]).filter(({ path }) => path !== own);
    const { acl } = this.#options;
    // Made and written: kazoo makes its own with version 0, and so they are told apart.
    const making: WriteOp[] = now === undefined ? [op.create(this.#holderPath, '', { acl })] : [];
    const writing = op.setData(this.#holderPath, data, { version: now?.version ?? 0 });
    try {
      const results = await fenced(zk, [...others.map(({ path }) => op.delete(path)), ...making, writing], [lock, own], {
        signal,
      });
      return (results.at(-1) as { readonly stat: Stat }).stat;
    } catch (error) {
      if (isUnanswered(error)) return 'unanswered';
      if (KeeperError.is(error, 'BadVersion', 'NoNode', 'NodeExists') || (KeeperError.is(error) && error.retryable)) return 'refused';
      throw error;
    }
  }
}
