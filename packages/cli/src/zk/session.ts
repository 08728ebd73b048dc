/** The session commands work in: opened with the first command that needs it, and told of what happens to it. */
import { type Client, type ClientState, type Clock, createClient, type SessionEvent } from '@tskeeper/client';
import { exitCodes } from '../exit-codes.ts';
import { CommandFailed } from './command.ts';
import { Connecting } from './connecting.ts';
import type { ConnectionSettings } from './connection-settings.ts';

/** zkCli's words, which are those of its client: one that has lost its connection is connecting, and only a refused identity has an end of its own. */
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

/** What a session tells of itself. */
export interface SessionListener {
  /** The state of a session that was open has changed. */
  onState(event: SessionEvent): void;
  /** A sentence about a search for servers that takes long, or has to be made again. */
  onSearch(sentence: string): void;
  /** The session is open. */
  onOpened?(): void;
}

export class ZkSession {
  readonly #clock: Clock;
  readonly #listener: SessionListener;
  #settings: ConnectionSettings;
  #connecting: Connecting | undefined;
  /** Ended by `close`: only `connect` opens another. */
  #closed = false;

  /** The clock limits the search. The client that connects keeps the machine's, since servers answer it in real time. */
  constructor(settings: ConnectionSettings, clock: Clock, listener: SessionListener) {
    this.#settings = settings;
    this.#clock = clock;
    this.#listener = listener;
  }

  /** Those of the session now; `connect` changes the servers. */
  get settings(): ConnectionSettings {
    return this.#settings;
  }

  get server(): string {
    return this.#settings.server;
  }

  /** In zkCli's words, for its prompt. */
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

  /** Begins to look for a server, and does not wait for it. */
  begin(): void {
    this.#begun();
  }

  /** The client of this session. Rejects with a sentence when no server opens one, and with the reason of the signal. */
  async client(signal: AbortSignal): Promise<Client> {
    if (this.#closed || this.opened?.closedBecause !== undefined)
      throw new CommandFailed('Not connected; "connect" begins a new session', exitCodes.noConnection);
    const connecting = this.#begun();
    try {
      return await connecting.client(signal);
    } catch (error) {
      // A server has refused the session, or the connect string is wrong: the next command tries again.
      if (connecting.hasEnded && this.#connecting === connecting) this.#connecting = undefined;
      throw error;
    }
  }

  /** Ends the session, and begins another. */
  async connect(server: string, signal: AbortSignal): Promise<Client> {
    await this.close();
    this.#settings = { ...this.#settings, server };
    this.#closed = false;
    return await this.client(signal);
  }

  /** Ends the session, or the search for one. */
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
