/**
 * The session of the commands: opened by the first command that needs it; reports its changes to a
 * listener.
 */
import { type Client, type ClientState, type Clock, createClient, type SessionEvent } from '@tskeeper/client';
import { exitCodes } from '../exit-codes.ts';
import { CommandFailed } from './command.ts';
import { Connecting } from './connecting.ts';
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
  onSearch(sentence: string): void;
  /** The session is open. */
  onOpened?(): void;
}

export class ZkSession {
  readonly #clock: Clock;
  readonly #listener: SessionListener;
  #settings: ConnectionSettings;
  #connecting: Connecting | undefined;
  /** After `close`, only `connect` opens another session. */
  #closed = false;

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

  get server(): string {
    return this.#settings.server;
  }

  /** The state in zkCli's words, for the prompt. */
  get stateText(): string {
    return this.#closed ? 'CLOSED' : stateTexts[this.opened?.state ?? 'connecting'];
  }

  /** Whether a command would have to wait for a session. */
  get isConnecting(): boolean {
    return this.stateText === 'CONNECTING';
  }

  get opened(): Client | undefined {
    return this.#connecting?.opened;
  }

  /** Starts the search for a server without waiting for it. */
  begin(): void {
    this.#begun();
  }

  /**
   * The client of this session. Rejects with a sentence if no server opens one, and with the
   * signal's reason.
   */
  async client(signal: AbortSignal): Promise<Client> {
    if (this.#closed || this.opened?.closedBecause !== undefined)
      throw new CommandFailed('Not connected; "connect" opens a new session', exitCodes.noConnection);
    const connecting = this.#begun();
    try {
      return await connecting.client(signal);
    } catch (error) {
      // A server rejected the session, or the connect string is invalid: the next command starts a
      // new search.
      if (connecting.hasEnded && this.#connecting === connecting) this.#connecting = undefined;
      throw error;
    }
  }

  /** Ends the session and opens another. */
  async connect(server: string, signal: AbortSignal): Promise<Client> {
    await this.close();
    this.#settings = { ...this.#settings, server };
    this.#closed = false;
    return await this.client(signal);
  }

  /** Ends the session, or the search for a server. */
  async close(): Promise<void> {
    const connecting = this.#connecting;
    this.#closed = true;
    this.#connecting = undefined;
    await connecting?.close();
  }

  #begun(): Connecting {
    this.#connecting ??= new Connecting(this.#settings, {
      clock: this.#clock,
      dial: createClient,
      say: (sentence) => this.#listener.onSearch(sentence),
      onState: (event) => this.#listener.onState(event),
      onOpened: () => this.#listener.onOpened?.(),
    });
    return this.#connecting;
  }
}
