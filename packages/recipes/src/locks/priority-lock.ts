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
 *     4. none in the way: acquire the lock of holding, as of a ReadWriteLock, and leave the gate
 *
 * Invariants. `holding` alone decides who holds, so the lock is as safe as a ReadWriteLock,
 * whatever is wrong with the gate. A contender that arrived at the gate before another one last
 * looked at it (2.), and precedes that one, goes first. A contender that has passed 3. is no longer
 * overtaken; two that pass it at once are in the order of `holding`.
 *
 * No herd: each contender watches one other. An arrival that overtakes others moves the next one
 * back, which notices when it wakes: at most one extra wake-up for each arrival. Starvation: as
 * long as more urgent contenders keep arriving, the others wait; among equals the order is that of
 * arrival.
 */
import { type ClientView, compareSequences, type Data } from '@tskeeper/client';
import { childPath } from '@tskeeper/client/internal';
import {
  callOptionTypes,
  checkCallOptions,
  checkArgumentCount,
  checkFunction,
  checkOptions,
  checkSourceAndPath,
  checkConstructorOptions,
} from '../validation.ts';
import { acquire, type AcquireOptions, type LockRequest, revoke, type RevokeOptions, tryAcquire } from '../wait-queue/acquire.ts';
import type { Contender } from '../wait-queue/contender.ts';
import type { Hold } from '../wait-queue/hold.ts';
import { type FindBlocker, WaitQueue, type ContenderOptions, previousContender, type QueueNode } from '../wait-queue/wait-queue.ts';
import { RecipeError } from '../recipe-error.ts';
import { Deadline } from '../waiting/deadline.ts';
import { waitForEvent } from '../waiting/watch-once.ts';
import { runAcrossSessions, type SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../wait-options.ts';
import type { LockHandle } from './read-write-lock.ts';

/** How a priority lock is kept. All contenders of a lock use the same options, except `data`. */
export interface PriorityLockOptions extends ContenderOptions {
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

const prefixPattern = /(?:read|write)-\d\d-(?=(?:\d|-\d?)\d{9}$)/;
const prefixOf = (name: string) => prefixPattern.exec(name)?.[0];
const priorityOf = ({ prefix }: Contender) => Number(prefix.slice(-3, -1));
const isWriter = ({ prefix }: Contender) => prefix.startsWith('write-');

function byPriority(one: Contender, other: Contender): number {
  return priorityOf(one) - priorityOf(other) || compareSequences(one.sequence, other.sequence);
}

/** The contenders that go before this one, the nearest last. */
function contendersAhead(line: readonly Contender[], own: number): readonly Contender[] {
  return line.filter((each) => byPriority(each, line[own]!) < 0).sort(byPriority);
}

/** At the gate. */
const findGateBlocker = {
  read: ((line, own) => contendersAhead(line, own).findLast(isWriter)) satisfies FindBlocker,
  write: ((line, own) => contendersAhead(line, own).at(-1)) satisfies FindBlocker,
};
/** Among the holders, in the order of their numbers. */
const findHolderBlocker = {
  read: ((line, own) => line.slice(0, own).findLast(isWriter)) satisfies FindBlocker,
  write: previousContender,
};

/** What to acquire, and how. */
interface PriorityLockRequest {
  /** For a place among the holders. */
  readonly request: LockRequest;
  readonly mode: 'read' | 'write';
  readonly priority: number;
  /** How to revoke holders that are in the way; undefined to wait for them. */
  readonly revokeOptions: RevokeOptions | undefined;
}

/**
 * Many readers or one writer, by priority; urgent contenders may take it from less urgent holders.
 */
export class PriorityLock {
  /** The znode of the lock. */
  readonly path: string;
  /** As given. */
  readonly source: SessionSource;
  readonly #gateQueue: WaitQueue;
  readonly #holderQueue: WaitQueue;
  readonly #data: Data;

  /**
   * Sends no request. The znode need not exist. Throws a TypeError if `source` is not a client or
   * `path` is not a path.
   */
  constructor(source: SessionSource, path: string, options: PriorityLockOptions = {}) {
    checkSourceAndPath(source, path);
    checkConstructorOptions(options, 'PriorityLock', arguments.length);
    this.path = path;
    this.source = source;
    this.#gateQueue = new WaitQueue(childPath(path, 'waiting'), prefixOf, options);
    this.#holderQueue = new WaitQueue(childPath(path, 'holding'), prefixOf, options);
    this.#data = options.data ?? null;
  }

  /**
   * The side for reading, shared with other readers. `priority` is from 0, the most urgent, to 99.
   * Throws a RangeError for another value.
   */
  readLock(priority: number, options: PreemptOptions = {}): LockHandle {
    checkArgumentCount(arguments.length, 2, 'readLock(priority, options)');
    return this.#lockHandle('read', priority, options);
  }

  /** The side for writing, exclusive; `priority` as for `readLock`, and throws as that does. */
  writeLock(priority: number, options: PreemptOptions = {}): LockHandle {
    checkArgumentCount(arguments.length, 2, 'writeLock(priority, options)');
    return this.#lockHandle('write', priority, options);
  }

  /**
   * The holders, in the order in which they acquired it; a contender that is about to acquire it is
   * listed too. Rejects as `Lock.contenders` does.
   */
  async holders(options: WaitOptions = {}): Promise<readonly Contender[]> {
    checkArgumentCount(arguments.length, 1, 'holders(options)');
    return await this.#holderQueue.contenders(this.source, options);
  }

  /** The waiters, in their order. Rejects as `Lock.contenders` does. */
  async contenders(options: WaitOptions = {}): Promise<readonly Contender[]> {
    checkArgumentCount(arguments.length, 1, 'contenders(options)');
    return (await this.#gateQueue.contenders(this.source, options)).toSorted(byPriority);
  }

  /** Revokes one of the `holders`, as `Lock.revoke`, and rejects as that does. */
  async revoke(holder: Contender, options: RevokeOptions = {}): Promise<void> {
    checkArgumentCount(arguments.length, 2, 'revoke(holder, options)');
    return await revoke(this.source, holder, options);
  }

  #lockHandle(mode: 'read' | 'write', priority: number, options: PreemptOptions): LockHandle {
    checkCallOptions(options, callOptionTypes.preempt, mode === 'read' ? 'readLock' : 'writeLock');
    const { preempt = false } = options;
    if (!Number.isInteger(priority) || priority < 0 || priority > 99)
      throw new RangeError(`a priority must be an integer from 0 to 99, not ${priority}`);
    if (typeof preempt !== 'boolean') checkOptions(preempt, '{ deleteAfterMs: 5000 }', 'preempt is true, or');
    const request: LockRequest = {
      queue: this.#holderQueue,
      prefix: `${mode}-${String(priority).padStart(2, '0')}-`,
      data: this.#data,
      findBlocker: findHolderBlocker[mode],
      what: `priority lock ${this.path}`,
    };
    const contention: PriorityLockRequest = {
      request,
      mode,
      priority,
      revokeOptions: preempt === true ? {} : preempt === false ? undefined : preempt,
    };
    const acquireIt = (acquiring: AcquireOptions) => this.#acquire(contention, acquiring);
    const tryAcquireIt = (trying: WaitOptions) => this.#tryAcquire(contention, trying);
    return {
      source: this.source,
      path: this.path,
      // Not arrow functions, which have no `arguments` of their own.
      async acquire(acquiring = {}) {
        checkArgumentCount(arguments.length, 1, 'acquire(options)');
        return await acquireIt(acquiring);
      },
      async tryAcquire(trying = {}) {
        checkArgumentCount(arguments.length, 1, 'tryAcquire(options)');
        return await tryAcquireIt(trying);
      },
      async run(work, acquiring = {}) {
        checkArgumentCount(arguments.length, 2, 'run(work, options)');
        checkFunction(work, 'work');
        await using hold = await acquireIt(acquiring);
        return await work(hold);
      },
    };
  }

  async #acquire(contention: PriorityLockRequest, options: AcquireOptions): Promise<Hold> {
    const { what } = contention.request;
    using deadline = new Deadline(this.source, options, what, callOptionTypes.acquire);
    const { signal } = deadline;
    return await runAcrossSessions(this.source, signal, async (zk) => {
      using sessionDeadline = new Deadline(zk, { signal }, what);
      return await this.#acquireInSession(zk, contention, sessionDeadline, options.onRevocation);
    });
  }

  async #acquireInSession(
    zk: ClientView,
    contention: PriorityLockRequest,
    deadline: Deadline,
    onRevocation: AcquireOptions['onRevocation'],
  ): Promise<Hold> {
    const { request } = contention;
    const { signal } = deadline;
    const gate = await this.#gateQueue.join(zk, request.prefix, this.#data, signal);
    gate.onGone((reason) => deadline.abort(reason));
    const acquireBehindGate = async () => {
      try {
        for (;;) {
          await this.#passGate(gate, contention, deadline);
          const hold = await this.#acquireUnlessRevoked(zk, request, { signal, onRevocation });
          if (hold !== undefined) return hold;
        }
      } catch (error) {
        // Before leaving the gate: it revokes no more holders.
        deadline.abort(error);
        throw error;
      }
    };
    return await gate.leaveWithResult(acquireBehindGate, (hold) => hold.release());
  }

  /**
   * undefined if a more urgent contender has passed the gate as well: the place at the gate is
   * kept.
   */
  async #acquireUnlessRevoked(zk: ClientView, request: LockRequest, options: AcquireOptions): Promise<Hold | undefined> {
    try {
      return await acquire(zk, request, options);
    } catch (error) {
      if (error instanceof RecipeError && error.code === 'Revoked') return undefined;
      throw error;
    }
  }

  async #tryAcquire(contention: PriorityLockRequest, options: WaitOptions): Promise<Hold | undefined> {
    using deadline = new Deadline(this.source, options, `a reply about ${contention.request.what}`);
    const { signal } = deadline;
    return await runAcrossSessions(this.source, signal, (zk) => this.#tryAcquireInSession(zk, contention, signal));
  }

  async #tryAcquireInSession(zk: ClientView, { request, mode }: PriorityLockRequest, signal: AbortSignal): Promise<Hold | undefined> {
    const gate = await this.#gateQueue.join(zk, request.prefix, this.#data, signal);
    const tryAcquireBehindGate = async () => {
      if ((await gate.currentBlocker(findGateBlocker[mode], signal)) !== undefined) return undefined;
      if (blockingHolders(mode, await this.#holderQueue.contenders(zk, { signal })).length > 0) return undefined;
      return await tryAcquire(zk, request, { signal });
    };
    return await gate.leaveWithResult(tryAcquireBehindGate, (hold) => hold?.release());
  }

  /** Resolves when no contender goes first at the gate, and no holder is in the way. */
  async #passGate(gate: QueueNode, { mode, priority, revokeOptions }: PriorityLockRequest, deadline: Deadline): Promise<void> {
    const { zk } = gate;
    const { signal } = deadline;
    const asked = new Set<string>();
    for (;;) {
      const ahead = await gate.currentBlocker(findGateBlocker[mode], signal);
      const holders = ahead === undefined ? blockingHolders(mode, await this.#holderQueue.contenders(zk, { signal })) : [];
      const next = ahead ?? holders.at(-1);
      if (next === undefined) return;
      for (const holder of revokeOptions === undefined ? [] : holders) {
        if (priorityOf(holder) <= priority || asked.has(holder.path)) continue;
        asked.add(holder.path);
        revoke(zk, holder, { ...revokeOptions, signal }).catch((error: unknown) => deadline.abort(error));
      }
      await waitForEvent(zk, next.path, signal);
    }
  }
}

/** The holders that exclude a new one. */
function blockingHolders(mode: 'read' | 'write', holders: readonly Contender[]): readonly Contender[] {
  return mode === 'write' ? holders : holders.filter(isWriter);
}
