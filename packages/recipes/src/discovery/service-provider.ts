/**
 * Chooses the next instance to use, from a cache of the registered ones.
 *
 *     registered ──enabled, included, not down──> usable ──strategy──> the one to use
 *                                                   ^                        │
 *                after a while, or registered again ┘<────repeated noteError─┘
 */
import type { Millis } from '@tskeeper/client';
import {
  checkArgumentCount,
  checkFunction,
  checkOptions,
  checkConstructorOptions,
  checkWaitOptions,
  argumentCountError,
} from '../validation.ts';
import { RecipeError } from '../recipe-error.ts';
import { followSessions, isEndOfSession, type SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../wait-options.ts';
import { Waiters } from '../waiting/promises.ts';
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
 * The usable instances of one service. Made by `ServiceDiscovery.provider`. (Curator's
 * ServiceProvider.)
 */
export class ServiceProvider<Payload = unknown> implements AsyncDisposable {
  /** Of the service. */
  readonly name: string;
  readonly #strategy: ProviderStrategy;
  readonly #include: (instance: ServiceInstance<Payload>) => boolean;
  readonly #downInstances: DownInstances;
  readonly #waiters: Waiters;
  readonly #cache: ServiceCache<Payload>;
  #stopFollowing: (() => void) | undefined;
  /** Whether the instances have been read once. */
  #isLoaded = false;
  #failure: { readonly reason: unknown } | undefined;

  /** Made by `ServiceDiscovery.provider`. Throws a RangeError for numbers out of range. */
  constructor(
    source: SessionSource,
    name: string,
    openCache: (source: SessionSource) => ServiceCache<Payload>,
    options: ServiceProviderOptions<Payload> = {},
  ) {
    checkConstructorOptions(options, 'ServiceProvider', arguments.length);
    const { strategy = roundRobin(), include = () => true, downAfterErrors = 2, downForMs = 30_000 } = options;
    checkFunction(strategy, 'strategy');
    checkFunction(include, 'include');
    if (!Number.isInteger(downAfterErrors) || downAfterErrors < 1)
      throw new RangeError(
        `downAfterErrors must be a whole number from 1, not ${downAfterErrors}; if no instance is to be skipped, do not call noteError`,
      );
    if (!(downForMs >= 0)) throw new RangeError(`downForMs must be a number of milliseconds from 0, not ${downForMs}`);
    this.name = name;
    this.#strategy = strategy;
    this.#include = include;
    this.#downInstances = new DownInstances(source.clock, downAfterErrors, downForMs);
    this.#waiters = new Waiters(source, `the instances of ${name}`);
    this.#cache = openCache(source);
    void this.#load();
    this.#stopFollowing = followSessions(source, { onSession: () => undefined, onEnd: (reason) => this.#finish(reason) });
  }

  /**
   * Resolves when the instances have been read, at once if they have. Rejects with a RecipeError,
   * Closed, Lost or TimedOut; with the signal's reason; and with the error for which they cannot be
   * read, such as SessionExpired.
   */
  async ready(options: WaitOptions = {}): Promise<void> {
    checkArgumentCount(arguments.length, 1, 'ready(options)');
    checkWaitOptions(options, `the instances of ${this.name}`);
    options.signal?.throwIfAborted();
    if (this.#failure !== undefined) throw this.#failure.reason;
    if (!this.#isLoaded) await this.#waiters.wait(options);
  }

  /**
   * Whether the known instances are current, as far as this client knows; false without a
   * connection, when they may be out of date.
   */
  get isSynced(): boolean {
    return this.#isLoaded && this.#cache.isSynced;
  }

  /**
   * The usable instances, sorted by id: enabled, included, and not skipped. None before `ready`.
   * Without a connection, those last known.
   */
  get instances(): readonly ServiceInstance<Payload>[] {
    if (!this.#isLoaded) return [];
    return this.#cache.instances.filter((each) => each.enabled && this.#include(each) && !this.#downInstances.isDown(each));
  }

  /** An instance to use now; undefined if there is none. Call it again for each use. */
  choose(): ServiceInstance<Payload> | undefined {
    checkArgumentCount(arguments.length, 0, 'choose()');
    return this.#strategy(this.instances);
  }

  /**
   * Reports that an instance could not be reached, or has not answered: after some errors it is
   * skipped for a while.
   */
  noteError(instance: ServiceInstance<Payload>): void {
    checkArgumentCount(arguments.length, 1, 'noteError(instance)');
    checkOptions(instance, 'choose() gives', 'an instance');
    this.#downInstances.recordError(instance);
  }

  /** Stops updating the instances. Never rejects. */
  close(): Promise<void> {
    const surplus = argumentCountError(arguments.length, 0, 'close()');
    if (surplus !== undefined) return Promise.reject(surplus);
    this.#finish(new RecipeError('Closed', `the provider of ${this.name} is closed`));
    return Promise.resolve();
  }

  /** As `close`; never rejects. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #load(): Promise<void> {
    try {
      await this.#cache.ready();
    } catch (error) {
      // The error that ended the session is also the reason for the end of the source.
      if (isEndOfSession(error)) this.#waiters.rejectAll(error);
      else this.#finish(error);
      return;
    }
    this.#isLoaded = true;
    this.#waiters.resolveAll();
  }

  #finish(reason: unknown): void {
    if (this.#failure !== undefined) return;
    this.#failure = { reason };
    this.#stopFollowing?.();
    void this.#cache.close();
    this.#waiters.rejectAll(reason);
  }
}
