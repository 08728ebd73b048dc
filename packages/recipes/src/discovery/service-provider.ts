/**
 * Chooses the next instance to use, from a cache of the registered ones.
 *
 *     registered ──enabled, included, not down──> usable ──strategy──> the one to use
 *                                                   ^                        │
 *                after a while, or registered again ┘<────repeated noteError─┘
 */
import type { Millis } from '@tskeeper/client';
import { checkCount, checkFunction, checkOptions, checkSettings, checkWaitOptions, surplusOf } from '../given.ts';
import { RecipeError } from '../recipe-error.ts';
import { eachSession, isEndOfSession, type SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../waiting/wait-options.ts';
import { WaitingRoom } from '../waiting/waiting-room.ts';
import { DownInstances } from './down-instances.ts';
import type { ServiceCache } from './service-cache.ts';
import type { ServiceInstance } from './service-instance.ts';
import { type ProviderStrategy, roundRobin } from './strategies.ts';

/** How to choose. */
export interface ServiceProviderOptions<Payload> {
  /** Which of the usable instances. Default: `roundRobin()`. */
  readonly strategy?: ProviderStrategy | undefined;
  /** Whether an instance may be used at all. Default: all that are enabled. */
  readonly include?: ((instance: ServiceInstance<Payload>) => boolean) | undefined;
  /** After how many errors an instance is skipped. Default: 2. */
  readonly downAfterErrors?: number | undefined;
  /**
   * For how long, in ms from the first of these errors; errors that are further apart do not count
   * together. Default: 30 000.
   */
  readonly downForMs?: Millis | undefined;
}

/**
 * The usable instances of one service. Made by `ServiceRegistry.provider`. (Curator's
 * ServiceProvider.)
 */
export class ServiceProvider<Payload = unknown> implements AsyncDisposable {
  /** Of the service. */
  readonly name: string;
  readonly #strategy: ProviderStrategy;
  readonly #include: (instance: ServiceInstance<Payload>) => boolean;
  readonly #down: DownInstances;
  readonly #waiting: WaitingRoom;
  readonly #cache: ServiceCache<Payload>;
  #unfollow: (() => void) | undefined;
  /** Whether the instances have been read once. */
  #isShown = false;
  #end: { readonly reason: unknown } | undefined;

  /** Made by `ServiceRegistry.provider`. Throws a RangeError for numbers out of range. */
  constructor(
    source: SessionSource,
    name: string,
    open: (source: SessionSource) => ServiceCache<Payload>,
    options: ServiceProviderOptions<Payload> = {},
  ) {
    checkSettings(options, 'ServiceProvider', arguments.length);
    const { strategy = roundRobin(), include = () => true, downAfterErrors = 2, downForMs = 30_000 } = options;
    checkFunction(strategy, 'strategy');
    checkFunction(include, 'include');
    if (!Number.isInteger(downAfterErrors) || downAfterErrors < 1)
      throw new RangeError(
        `downAfterErrors is a whole number from 1, not ${downAfterErrors}; if no instance is to be skipped, do not call noteError`,
      );
    if (!(downForMs >= 0)) throw new RangeError(`downForMs is a number of milliseconds from 0, not ${downForMs}`);
    this.name = name;
    this.#strategy = strategy;
    this.#include = include;
    this.#down = new DownInstances(source.clock, downAfterErrors, downForMs);
    this.#waiting = new WaitingRoom(source, `the instances of ${name}`);
    this.#cache = open(source);
    void this.#serve();
    this.#unfollow = eachSession(source, { begin: () => undefined, ended: (reason) => this.#over(reason) });
  }

  /**
   * Resolves when the instances have been read, at once if they have. Rejects with a RecipeError,
   * Closed, Lost or TimedOut; with the signal's reason; and with the error for which they cannot be
   * read, such as SessionExpired.
   */
  async ready(options: WaitOptions = {}): Promise<void> {
    checkCount(arguments.length, 1, 'ready(options)');
    checkWaitOptions(options, `the instances of ${this.name}`);
    options.signal?.throwIfAborted();
    if (this.#end !== undefined) throw this.#end.reason;
    if (!this.#isShown) await this.#waiting.wait(options);
  }

  /**
   * Whether the known instances are current, as far as this client knows; false without a
   * connection, when they may be out of date.
   */
  get inStep(): boolean {
    return this.#isShown && this.#cache.inStep;
  }

  /**
   * The usable instances, sorted by id: enabled, included, and not skipped. None before `ready`.
   * Without a connection, those last known.
   */
  get instances(): readonly ServiceInstance<Payload>[] {
    if (!this.#isShown) return [];
    return this.#cache.instances.filter((each) => each.enabled && this.#include(each) && !this.#down.isDown(each));
  }

  /** An instance to use now; undefined if there is none. Call it again for each use. */
  choose(): ServiceInstance<Payload> | undefined {
    checkCount(arguments.length, 0, 'choose()');
    return this.#strategy(this.instances);
  }

  /**
   * Reports that an instance could not be reached, or has not answered: after some errors it is
   * skipped for a while.
   */
  noteError(instance: ServiceInstance<Payload>): void {
    checkCount(arguments.length, 1, 'noteError(instance)');
    checkOptions(instance, 'choose() gives', 'an instance is');
    this.#down.note(instance);
  }

  /** Stops updating the instances. Never rejects. */
  close(): Promise<void> {
    const surplus = surplusOf(arguments.length, 0, 'close()');
    if (surplus !== undefined) return Promise.reject(surplus);
    this.#over(new RecipeError('Closed', `the provider of ${this.name} is closed`));
    return Promise.resolve();
  }

  /** As `close`; never rejects. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #serve(): Promise<void> {
    try {
      await this.#cache.ready();
    } catch (error) {
      // The error that ended the session is also the reason for the end of the source.
      if (isEndOfSession(error)) this.#waiting.dismiss(error);
      else this.#over(error);
      return;
    }
    this.#isShown = true;
    this.#waiting.admit();
  }

  #over(reason: unknown): void {
    if (this.#end !== undefined) return;
    this.#end = { reason };
    this.#unfollow?.();
    void this.#cache.close();
    this.#waiting.dismiss(reason);
  }
}
