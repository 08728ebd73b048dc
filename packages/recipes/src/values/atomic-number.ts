/**
 * A number that many change; no change is lost or counted twice (Curator's DistributedAtomicLong,
 * kazoo's Counter).
 *
 *     /number                               the number
 *       ├─ _c_2b7e...-mark-0000000000       ephemeral, one for each client that changes it
 *       └─ lock                             for those that have lost too often
 *            └─ _c_91aa...-lock-0000000007
 *
 *     1. getData
 *     2. multi: setData, if it still has that version; setData mark, whose version shows the
 *        outcome if the reply is lost
 *     3. it has another version: 1. again, and from the third loss on under the lock, so that a
 *        crowd becomes a queue
 */
import { type Acl, type ClientView, KeeperError, op } from '@tskeeper/client';
import { childPath } from '@tskeeper/client/internal';
import { checkCodec, checkArgumentCount, checkPath, checkSourceAndPath, checkConstructorOptions, describeValue } from '../validation.ts';
import { Lock } from '../locks/lock.ts';
import { IdempotencyMarkers } from '../markers/idempotency-markers.ts';
import { runAcrossSessions, mayHaveBeenApplied, PerSession, type SessionSource } from '../sessions/session-source.ts';
import { Deadline, unlessAborted } from '../waiting/deadline.ts';
import { isUnsettled, retryForever } from '../waiting/own-znode.ts';
import type { WaitOptions } from '../wait-options.ts';
import { bigint64, type NumberFormat } from './number-format.ts';

/** How a number is kept. All clients that change it use the same format. */
export interface AtomicNumberOptions<Value extends number | bigint> {
  /**
   * The format in the znode. Default: `bigint64`, 8 bytes, as in Curator's DistributedAtomicLong.
   */
  readonly format?: NumberFormat<Value> | undefined;
  /**
   * The lock for clients that have lost three times. Default: `lock` below the number. (Curator's
   * PromotedToLock.)
   */
  readonly lockPath?: string | undefined;
  /** The ACL of each znode that has to be created. Default: all permissions for everyone. */
  readonly acl?: readonly Acl[] | undefined;
}

/** A change of a number. */
export interface NumberChange<Value extends number | bigint> {
  /** The number before the change. */
  readonly before: Value;
  /** The number after the change. */
  readonly after: Value;
}

/** How often a change may lose before it queues. */
const optimisticAttemptsMax = 3;

/**
 * A number in a znode that many change. Each change is applied once, or its failure is reported;
 * after a lost reply the outcome is looked up.
 */
export class AtomicNumber<Value extends number | bigint = bigint> implements AsyncDisposable {
  /** The znode of the number. */
  readonly path: string;
  /** The format in the znode. */
  readonly format: NumberFormat<Value>;
  /** As given. */
  readonly source: SessionSource;
  readonly #acl: readonly Acl[] | undefined;
  readonly #lockPath: string;
  readonly #markers: PerSession<IdempotencyMarkers>;
  #isClosed = false;
  /** One change after the other, so that changes of one process do not lose against each other. */
  #lastChange: Promise<unknown> = Promise.resolve();

  /**
   * Sends no request. The znode need not exist, and is 0 until it does. Without a format it is a
   * `bigint`. Throws a TypeError if `source` is not a client or `path` is not a path.
   */
  constructor(source: SessionSource, path: string, options: AtomicNumberOptions<Value> = {}) {
    checkSourceAndPath(source, path);
    checkConstructorOptions(options, 'AtomicNumber', arguments.length);
    const { format = bigint64 as unknown as NumberFormat<Value>, lockPath = childPath(path, 'lock'), acl } = options;
    checkCodec(format, 'int32');
    checkPath(lockPath);
    this.path = path;
    this.format = format;
    this.source = source;
    this.#acl = acl;
    this.#lockPath = lockPath;
    this.#markers = new PerSession((zk) => {
      const marks = new IdempotencyMarkers(zk, path, acl);
      if (this.#isClosed) void marks.close();
      return marks;
    });
  }

  /**
   * The number, as the server that the client is connected to has it. Rejects as `Client.getData`
   * does, except with NoNode, and with a TypeError for data that are not a number.
   */
  async get(options: WaitOptions = {}): Promise<Value> {
    checkArgumentCount(arguments.length, 1, 'get(options)');
    using deadline = new Deadline(this.source, options, `a reply about number ${this.path}`);
    const { signal } = deadline;
    const found = await runAcrossSessions(this.source, signal, (zk) => this.#read(zk, signal));
    return found?.value ?? this.format.zero;
  }

  /**
   * Adds to it, and resolves with the number before and after. Rejects with a RangeError when the
   * format cannot hold the sum; with a RecipeError: TimedOut; Lost, when another client deletes its
   * place at the lock, and nothing is added; with the signal's reason; with a TypeError for data
   * that are not a number; and as `Client.multi` does. When it rejects by time, signal or the end
   * of the session, or as its place at the lock may not be deleted (NoAuth), the sum may have been
   * written.
   */
  async add(delta: Value, options: WaitOptions = {}): Promise<NumberChange<Value>> {
    checkArgumentCount(arguments.length, 2, 'add(delta, options)');
    this.#checkValueType(delta);
    return await this.#change((before) => this.format.add(before, delta), options);
  }

  /** Subtracts from it. Rejects as `add` does. */
  async subtract(delta: Value, options: WaitOptions = {}): Promise<NumberChange<Value>> {
    checkArgumentCount(arguments.length, 2, 'subtract(delta, options)');
    this.#checkValueType(delta);
    return await this.add(-delta as Value, options);
  }

  /** Adds 1. Rejects as `add` does. */
  async increment(options: WaitOptions = {}): Promise<NumberChange<Value>> {
    checkArgumentCount(arguments.length, 1, 'increment(options)');
    return await this.add(this.format.fromNumber(1), options);
  }

  /** Subtracts 1. Rejects as `add` does. */
  async decrement(options: WaitOptions = {}): Promise<NumberChange<Value>> {
    checkArgumentCount(arguments.length, 1, 'decrement(options)');
    return await this.subtract(this.format.fromNumber(1), options);
  }

  /** Sets it, whatever it is. Rejects as `add` does. (Curator's `forceSet` and `trySet`.) */
  async set(value: Value, options: WaitOptions = {}): Promise<NumberChange<Value>> {
    checkArgumentCount(arguments.length, 2, 'set(value, options)');
    this.#checkValueType(value);
    return await this.#change(() => value, options);
  }

  /**
   * Sets it to `value` if it is `expected`; resolves with whether it was. Rejects as `add` does.
   */
  async compareAndSet(expected: Value, value: Value, options: WaitOptions = {}): Promise<boolean> {
    checkArgumentCount(arguments.length, 3, 'compareAndSet(expected, value, options)');
    this.#checkValueType(expected);
    this.#checkValueType(value);
    return (await this.#maybeChange((before) => (before === expected ? value : undefined), options)) !== undefined;
  }

  /**
   * Creates the znode with this number if it does not exist; resolves with whether it did so.
   * Rejects as `Client.create` does, except with NodeExists.
   */
  async initialize(value: Value, options: WaitOptions = {}): Promise<boolean> {
    checkArgumentCount(arguments.length, 2, 'initialize(value, options)');
    this.#checkValueType(value);
    using deadline = new Deadline(this.source, options, `a reply about number ${this.path}`);
    const { signal } = deadline;
    return await runAcrossSessions(this.source, signal, (zk) => this.#initializeInSession(zk, value, signal), mayHaveBeenApplied);
  }

  async #initializeInSession(zk: ClientView, value: Value, signal: AbortSignal): Promise<boolean> {
    try {
      await zk.create(this.path, this.format.encode(value), {
        parents: 'container',
        acl: this.#acl,
        idempotent: true,
        ...retryForever,
        signal,
      });
      return true;
    } catch (error) {
      if (!KeeperError.is(error, 'NodeExists')) throw error;
      return false;
    }
  }

  /**
   * Deletes its own mark below the number, which otherwise ends with the session; the number stays.
   * Never rejects.
   */
  async close(): Promise<void> {
    checkArgumentCount(arguments.length, 0, 'close()');
    this.#isClosed = true;
    await this.#markers.latest?.close();
  }

  /** As `close`; never rejects. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /**
   * 1 and 1n never compare equal, so a value of the other type could neither be added nor match.
   */
  #checkValueType(value: Value): void {
    const wanted = typeof this.format.zero;
    if (typeof value !== wanted)
      throw new TypeError(`a number of ${this.path} must be a ${wanted}, not ${describeValue(value)}, by its format`);
  }

  async #change(next: (before: Value) => Value, options: WaitOptions): Promise<NumberChange<Value>> {
    return (await this.#maybeChange(next, options))!;
  }

  /** undefined if there is nothing to change. */
  async #maybeChange(next: (before: Value) => Value | undefined, options: WaitOptions): Promise<NumberChange<Value> | undefined> {
    using deadline = new Deadline(this.source, options, `a change of ${this.path}`);
    const { signal } = deadline;
    const turn = this.#changeInTurn(this.#lastChange, next, signal);
    this.#lastChange = turn.catch(() => undefined);
    return await unlessAborted(turn, signal);
  }

  async #changeInTurn(
    last: Promise<unknown>,
    next: (before: Value) => Value | undefined,
    signal: AbortSignal,
  ): Promise<NumberChange<Value> | undefined> {
    await last;
    return await runAcrossSessions(this.source, signal, (zk) => this.#changeInSession(zk, next, signal), isUnsettled);
  }

  async #changeInSession(
    zk: ClientView,
    next: (before: Value) => Value | undefined,
    signal: AbortSignal,
  ): Promise<NumberChange<Value> | undefined> {
    for (let tries = 0; tries < optimisticAttemptsMax; tries++) {
      const change = await this.#tryChange(zk, next, signal);
      if (change !== 'lost') return change;
    }
    await using _held = await new Lock(zk, this.#lockPath, { acl: this.#acl }).acquire({ signal });
    for (;;) {
      const change = await this.#tryChange(zk, next, signal);
      if (change !== 'lost') return change;
    }
  }

  async #tryChange(
    zk: ClientView,
    next: (before: Value) => Value | undefined,
    signal: AbortSignal,
  ): Promise<NumberChange<Value> | undefined | 'lost'> {
    signal.throwIfAborted();
    const found = await this.#read(zk, signal);
    const before = found?.value ?? this.format.zero;
    const after = next(before);
    if (after === undefined) return undefined;
    const data = this.format.encode(after);
    if (found === undefined) {
      await this.#initializeInSession(zk, this.format.zero, signal);
      return 'lost';
    }
    if (found.version === -1)
      throw new RangeError(
        `the version of ${this.path} has wrapped around to -1, which means any version; write the znode once without a version`,
      );
    try {
      await this.#markers.get(zk).write([op.setData(this.path, data, { version: found.version })]);
      return { before, after };
    } catch (error) {
      if (!KeeperError.is(error, 'BadVersion', 'NoNode') || error.failedIndex !== 0) throw error;
      return 'lost';
    }
  }

  /** undefined if the znode does not exist. */
  async #read(zk: ClientView, signal: AbortSignal): Promise<{ readonly value: Value; readonly version: number } | undefined> {
    try {
      const { data, stat } = await zk.getData(this.path, { ...retryForever, signal });
      // kazoo creates it without data.
      const value = data === null || data.length === 0 ? this.format.zero : this.format.decode(data);
      return { value, version: stat.version };
    } catch (error) {
      if (KeeperError.is(error, 'NoNode')) return undefined;
      throw error;
    }
  }
}
