/**
 * A set of things to be done, each by one member of a group (kazoo's SetPartitioner, and beside it):
 *
 *     /queues
 *       ├─ party                          who shares, as in kazoo's ShallowParty
 *       │    ├─ 0f3a...-alice
 *       │    └─ 77c1...-bob
 *       └─ locks                          a lock for each item: whoever works on it holds it
 *            ├─ q1
 *            └─ q2
 *
 *     1. join the party
 *     2. the members are the same for `timeBoundaryMs`: each finds its share from their names, as all others do
 *     3. give back what is another's now: its signal is aborted, and when its work is done, its lock goes
 *     4. acquire the lock of each item of the share, and begin its work; behind whoever still has it
 *     5. the members change: 2.
 *
 * Shares are a plan, which two may see differently for a while. The locks are what keeps two from working on one item.
 */
import type { Acl, Millis, TimerHandle } from '@tskeeper/client';
import { childPath, onAbort } from '@tskeeper/client/internal';
import { checkCount, checkFunction, checkName, checkPlace, checkSettings, checkWaitOptions, named, surplusOf } from '../given.ts';
import { Lock } from '../locks/lock.ts';
import { RecipeError } from '../recipe-error.ts';
import { isEndOfSession } from '../sessions/session-source.ts';
import { Listeners } from '../listeners.ts';
import type { SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../waiting/wait-options.ts';
import { WaitingRoom } from '../waiting/waiting-room.ts';
import { Group, type Membership } from './group.ts';
import { type OwnPartition, PartitionClaim, type PartitionWork } from './partition-claim.ts';

/** Which items a member has, of all. All members have to come to the same plan, from the same names. */
export type PartitionPlan = (name: string, members: readonly string[], items: readonly string[]) => readonly string[];

/** How a set is shared. All members have the same items and the same plan. */
export interface SetPartitionerOptions {
  /** How long the members have to be the same before anything is given out anew, in milliseconds. Default: 30 000, as in kazoo. */
  readonly timeBoundaryMs?: Millis | undefined;
  /** The plan. Default: the items in their order are dealt out to the members in theirs, one by one, as in kazoo. */
  readonly plan?: PartitionPlan | undefined;
  /** Of whatever has to be made. Default: everyone may do everything. */
  readonly acl?: readonly Acl[] | undefined;
}

/** See `SetPartitioner.state`. */
export type SetPartitionerState = 'allocating' | 'acquired' | 'releasing' | 'closed';

const timeBoundaryMsDefault = 30_000;

/** A member that works on its share of a set, for as long as its client lives (kazoo's SetPartitioner). */
export class SetPartitioner implements AsyncDisposable {
  /** The znode below which members and locks are. */
  readonly path: string;
  /** This member's. */
  readonly name: string;
  readonly #source: SessionSource;
  readonly #items: readonly string[];
  readonly #work: PartitionWork;
  readonly #options: SetPartitionerOptions;
  readonly #claims = new Map<string, PartitionClaim>();
  readonly #end = new AbortController();
  readonly #closing = new AbortController();
  readonly #listeners = new Listeners<SetPartitionerState>();
  readonly #waiting: WaitingRoom;
  readonly #over: Promise<void>;
  /** The members that the share was found for. */
  #planned: string | undefined;
  #share: ReadonlySet<string> = new Set();
  #timer: TimerHandle | undefined;
  #state: SetPartitionerState = 'allocating';
  #closed: Promise<void> | undefined;

  /**
   * Begins at once. `work` is called with each item that this member comes to own, several at a time, and is to end when the signal of that is aborted: the item is
   * given back when what it returns is settled. `name` is that of no other member. Throws a TypeError for what is no client or no path, and for what cannot
   * be the name of a member or of an item; a RangeError for a boundary that is no time.
   */
  constructor(
    source: SessionSource,
    path: string,
    name: string,
    items: Iterable<string>,
    work: PartitionWork,
    options: SetPartitionerOptions = {},
  ) {
    checkPlace(source, path);
    checkSettings(options, 'SetPartitioner', arguments.length);
    checkName(name, 'the name of a member');
    // A text is a set of letters, which nobody means.
    if (typeof items === 'string' || typeof (items as Partial<Iterable<string>> | undefined)?.[Symbol.iterator] !== 'function')
      throw new TypeError(`items are an array or a Set of names, not ${named(items)}`);
    checkFunction(work, 'work');
    const { timeBoundaryMs = timeBoundaryMsDefault } = options;
    if (!(timeBoundaryMs >= 0)) throw new RangeError(`timeBoundaryMs is a number of milliseconds from 0, not ${timeBoundaryMs}`);
    this.path = path;
    this.name = name;
    this.#source = source;
    this.#items = [...new Set(items)].sort();
    for (const item of this.#items) checkName(item, 'an item');
    this.#work = work;
    this.#options = options;
    this.#waiting = new WaitingRoom(source, `the share that ${name} has of ${path}`);
    this.#over = this.#run();
  }

  /**
   * - `allocating`: the members are not yet the same for long enough, or some of the share is another's still.
   * - `acquired`: the share is had, all of it, and no more.
   * - `releasing`: something is to be given back, and its work is not done.
   * - `closed`: over.
   */
  get state(): SetPartitionerState {
    return this.#state;
  }

  /** What this member owns now. What it has been asked back for is among them, as long as its work goes on. */
  get owned(): readonly OwnPartition[] {
    return [...this.#claims.values()].flatMap(({ partition }) => partition ?? []);
  }

  /** Aborted when it is no member any more, with the reason: a RecipeError, Closed or Lost, or what a server refuses; not by `close`. */
  get signal(): AbortSignal {
    return this.#end.signal;
  }

  /** Listens to changes of `state` from now on; returns a function that ends it. */
  onStateChange(listener: (state: SetPartitionerState) => void): () => void {
    checkCount(arguments.length, 1, 'onStateChange(listener)');
    return this.#listeners.add(listener);
  }

  /** Resolves when the share is acquired, at once if it is. Rejects with a RecipeError, TimedOut; with the signal's reason; and with the reason of the end. */
  async ready(options: WaitOptions = {}): Promise<void> {
    checkCount(arguments.length, 1, 'ready(options)');
    checkWaitOptions(options, `the share of ${this.path}`);
    options.signal?.throwIfAborted();
    if (this.#isOver) throw this.#closing.signal.reason;
    if (this.#state !== 'acquired') await this.#waiting.wait(options);
  }

  /**
   * Is no member any more, asks all work to end, and resolves when it has and all is given back. Never rejects. The work itself calls it without `await`, if at all, as
   * it would wait for its own end.
   */
  close(): Promise<void> {
    const surplus = surplusOf(arguments.length, 0, 'close()');
    if (surplus !== undefined) return Promise.reject(surplus);
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** As `close`; never rejects. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    this.#finish(new RecipeError('Closed', `the partitioner of ${this.path} was closed`));
    await Promise.all([this.#over, ...[...this.#claims.values()].map(({ over }) => over)]);
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

  #onMembership({ members, inStep }: Membership): void {
    this.#stopTimer();
    // What is owned is kept meanwhile: its lock says that it is, and not the plan.
    if (!inStep) return;
    // By session and name: whoever has come back is another.
    const now = members.map(({ path }) => path).join();
    if (now !== this.#planned) {
      const { timeBoundaryMs = timeBoundaryMsDefault } = this.#options;
      this.#timer = this.#source.clock.after(timeBoundaryMs, () => this.#plan(now, members));
    }
    this.#look();
  }

  #plan(planned: string, members: Membership['members']): void {
    this.#timer = undefined;
    this.#planned = planned;
    const { plan = dealt } = this.#options;
    const names = [...new Set(members.map(({ name }) => name))].sort();
    try {
      this.#share = new Set(plan(this.name, names, this.#items));
    } catch (error) {
      this.#fail(error);
      return;
    }
    for (const claim of this.#claims.values()) {
      if (!this.#share.has(claim.item)) claim.giveBack(new RecipeError('Revoked', `${claim.item} is in the share of another now`));
    }
    for (const item of this.#share) this.#claim(item);
    this.#look();
  }

  /** Unless there is one. One that is being given back is followed by another. */
  #claim(item: string): void {
    if (this.#isOver || this.#claims.has(item)) return;
    const { acl } = this.#options;
    const lock = new Lock(this.#source, childPath(childPath(this.path, 'locks'), item), { name: '__lock__', data: this.name, acl });
    const claim = new PartitionClaim(item, lock, this.#work, {
      changed: () => this.#look(),
      failed: (error) => this.#fail(error),
    });
    this.#claims.set(item, claim);
    void this.#follow(claim);
  }

  async #follow(claim: PartitionClaim): Promise<void> {
    await claim.over;
    this.#claims.delete(claim.item);
    if (this.#share.has(claim.item)) this.#claim(claim.item);
    this.#look();
  }

  #look(): void {
    if (this.#isOver) return;
    const claims = [...this.#claims.values()];
    if (claims.some(({ isGivenBack }) => isGivenBack)) this.#become('releasing');
    else if (this.#timer !== undefined || this.#planned === undefined || claims.some(({ partition }) => partition === undefined))
      this.#become('allocating');
    else this.#become('acquired');
    if (this.#state === 'acquired') this.#waiting.admit();
  }

  #fail(error: unknown): void {
    if (this.#isOver) return;
    const reason = isEndOfSession(error) ? new RecipeError('Lost', 'the session is over', { cause: error }) : error;
    this.#finish(reason);
    this.#end.abort(reason);
  }

  #finish(reason: unknown): void {
    if (this.#isOver) return;
    this.#stopTimer();
    // Ahead of all who hear of it, since they may close it.
    this.#closing.abort(reason);
    this.#become('closed');
    this.#waiting.dismiss(reason);
    for (const claim of this.#claims.values()) claim.giveBack(reason);
  }

  get #isOver(): boolean {
    return this.#closing.signal.aborted;
  }

  #stopTimer(): void {
    if (this.#timer !== undefined) this.#source.clock.cancel(this.#timer);
    this.#timer = undefined;
  }

  #become(state: SetPartitionerState): void {
    if (this.#state === state) return;
    this.#state = state;
    this.#listeners.tell(state);
  }
}

/** As kazoo deals them out. */
const dealt: PartitionPlan = (name, members, items) => {
  const own = members.indexOf(name);
  return own === -1 ? [] : items.filter((_item, index) => index % members.length === own);
};
