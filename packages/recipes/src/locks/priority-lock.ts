/**
 * Many readers or one writer, by priority: the "revocable read-write priority lock" that
 * ZooKeeper's recipes page mentions without giving it. A gate in the order of priorities precedes a
 * shared lock.
 *
 *     /locks/table
 *       ├─ waiting                               the gate
 *       │   ├─ _c_91aa...-write-05-0000000031    first: watches the reader that holds
 *       │   ├─ _c_4d0c...-read-20-0000000012     watches 31
 *       │   └─ _c_77f1...-read-20-0000000030     watches 31
 *       └─ holding                               a shared lock
 *           └─ _c_2b7e...-read-20-0000000017     reads
 *
 *     1. create waiting/guid-read-20- (EPHEMERAL, SEQUENTIAL)
 *     2. getChildren of waiting: a writer waits for the one before it by priority and number, a
 *        reader for the nearest writer before it: exists with a watch, and 2. again when it is gone
 *     3. getChildren of holding: a writer waits for the last there, a reader for the last writer:
 *        exists with a watch, and 2. again, as another may be before it by now. A contender that
 *        preempts revokes those of lower priority, once each
 *     4. none in the way: acquire the lock of holding, as of a SharedLock, and leave the gate
 *
 * Invariants. `holding` alone decides who holds, so the lock is as safe as a SharedLock, whatever
 * is wrong with the gate. A contender that arrived at the gate before another one last looked at it
 * (2.), and precedes that one, goes first. A contender that has passed 3. is not overtaken any
 * more; two that pass it at once are in the order of `holding`.
 *
 * No herd: each contender watches one other. An arrival that overtakes others moves the next one
 * back, which notices when it wakes: at most one extra wake-up for each arrival. Starvation: as
 * long as more urgent contenders keep arriving, the others wait; among equals the order is that of
 * arrival.
 */
import { type ClientView, compareSequences, type Data } from '@tskeeper/client';
import { childPath } from '@tskeeper/client/internal';
import { callOptions, checkCallOptions, checkCount, checkFunction, checkOptions, checkPlace, checkSettings } from '../given.ts';
import { acquire, type AcquireOptions, type Claim, revoke, type RevokeOptions, tryAcquire } from '../line/acquire.ts';
import type { Contender } from '../line/contender.ts';
import type { Held } from '../line/held.ts';
import { type Ahead, Line, type LineOptions, nextAhead, type Place } from '../line/line.ts';
import { RecipeError } from '../recipe-error.ts';
import { Limit } from '../waiting/limit.ts';
import { nextEvent } from '../waiting/next-event.ts';
import { inSessions, type SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../waiting/wait-options.ts';
import type { LockSide } from './shared-lock.ts';

/** How a priority lock is kept. All contenders of a lock use the same options, except `data`. */
export interface PriorityLockOptions extends LineOptions {
  /** Data of the contenders' znodes, which identify them to people. Default: none. */
  readonly data?: Data | undefined;
}

/** Whether a contender takes the lock away from less urgent holders. */
export interface PreemptOptions {
  /**
   * When only holders of lower priority are in the way, revokes them; see
   * `AcquireOptions.onRevocation`. With `deleteAfterMs` it deletes the znodes of those that have
   * not released the lock after this many milliseconds, as `Lock.revoke` does. Default: it waits
   * for them.
   */
  readonly preempt?: boolean | Pick<RevokeOptions, 'deleteAfterMs'> | undefined;
}

const kindForm = /(?:read|write)-\d\d-(?=(?:\d|-\d?)\d{9}$)/;
const kindOf = (name: string) => kindForm.exec(name)?.[0];
const priorityOf = ({ kind }: Contender) => Number(kind.slice(-3, -1));
const isWriter = ({ kind }: Contender) => kind.startsWith('write-');

function byPriority(one: Contender, other: Contender): number {
  return priorityOf(one) - priorityOf(other) || compareSequences(one.sequence, other.sequence);
}

/** The contenders that go before this one, the nearest last. */
function before(line: readonly Contender[], own: number): readonly Contender[] {
  return line.filter((each) => byPriority(each, line[own]!) < 0).sort(byPriority);
}

/** At the gate. */
const aheadAtGate = {
  read: ((line, own) => before(line, own).findLast(isWriter)) satisfies Ahead,
  write: ((line, own) => before(line, own).at(-1)) satisfies Ahead,
};
/** Among the holders, in the order of their numbers. */
const aheadAmongHolders = {
  read: ((line, own) => line.slice(0, own).findLast(isWriter)) satisfies Ahead,
  write: nextAhead,
};

/** What to acquire, and how. */
interface Contention {
  /** For a place among the holders. */
  readonly claim: Claim;
  readonly how: 'read' | 'write';
  readonly priority: number;
  /** How to revoke holders that are in the way; undefined to wait for them. */
  readonly asks: RevokeOptions | undefined;
}

/**
 * Many readers or one writer, by priority; urgent contenders may take it from less urgent holders.
 */
export class PriorityLock {
  /** The znode of the lock. */
  readonly path: string;
  /** As given. */
  readonly source: SessionSource;
  readonly #waiting: Line;
  readonly #holding: Line;
  readonly #data: Data;

  /**
   * Sends no request. The znode need not exist. Throws a TypeError if `source` is not a client or
   * `path` is not a path.
   */
  constructor(source: SessionSource, path: string, options: PriorityLockOptions = {}) {
    checkPlace(source, path);
    checkSettings(options, 'PriorityLock', arguments.length);
    this.path = path;
    this.source = source;
    this.#waiting = new Line(childPath(path, 'waiting'), kindOf, options);
    this.#holding = new Line(childPath(path, 'holding'), kindOf, options);
    this.#data = options.data ?? null;
  }

  /**
   * The side for reading, shared with other readers. `priority` is from 0, the most urgent, to 99.
   * Throws a RangeError for another value.
   */
  reading(priority: number, options: PreemptOptions = {}): LockSide {
    checkCount(arguments.length, 2, 'reading(priority, options)');
    return this.#side('read', priority, options);
  }

  /** The side for writing, exclusive; `priority` as for `reading`, and throws as that does. */
  writing(priority: number, options: PreemptOptions = {}): LockSide {
    checkCount(arguments.length, 2, 'writing(priority, options)');
    return this.#side('write', priority, options);
  }

  /**
   * The holders, in the order in which they acquired it; a contender that is about to acquire it is
   * listed too. Rejects as `Lock.contenders` does.
   */
  async holders(options: WaitOptions = {}): Promise<readonly Contender[]> {
    checkCount(arguments.length, 1, 'holders(options)');
    return await this.#holding.contenders(this.source, options);
  }

  /** The waiters, in their order. Rejects as `Lock.contenders` does. */
  async contenders(options: WaitOptions = {}): Promise<readonly Contender[]> {
    checkCount(arguments.length, 1, 'contenders(options)');
    return (await this.#waiting.contenders(this.source, options)).toSorted(byPriority);
  }

  /** Revokes one of the `holders`, as `Lock.revoke`, and rejects as that does. */
  async revoke(holder: Contender, options: RevokeOptions = {}): Promise<void> {
    checkCount(arguments.length, 2, 'revoke(holder, options)');
    return await revoke(this.source, holder, options);
  }

  #side(how: 'read' | 'write', priority: number, options: PreemptOptions): LockSide {
    checkCallOptions(options, callOptions.preempt, how === 'read' ? 'reading' : 'writing');
    const { preempt = false } = options;
    if (!Number.isInteger(priority) || priority < 0 || priority > 99)
      throw new RangeError(`a priority is an integer from 0 to 99, not ${priority}`);
    if (typeof preempt !== 'boolean') checkOptions(preempt, '{ deleteAfterMs: 5000 }', 'preempt is true, or');
    const claim: Claim = {
      line: this.#holding,
      kind: `${how}-${String(priority).padStart(2, '0')}-`,
      data: this.#data,
      ahead: aheadAmongHolders[how],
      what: `priority lock ${this.path}`,
    };
    const contention: Contention = { claim, how, priority, asks: preempt === true ? {} : preempt === false ? undefined : preempt };
    const mine = (acquiring: AcquireOptions) => this.#acquire(contention, acquiring);
    const mineAtOnce = (trying: WaitOptions) => this.#tryAcquire(contention, trying);
    return {
      source: this.source,
      path: this.path,
      // Not arrow functions, which have no `arguments` of their own.
      async acquire(acquiring = {}) {
        checkCount(arguments.length, 1, 'acquire(options)');
        return await mine(acquiring);
      },
      async tryAcquire(trying = {}) {
        checkCount(arguments.length, 1, 'tryAcquire(options)');
        return await mineAtOnce(trying);
      },
      async run(work, acquiring = {}) {
        checkCount(arguments.length, 2, 'run(work, options)');
        checkFunction(work, 'work');
        await using held = await mine(acquiring);
        return await work(held);
      },
    };
  }

  async #acquire(contention: Contention, options: AcquireOptions): Promise<Held> {
    const { what } = contention.claim;
    using limit = new Limit(this.source, options, what, callOptions.acquire);
    const { signal } = limit;
    return await inSessions(this.source, signal, async (zk) => {
      using ofSession = new Limit(zk, { signal }, what);
      return await this.#acquireIn(zk, contention, ofSession, options.onRevocation);
    });
  }

  async #acquireIn(zk: ClientView, contention: Contention, limit: Limit, onRevocation: AcquireOptions['onRevocation']): Promise<Held> {
    const { claim } = contention;
    const { signal } = limit;
    const gate = await this.#waiting.join(zk, claim.kind, this.#data, signal);
    gate.whenGone((reason) => limit.end(reason));
    const mine = async () => {
      try {
        for (;;) {
          await this.#pass(gate, contention, limit);
          const held = await this.#hold(zk, claim, { signal, onRevocation });
          if (held !== undefined) return held;
        }
      } catch (error) {
        // Before leaving the gate: it revokes no more holders.
        limit.end(error);
        throw error;
      }
    };
    return await gate.leaveWith(mine, (held) => held.release());
  }

  /**
   * undefined if a more urgent contender has passed the gate as well: the place at the gate is
   * kept.
   */
  async #hold(zk: ClientView, claim: Claim, options: AcquireOptions): Promise<Held | undefined> {
    try {
      return await acquire(zk, claim, options);
    } catch (error) {
      if (error instanceof RecipeError && error.code === 'Revoked') return undefined;
      throw error;
    }
  }

  async #tryAcquire(contention: Contention, options: WaitOptions): Promise<Held | undefined> {
    using limit = new Limit(this.source, options, `a reply about ${contention.claim.what}`);
    const { signal } = limit;
    return await inSessions(this.source, signal, (zk) => this.#tryAcquireIn(zk, contention, signal));
  }

  async #tryAcquireIn(zk: ClientView, { claim, how }: Contention, signal: AbortSignal): Promise<Held | undefined> {
    const gate = await this.#waiting.join(zk, claim.kind, this.#data, signal);
    const mine = async () => {
      if ((await gate.blocker(aheadAtGate[how], signal)) !== undefined) return undefined;
      if (inTheWay(how, await this.#holding.contenders(zk, { signal })).length > 0) return undefined;
      return await tryAcquire(zk, claim, { signal });
    };
    return await gate.leaveWith(mine, (held) => held?.release());
  }

  /** Resolves when no contender goes first at the gate, and no holder is in the way. */
  async #pass(gate: Place, { how, priority, asks }: Contention, limit: Limit): Promise<void> {
    const { zk } = gate;
    const { signal } = limit;
    const asked = new Set<string>();
    for (;;) {
      const ahead = await gate.blocker(aheadAtGate[how], signal);
      const holders = ahead === undefined ? inTheWay(how, await this.#holding.contenders(zk, { signal })) : [];
      const next = ahead ?? holders.at(-1);
      if (next === undefined) return;
      for (const holder of asks === undefined ? [] : holders) {
        if (priorityOf(holder) <= priority || asked.has(holder.path)) continue;
        asked.add(holder.path);
        revoke(zk, holder, { ...asks, signal }).catch((error: unknown) => limit.end(error));
      }
      await nextEvent(zk, next.path, signal);
    }
  }
}

/** The holders that exclude a new one. */
function inTheWay(how: 'read' | 'write', holders: readonly Contender[]): readonly Contender[] {
  return how === 'write' ? holders : holders.filter(isWriter);
}
