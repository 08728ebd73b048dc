/**
 * A set of work items, each done by one member of a group (kazoo's SetPartitioner, with locks):
 *
 *     /queues
 *       ├─ party                          the members, as in kazoo's ShallowParty
 *       │    ├─ 0f3a...-alice
 *       │    └─ 77c1...-bob
 *       └─ locks                          a lock for each item, held by the member that works on it
 *            ├─ q1
 *            └─ q2
 *
 *     1. join the party
 *     2. the members are the same for `timeBoundaryMs`: each finds its share from their names
 *     3. release what belongs to another now: abort its signal; after its work, release the lock
 *     4. acquire the lock of each item of the share, after its former owner, and begin the work
 *     5. the members change: 2.
 *
 * Shares are a plan, which two members may see differently for a while. The locks keep two members
 * from working on one item.
 */
import type { Acl, Millis, TimerHandle } from '@tskeeper/client';
import { childPath, onAbort } from '@tskeeper/client/internal';
import {
  checkArgumentCount,
  checkFunction,
  checkName,
  checkSourceAndPath,
  checkConstructorOptions,
  checkWaitOptions,
  describeValue,
  argumentCountError,
} from '../validation.ts';
import { Lock } from '../locks/lock.ts';
import { RecipeError } from '../recipe-error.ts';
import { isEndOfSession } from '../sessions/session-source.ts';
import { Listeners } from '../listeners.ts';
import type { SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../wait-options.ts';
import { Waiters } from '../waiting/promises.ts';
import { Group, type Membership } from './group.ts';
import { type OwnedPartition, PartitionClaim, type PartitionWork } from './partition-claim.ts';

/**
 * The items of one member, of all items. All members must compute the same plan from the same
 * names.
 */
export type PartitionPlan = (name: string, members: readonly string[], items: readonly string[]) => readonly string[];

/** How a set is shared. All members use the same items and the same plan. */
export interface SetPartitionerOptions {
  /**
   * How long the members have to be the same before items are distributed again, in milliseconds.
   * Default: 30 000, as in kazoo.
   */
  readonly timeBoundaryMs?: Millis | undefined;
  /**
   * The plan. Default: the items in their order are dealt out to the members in theirs, one by one,
   * as in kazoo.
   */
  readonly plan?: PartitionPlan | undefined;
  /** The ACL of each znode that has to be created. Default: all permissions for everyone. */
  readonly acl?: readonly Acl[] | undefined;
}

/** See `SetPartitioner.state`. */
export type SetPartitionerState = 'allocating' | 'acquired' | 'releasing' | 'closed';

const timeBoundaryMsDefault = 30_000;

/**
 * A member that works on its share of a set, as long as its client lives (kazoo's SetPartitioner).
 */
export class SetPartitioner implements AsyncDisposable {
  /** The znode above those of members and locks. */
  readonly path: string;
  /** The name of this member. */
  readonly name: string;
  readonly #source: SessionSource;
  readonly #items: readonly string[];
  readonly #work: PartitionWork;
  readonly #options: SetPartitionerOptions;
  readonly #claims = new Map<string, PartitionClaim>();
  readonly #end = new AbortController();
  readonly #closing = new AbortController();
  readonly #listeners = new Listeners<SetPartitionerState>();
  readonly #waiters: Waiters;
  readonly #running: Promise<void>;
  /** The members for which the share was computed. */
  #plannedMembers: string | undefined;
  #share: ReadonlySet<string> = new Set();
  #timer: TimerHandle | undefined;
  #state: SetPartitionerState = 'allocating';
  #closingResult: Promise<void> | undefined;

  /**
   * Begins at once. Calls `work` with each item that this member comes to own, several at a time;
   * `work` has to end when the signal of its item is aborted. The item is released when the result
   * of `work` is settled. No other member may have the same `name`. Throws a TypeError if `source`
   * is not a client or `path` is not a path, and for an invalid name of a member or of an item; a
   * RangeError for a negative boundary.
   */
  constructor(
    source: SessionSource,
    path: string,
    name: string,
    items: Iterable<string>,
    work: PartitionWork,
    options: SetPartitionerOptions = {},
  ) {
    checkSourceAndPath(source, path);
    checkConstructorOptions(options, 'SetPartitioner', arguments.length);
    checkName(name, 'the name of a member');
    // A string is iterable by letters, which is never meant.
    if (typeof items === 'string' || typeof (items as Partial<Iterable<string>> | undefined)?.[Symbol.iterator] !== 'function')
      throw new TypeError(`items must be an array or a Set of names, not ${describeValue(items)}`);
    checkFunction(work, 'work');
    const { timeBoundaryMs = timeBoundaryMsDefault } = options;
    if (!(timeBoundaryMs >= 0)) throw new RangeError(`timeBoundaryMs must be a number of milliseconds from 0, not ${timeBoundaryMs}`);
    this.path = path;
    this.name = name;
    this.#source = source;
    this.#items = [...new Set(items)].sort();
    for (const item of this.#items) checkName(item, 'an item');
    this.#work = work;
    this.#options = options;
    this.#waiters = new Waiters(source, `the share of ${name} in ${path}`);
    this.#running = this.#run();
  }

  /**
   * - `allocating`: the members have not been the same for long enough, or some items of the share
   *   still have other owners.
   * - `acquired`: this member owns its whole share, and nothing else.
   * - `releasing`: an item has to be released, and its work is not done.
   * - `closed`: over.
   */
  get state(): SetPartitionerState {
    return this.#state;
  }

  /** The items that this member owns now. A revoked item is among them until its work is done. */
  get owned(): readonly OwnedPartition[] {
    return [...this.#claims.values()].flatMap(({ partition }) => partition ?? []);
  }

  /**
   * Aborted when it is no longer a member, with the reason: a RecipeError, Closed or Lost, or the
   * error with which a server has rejected it; not by `close`.
   */
  get signal(): AbortSignal {
    return this.#end.signal;
  }

  /** Listens to changes of `state` from now on; returns a function that removes the listener. */
  onStateChange(listener: (state: SetPartitionerState) => void): () => void {
    checkArgumentCount(arguments.length, 1, 'onStateChange(listener)');
    return this.#listeners.add(listener);
  }

  /**
   * Resolves when the share is acquired, at once if it is. Rejects with a RecipeError, TimedOut;
   * with the signal's reason; and with the reason of the end.
   */
  async ready(options: WaitOptions = {}): Promise<void> {
    checkArgumentCount(arguments.length, 1, 'ready(options)');
    checkWaitOptions(options, `the share of ${this.name} in ${this.path}`);
    options.signal?.throwIfAborted();
    if (this.#hasEnded) throw this.#closing.signal.reason;
    if (this.#state !== 'acquired') await this.#waiters.wait(options);
  }

  /**
   * Leaves the group, aborts all work, and resolves when all work has ended and all items are
   * released. Never rejects. The work itself must call it without `await`, as it would wait for its
   * own end.
   */
  close(): Promise<void> {
    const surplus = argumentCountError(arguments.length, 0, 'close()');
    if (surplus !== undefined) return Promise.reject(surplus);
    this.#closingResult ??= this.#close();
    return this.#closingResult;
  }

  /** As `close`; never rejects. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    this.#finish(new RecipeError('Closed', `the SetPartitioner of ${this.path} was closed`));
    await Promise.all([this.#running, ...[...this.#claims.values()].map(({ ended }) => ended)]);
  }

  async #run(): Promise<void> {
    const { acl } = this.#options;
    const { signal } = this.#closing;
    const group = new Group(this.#source, childPath(this.path, 'party'), { naming: 'shallowParty', acl });
    try {
      await using member = await group.join(this.name, { signal });
      onAbort(member.signal, () => this.#fail(member.signal.reason));
      for await (const membership of group.observe({ signal })) this.#onMembership(membership);
      this.#fail(new RecipeError('Closed', 'the client was closed'));
    } catch (error) {
      this.#fail(error);
    }
  }

  #onMembership({ members, isSynced }: Membership): void {
    this.#stopTimer();
    // Owned items are kept meanwhile: their locks decide, not the plan.
    if (!isSynced) return;
    // By session and name: a member that comes back counts as a different one.
    const now = members.map(({ path }) => path).join();
    if (now !== this.#plannedMembers) {
      const { timeBoundaryMs = timeBoundaryMsDefault } = this.#options;
      this.#timer = this.#source.clock.after(timeBoundaryMs, () => this.#applyPlan(now, members));
    }
    this.#updateState();
  }

  #applyPlan(membersKey: string, members: Membership['members']): void {
    this.#timer = undefined;
    this.#plannedMembers = membersKey;
    const { plan = roundRobinPlan } = this.#options;
    const names = [...new Set(members.map(({ name }) => name))].sort();
    try {
      this.#share = new Set(plan(this.name, names, this.#items));
    } catch (error) {
      this.#fail(error);
      return;
    }
    for (const claim of this.#claims.values()) {
      if (!this.#share.has(claim.item)) claim.release(new RecipeError('Revoked', `${claim.item} now belongs to another member`));
    }
    for (const item of this.#share) this.#claim(item);
    this.#updateState();
  }

  /** Unless there is one. One that is being released is followed by another. */
  #claim(item: string): void {
    if (this.#hasEnded || this.#claims.has(item)) return;
    const { acl } = this.#options;
    const lock = new Lock(this.#source, childPath(childPath(this.path, 'locks'), item), { prefix: '__lock__', data: this.name, acl });
    const claim = new PartitionClaim(item, lock, this.#work, {
      onChange: () => this.#updateState(),
      onError: (error) => this.#fail(error),
    });
    this.#claims.set(item, claim);
    void this.#awaitClaimEnd(claim);
  }

  async #awaitClaimEnd(claim: PartitionClaim): Promise<void> {
    await claim.ended;
    this.#claims.delete(claim.item);
    if (this.#share.has(claim.item)) this.#claim(claim.item);
    this.#updateState();
  }

  #updateState(): void {
    if (this.#hasEnded) return;
    const claims = [...this.#claims.values()];
    if (claims.some(({ isReleased }) => isReleased)) this.#setState('releasing');
    else if (this.#timer !== undefined || this.#plannedMembers === undefined || claims.some(({ partition }) => partition === undefined))
      this.#setState('allocating');
    else this.#setState('acquired');
    if (this.#state === 'acquired') this.#waiters.resolveAll();
  }

  #fail(error: unknown): void {
    if (this.#hasEnded) return;
    const reason = isEndOfSession(error) ? new RecipeError('Lost', 'the session is over', { cause: error }) : error;
    this.#finish(reason);
    this.#end.abort(reason);
  }

  #finish(reason: unknown): void {
    if (this.#hasEnded) return;
    this.#stopTimer();
    // Before the listeners, which may call `close`.
    this.#closing.abort(reason);
    this.#setState('closed');
    this.#waiters.rejectAll(reason);
    for (const claim of this.#claims.values()) claim.release(reason);
  }

  get #hasEnded(): boolean {
    return this.#closing.signal.aborted;
  }

  #stopTimer(): void {
    if (this.#timer !== undefined) this.#source.clock.cancel(this.#timer);
    this.#timer = undefined;
  }

  #setState(state: SetPartitionerState): void {
    if (this.#state === state) return;
    this.#state = state;
    this.#listeners.notify(state);
  }
}

/** As in kazoo. */
const roundRobinPlan: PartitionPlan = (name, members, items) => {
  const own = members.indexOf(name);
  return own === -1 ? [] : items.filter((_item, index) => index % members.length === own);
};
