/**
 * Which instance to use next, from a cache of those that are there.
 *
 *     registered ──enabled, included, not down──> usable ──strategy──> the one to use
 *                                                   ^                        │
 *                        after a while, or anew ────┘<────noteError, again and again
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
  /** Which of those that can be used. Default: `roundRobin()`. */
  readonly strategy?: ProviderStrategy | undefined;
  /** Whether an instance can be used at all. Default: all that are enabled. */
  readonly include?: ((instance: ServiceInstance<Payload>) => boolean) | undefined;
  /** After how many errors an instance is passed over. Default: 2. */
  readonly downAfterErrors?: number | undefined;
  /** For how long, in ms from the first of these errors; errors that are further apart do not count together. Default: 30 000. */
  readonly downForMs?: Millis | undefined;
}

/** Instances of one service to use. Made by `ServiceRegistry.provider`. (Curator's ServiceProvider.) */
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

  /** Made by `ServiceRegistry.provider`. Throws a RangeError for numbers that make no sense. */
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
        `downAfterErrors is a whole number from 1, not ${downAfterErrors}; leave noteError out if no instance is to be passed over`,
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
   * Resolves when the instances have been read, at once if they have. Rejects with a RecipeError, Closed, Lost or TimedOut; with the signal's reason; and with what
   * they cannot be read for, as SessionExpired.
   */
  async ready(options: WaitOptions = {}): Promise<void> {
    checkCount(arguments.length, 1, 'ready(options)');
    checkWaitOptions(options, `the instances of ${this.name}`);
    options.signal?.throwIfAborted();
    if (this.#end !== undefined) throw this.#end.reason;
    if (!this.#isShown) await this.#waiting.wait(options);
  }

  /** Whether what is known is as of now, as far as is known; false without a connection, when it may be of the past. */
  get inStep(): boolean {
    return this.#isShown && this.#cache.inStep;
  }

  /** Those that can be used, by id: enabled, included, and not passed over. None before `ready`. Without a connection, those of the past. */
  get instances(): readonly ServiceInstance<Payload>[] {
    if (!this.#isShown) return [];
    return this.#cache.instances.filter((each) => each.enabled && this.#include(each) && !this.#down.isDown(each));
  }

  /** One to use now; undefined when there is none. Ask again for each use. */
  choose(): ServiceInstance<Payload> | undefined {
    checkCount(arguments.length, 0, 'choose()');
    return this.#strategy(this.instances);
  }

  /** An instance was not to be reached, or has not answered: after so many times it is passed over for a while. */
  noteError(instance: ServiceInstance<Payload>): void {
    checkCount(arguments.length, 1, 'noteError(instance)');
    checkOptions(instance, 'choose() gives', 'an instance is');
    this.#down.note(instance);
  }

  /** Knows nothing new from here on. Never rejects. */
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
      // What ended the session is the reason of the end of the source.
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
