/** The session commands work in: opened with the first command that needs it, and told of what happens to it. */
import { type Client, type ClientState, connect, ConnectStringError, KeeperError, type SessionEvent } from '@tskeeper/client';
import { exitCodes } from '../exit-codes.ts';
import { CommandFailed } from './command.ts';

/** How to reach an ensemble; the options in front of a command. */
export interface ConnectionSettings {
  /** `host:port,host:port/chroot` */
  readonly server: string;
  /** Session time-out asked for. */
  readonly timeoutMs: number;
  /** How long to look for a server that opens a session; undefined where the user did not say: then zk/connecting.ts decides. */
  readonly connectTimeoutMs: number | undefined;
  readonly readOnly: boolean;
  /** Longest request and answer; undefined: ZooKeeper's default. */
  readonly maxPacketBytes: number | undefined;
  readonly auth: readonly { readonly scheme: string; readonly auth: string }[];
}

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

export class ZkSession {
  readonly #onState: (event: SessionEvent) => void;
  #settings: ConnectionSettings;
  #client: Promise<Client> | undefined;
  /** The client, once there is one. */
  #opened: Client | undefined;
  /** Ended by `close`: only `connect` opens another. */
  #closed = false;

  constructor(settings: ConnectionSettings, onState: (event: SessionEvent) => void) {
    this.#settings = settings;
    this.#onState = onState;
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
    return this.#closed ? 'CLOSED' : stateTexts[this.#opened?.state ?? 'connecting'];
  }

  get opened(): Client | undefined {
    return this.#opened;
  }

  /** The client of this session. Rejects with a sentence when there is none to be had. */
  async client(signal: AbortSignal): Promise<Client> {
    if (this.#closed || this.#opened?.closedBecause !== undefined)
      throw new CommandFailed('Not connected; "connect" begins a new session', exitCodes.noConnection);
    this.#client ??= this.#open(signal);
    try {
      return await this.#client;
    } catch (error) {
      // The next command tries again.
      this.#client = undefined;
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

  async close(): Promise<void> {
    const client = this.#opened;
    this.#closed = true;
    this.#client = undefined;
    this.#opened = undefined;
    await client?.close();
  }

  async #open(signal: AbortSignal): Promise<Client> {
    const { server, timeoutMs, readOnly, maxPacketBytes, auth } = this.#settings;
    try {
      const times = { sessionTimeoutMs: timeoutMs, connectTimeoutMs: timeoutMs };
      const client = await connect(server, { ...times, readOnly, maxPacketBytes, auth, signal });
      client.on('state', this.#onState);
      this.#opened = client;
      return client;
    } catch (error) {
      if (error instanceof ConnectStringError) throw new CommandFailed(error.message, exitCodes.refused);
      if (KeeperError.is(error, 'ConnectionLoss')) {
        const code = exitCodes.noConnection;
        throw new CommandFailed(`cannot connect to ${server}: ${error.message}`, code);
      }
      throw error;
    }
  }
}
