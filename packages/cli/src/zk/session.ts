/**
 * The session of the commands: opened by the first command that needs it; reports its changes to a
 * listener.
 */
import { type Client, type ClientState, type Clock, createClient, type SessionEvent } from '@tskeeper/client';
import { exitCodes } from '../exit-codes.ts';
import { CommandFailed } from './command.ts';
import { SessionSearch } from './session-search.ts';
import type { ConnectionSettings } from './connection-settings.ts';

/**
 * zkCli's words for the states of its client: a client without a connection is connecting, and only
 * a rejected identity has its own final state.
 */
const stateTexts: Readonly<Record<ClientState, string>> = {
  connecting: 'CONNECTING',
  suspended: 'CONNECTING',
  connected: 'CONNECTED',
  connectedReadOnly: 'CONNECTEDREADONLY',
  authFailed: 'AUTH_FAILED',
  expired: 'CLOSED',
  moved: 'CLOSED',
  closed: 'CLOSED',
};

/** Receives changes of a session. */
export interface SessionListener {
  /** The state of an open session has changed. */
  onState(event: SessionEvent): void;
  /** A sentence about a search for servers that takes long, or starts again. */
  onProgress(sentence: string): void;
  /** The session is open. */
  onOpened?(): void;
}

export class ZkSession {
  readonly #clock: Clock;
  readonly #listener: SessionListener;
  #settings: ConnectionSettings;
  #search: SessionSearch | undefined;
  /** After `close`, only `connect` opens another session. */
  #isClosed = false;

  /**
   * `clock` limits the search. The client uses the machine's clock, since servers answer in real
   * time.
   */
  constructor(settings: ConnectionSettings, clock: Clock, listener: SessionListener) {
    this.#settings = settings;
    this.#clock = clock;
    this.#listener = listener;
  }

  /** Settings of the current session; `connect` changes the servers. */
  get settings(): ConnectionSettings {
    return this.#settings;
  }

  get connectString(): string {
    return this.#settings.connectString;
  }

  /** The state in zkCli's words, for the prompt. */
  get stateText(): string {
    return this.#isClosed ? 'CLOSED' : stateTexts[this.opened?.state ?? 'connecting'];
  }

  /** Whether a command would have to wait for a session. */
  get isConnecting(): boolean {
    return this.stateText === 'CONNECTING';
  }

  get opened(): Client | undefined {
    return this.#search?.opened;
  }

  /** Starts the search for a server without waiting for it. */
  startConnecting(): void {
    this.#ensureSearch();
  }

  /**
   * The client of this session. Rejects with a sentence if no server opens one, and with the
   * signal's reason.
   */
  async client(signal: AbortSignal): Promise<Client> {
    if (this.#isClosed || this.opened?.endReason !== undefined)
      throw new CommandFailed('Not connected; "connect" opens a new session', exitCodes.noConnection);
    const search = this.#ensureSearch();
    try {
      return await search.client(signal);
    } catch (error) {
      // A server rejected the session, or the connect string is invalid: the next command starts a
      // new search.
      if (search.hasEnded && this.#search === search) this.#search = undefined;
      throw error;
    }
  }

  /** Ends the session and opens another. */
  async connect(connectString: string, signal: AbortSignal): Promise<Client> {
    await this.close();
    this.#settings = { ...this.#settings, connectString };
    this.#isClosed = false;
    return await this.client(signal);
  }

  /** Ends the session, or the search for a server. */
  async close(): Promise<void> {
    const search = this.#search;
    this.#isClosed = true;
    this.#search = undefined;
    await search?.close();
  }

  #ensureSearch(): SessionSearch {
    this.#search ??= new SessionSearch(this.#settings, {
      clock: this.#clock,
      createClient: createClient,
      onProgress: (sentence) => this.#listener.onProgress(sentence),
      onState: (event) => this.#listener.onState(event),
      onOpened: () => this.#listener.onOpened?.(),
    });
    return this.#search;
  }
}
