/**
 * One client after another. A client ends with its session, and what has to outlive that goes on with the next:
 *
 *     open ──> client ──its session has expired──> open ──> client ──> ...
 *              client ──closed, AuthFailed, moved──> over
 *     open ──rejects──> over
 */
import type { Client } from '@tskeeper/client';
import { checkClient, checkFunction } from '../given.ts';
import { RecipeError } from '../recipe-error.ts';
import { Listeners } from '../listeners.ts';

/** Opens a client, for instance `(signal) => connect(servers, { connectTimeoutMs: Infinity, signal })`. The signal comes when it is not wanted any more. */
export type OpenClient = (signal: AbortSignal) => Promise<Client>;

/**
 * Clients for one session each, the next opened when the session of the last has expired. For what is kept across sessions, such as `PersistentNode`: nothing
 * else is carried over, so watches and ephemerals of a program are its own to make again (`each`).
 */
export class Sessions implements AsyncDisposable {
  readonly #open: OpenClient;
  readonly #over = new AbortController();
  readonly #listeners = new Listeners<Client>();
  #client: Client;
  #opening: Promise<void> | undefined;
  #closed: Promise<void> | undefined;

  private constructor(open: OpenClient, client: Client) {
    this.#open = open;
    this.#client = client;
    this.#follow(client);
  }

  /**
   * Opens the first client. Rejects as `open` does. Later ones are opened by the same function; if it rejects then, that is the end, so let it try for as long as
   * it takes: `connectTimeoutMs: Infinity`. (What Curator's CuratorFramework does about the session of its ZooKeeper handle.)
   */
  static async start(open: OpenClient, { signal }: { readonly signal?: AbortSignal | undefined } = {}): Promise<Sessions> {
    checkFunction(open, 'what opens a client');
    const client = await open(signal ?? new AbortController().signal);
    checkClient(client);
    return new Sessions(open, client);
  }

  /** The youngest: the one that is at work, or the one whose session has just expired, as long as the next is not open. */
  get client(): Client {
    return this.#client;
  }

  /** Aborted when there will be no other client, with what has ended it as its reason: a RecipeError, Closed, or what `open` has rejected with. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  /** Calls `begin` with the client that lives, now, and with each one that follows; returns a function that ends it. */
  each(begin: (zk: Client) => void): () => void {
    const end = this.#listeners.add(begin);
    if (this.#client.closedBecause === undefined) begin(this.#client);
    return end;
  }

  /** Closes the client, and opens no other. Never rejects. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
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

  #follow(client: Client): void {
    const look = () => {
      if (client.closedBecause === undefined) return;
      unlisten();
      if (this.signal.aborted) return;
      if (client.closedBecause === 'expired') this.#opening = this.#openNext();
      else this.#end(new RecipeError('Closed', `the client is ${client.closedBecause}`));
    };
    const unlisten = client.on('state', look);
    look();
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
    this.#follow(client);
    this.#listeners.tell(client);
  }

  #end(reason: unknown): void {
    if (!this.signal.aborted) this.#over.abort(reason);
  }
}
