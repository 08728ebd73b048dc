/**
 * One client after another. A client ends with its session; what has to outlive that continues with
 * the next one:
 *
 *     open ──> client ──its session has expired──> open ──> client ──> ...
 *              client ──closed, AuthFailed, moved──> over
 *     open ──rejects──> over
 */
import { type Client, type Clock, connect, type ConnectOptions, formatSessionId, type ServerList } from '@tskeeper/client';
import { onAbort } from '@tskeeper/client/internal';
import { type InspectFunction, inspectObject } from '../inspect-custom.ts';
import {
  callOptionTypes,
  checkCallOptions,
  checkClient,
  checkArgumentCount,
  checkFunction,
  checkOptions,
  argumentCountError,
} from '../validation.ts';
import { RecipeError } from '../recipe-error.ts';
import { Listeners } from '../listeners.ts';
import { sessionsBrand } from '../sessions-brand.ts';
import { Deadline } from '../waiting/deadline.ts';
import type { WaitOptions } from '../wait-options.ts';

/**
 * Opens a client, for instance `(signal) => connect(servers, { connectTimeoutMs: Infinity, signal
 * })`. The signal is aborted when the client is no longer needed.
 */
export type OpenClient = (signal: AbortSignal) => Promise<Client>;

/** How `Sessions.start` connects to servers. */
export type SessionsOptions = Omit<ConnectOptions, 'session'>;

/**
 * Clients with one session each; the next one is opened when the session of the last has expired.
 * Every recipe accepts Sessions instead of a client, and continues in the next session as its
 * documentation says. Watches and ephemerals that a program has created by itself are not carried
 * over: create them again in `onSession`.
 */
export class Sessions implements AsyncDisposable {
  readonly #open: OpenClient;
  readonly #endController = new AbortController();
  readonly #listeners = new Listeners<Client>();
  #client: Client;
  #opening: Promise<void> | undefined;
  #closeResult: Promise<void> | undefined;

  private constructor(open: OpenClient, client: Client) {
    if (typeof open !== 'function') throw new TypeError("create Sessions with await Sessions.start('zk1:2181'), not with new");
    this.#open = open;
    this.#client = client;
    this.#followClient(client);
  }

  /**
   * Connects as `connect` of @tskeeper/client does, and connects again when the session has
   * expired, then without a time limit (`connectTimeoutMs` limits the first connection only).
   * Rejects as `connect` does. `signal` ends the first connection only; `close` ends all. (As
   * Curator's CuratorFramework opens a new ZooKeeper handle.)
   */
  static start(servers: ServerList, options?: SessionsOptions): Promise<Sessions>;
  /**
   * The same with a function that opens each client. Rejects as `open` does, and with a TypeError
   * when its result is not a client. If `open` rejects for a later client, the Sessions end, so let
   * it try without a time limit: `connectTimeoutMs: Infinity`.
   */
  static start(open: OpenClient, options?: { readonly signal?: AbortSignal | undefined }): Promise<Sessions>;
  static async start(serversOrOpen: ServerList | OpenClient, options: SessionsOptions = {}): Promise<Sessions> {
    checkArgumentCount(arguments.length, 2, 'Sessions.start(servers, options)');
    // A copy: the program may change its array later.
    const servers =
      typeof serversOrOpen === 'string'
        ? serversOrOpen
        : Array.isArray(serversOrOpen)
          ? [...(serversOrOpen as Exclude<ServerList, string>)]
          : undefined;
    if (servers === undefined)
      checkFunction(serversOrOpen, 'the first argument, if it is neither a connect string nor an array of servers,');
    checkOptions(options, '{ sessionTimeoutMs: 10_000 }');
    checkCallOptions(options, servers === undefined ? callOptionTypes.start : callOptionTypes.startWithServers, 'Sessions.start');
    const { signal = new AbortController().signal } = options;
    if (servers !== undefined) {
      const client = await connect(servers, options);
      return new Sessions((wanted) => connect(servers, { ...options, connectTimeoutMs: Infinity, signal: wanted }), client);
    }
    const open = serversOrOpen as OpenClient;
    const client = await open(signal);
    checkClient(client);
    return new Sessions(open, client);
  }

  /** Identifies Sessions for recipes. */
  get [sessionsBrand](): true {
    return true;
  }

  /**
   * The latest client: the current one, or the one whose session has just expired, until the next
   * is open.
   */
  get client(): Client {
    return this.#client;
  }

  /**
   * A client whose session is not known to be over: at once if there is one, otherwise the next, as
   * soon as it is open. Rejects with a RecipeError, TimedOut; with the reason of `signal` when
   * there will be no further client; and with the reason of the given signal.
   */
  async ready(options: WaitOptions = {}): Promise<Client> {
    checkArgumentCount(arguments.length, 1, 'ready(options)');
    using deadline = new Deadline(this, options, 'a client with a session');
    return await new Promise<Client>((resolve, reject) => {
      this.signal.throwIfAborted();
      const cleanups: (() => void)[] = [];
      const settle = (how: () => void) => {
        for (const end of cleanups.splice(0)) end();
        how();
      };
      for (const signal of [this.signal, deadline.signal]) cleanups.push(onAbort(signal, () => settle(() => reject(signal.reason))));
      if (this.#client.endReason === undefined) settle(() => resolve(this.#client));
      else cleanups.push(this.#listeners.add((client) => settle(() => resolve(client))));
    });
  }

  /** The clock of the clients. */
  get clock(): Clock {
    return this.#client.clock;
  }

  /**
   * Aborted when there will be no further client. The reason is a RecipeError, Closed, or what
   * `open` has rejected with.
   */
  get signal(): AbortSignal {
    return this.#endController.signal;
  }

  /**
   * Calls `listener` with the current client, now, and with each one that follows; returns a
   * function that ends it.
   */
  onSession(listener: (zk: Client) => void): () => void {
    checkArgumentCount(arguments.length, 1, 'onSession(listener)');
    const end = this.#listeners.add(listener);
    if (this.#client.endReason === undefined) listener(this.#client);
    return end;
  }

  /** Closes the client, and opens no further one. Never rejects. */
  close(): Promise<void> {
    const surplus = argumentCountError(arguments.length, 0, 'close()');
    if (surplus !== undefined) return Promise.reject(surplus);
    this.#closeResult ??= this.#close();
    return this.#closeResult;
  }

  /** What `console.log` shows of Sessions: the current client. */
  [Symbol.for('nodejs.util.inspect.custom')](_depth: unknown, options: unknown, inspect: InspectFunction): string {
    const { state, sessionId, connectedServer: server } = this.client;
    return inspectObject(this, { state, sessionId: formatSessionId(sessionId), server }, options, inspect);
  }

  /** As `close`; never rejects. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    this.#end(new RecipeError('Closed', 'the sessions were closed'));
    await this.#opening;
    await this.#client.close();
  }

  #followClient(client: Client): void {
    const checkEnd = () => {
      if (client.endReason === undefined) return;
      unlisten();
      if (this.signal.aborted) return;
      if (client.endReason === 'expired') this.#opening = this.#openNext();
      else this.#end(new RecipeError('Closed', `the client is ${client.endReason}`));
    };
    const unlisten = client.on('state', checkEnd);
    checkEnd();
  }

  async #openNext(): Promise<void> {
    let client: Client;
    try {
      client = await this.#open(this.signal);
      checkClient(client);
    } catch (error) {
      this.#end(error);
      return;
    }
    this.#client = client;
    if (this.signal.aborted) return;
    this.#followClient(client);
    this.#listeners.notify(client);
  }

  #end(reason: unknown): void {
    if (!this.signal.aborted) this.#endController.abort(reason);
  }
}
