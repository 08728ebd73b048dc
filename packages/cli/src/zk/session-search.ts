/**
 * Searches for a server that opens a session: what to report in the meantime, and when a command
 * fails.
 *
 * As soon as every server of the connect string has failed once, one line reports what was tried
 * and why it failed; a single unreachable server among others that answer is not reported. A
 * command fails when every server has failed and 4 seconds have passed. A silent server may be slow
 * or far away, so a command waits for it up to the session timeout. `--timeout` sets the limit in
 * both cases. The search itself continues until `close`, so that the next command of a shell finds
 * the session opened in the meantime.
 */
import {
  type Client,
  type Clock,
  type ConnectFailure,
  ConnectStringError,
  type createClient,
  formatServer,
  parseConnectString,
  type SessionEvent,
} from '@tskeeper/client';
import { exitCodes } from '../exit-codes.ts';
import { rejectOnAbort } from './reject-on-abort.ts';
import { CommandFailed } from './command.ts';
import type { ConnectionSettings } from './connection-settings.ts';
import { connectErrorText } from './connect-error-text.ts';

/**
 * Longer than a server takes to start and an ensemble to elect a leader, and short enough for a
 * person to wait without explanation.
 */
const giveUpAfterMs = 4000;
/** How long to report nothing while no server has failed. */
const reportAfterMs = 2000;

export interface SessionSearchOptions {
  readonly clock: Clock;
  /** Receives the report of the search, once. */
  readonly onProgress: (sentence: string) => void;
  readonly onState: (event: SessionEvent) => void;
  /** Called when the session is open. */
  readonly onOpened: () => void;
  /** The client's `createClient`. */
  readonly createClient: typeof createClient;
}

export class SessionSearch {
  readonly #settings: ConnectionSettings;
  readonly #options: SessionSearchOptions;
  readonly #timers: object[] = [];
  readonly #startedAtMs: number;
  /** How long a command waits, whatever the servers do. */
  readonly #timeoutMs: number;
  /** The last error of each server. */
  readonly #failures = new Map<string, string>();
  /** Servers without a known failure; empty for an SRV name, whose servers are not known here. */
  readonly #untried: Set<string>;
  readonly #opening: Promise<Client>;
  /** Resolves when a command has waited long enough. */
  readonly #timedOut: Promise<void>;
  #resolveTimedOut: () => void = () => undefined;
  #hasTimedOut = false;
  #hasReported = false;
  #hasEnded = false;
  #isClosed = false;
  /** The client that searches for a server. */
  #clientConnecting: Client | undefined;
  #client: Client | undefined;

  constructor(settings: ConnectionSettings, options: SessionSearchOptions) {
    this.#settings = settings;
    this.#options = options;
    const { clock } = options;
    this.#startedAtMs = clock.now().elapsedMs;
    this.#timeoutMs = settings.connectTimeoutMs ?? settings.timeoutMs;
    this.#untried = serversOf(settings.connectString);
    this.#timedOut = new Promise((resolve) => {
      this.#resolveTimedOut = resolve;
    });
    if (reportAfterMs < this.#timeoutMs) this.#timers.push(clock.after(reportAfterMs, () => this.#reportConnecting()));
    this.#timers.push(clock.after(this.#timeoutMs, () => this.#timeOut()));
    this.#opening = this.#open();
    // Commands receive the rejection when they call `client`.
    this.#opening.catch(() => undefined);
  }

  /** The client after it has opened a session. */
  get opened(): Client | undefined {
    return this.#client;
  }

  /** The search ended without a session: `close` was called, or a server rejected an identity. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /**
   * The client with its session. Rejects with a sentence if no server opens one, and with the
   * signal's reason.
   */
  async client(signal: AbortSignal): Promise<Client> {
    if (this.#client !== undefined) return this.#client;
    if (this.#hasTimedOut) throw this.#connectError('still trying');
    const client = await Promise.race([this.#opening, this.#timedOut, rejectOnAbort(signal)]);
    if (client !== undefined) return client;
    const seconds = secondsText(this.#elapsedMs);
    throw this.#connectError(`gave up after ${seconds}, --timeout <ms> sets another time`);
  }

  /** Ends the search, or the session that it opened. */
  async close(): Promise<void> {
    this.#cancelTimers();
    this.#isClosed = true;
    await this.#clientConnecting?.close();
  }

  async #open(): Promise<Client> {
    const { connectString, timeoutMs, readOnly, maxPacketBytes, auth } = this.#settings;
    try {
      const client = this.#options.createClient(connectString, {
        sessionTimeoutMs: timeoutMs,
        connectTimeoutMs: Infinity,
        readOnly,
        maxPacketBytes,
        auth,
      });
      this.#clientConnecting = client;
      client.on('connectFailed', (failure) => this.#onConnectFailed(failure));
      await client.ready();
      this.#client = client;
      client.on('state', this.#options.onState);
      this.#options.onOpened();
      return client;
    } catch (error) {
      this.#hasEnded = true;
      if (error instanceof ConnectStringError) throw new CommandFailed(error.message, exitCodes.refused);
      throw error;
    } finally {
      this.#cancelTimers();
    }
  }

  #onConnectFailed({ server: serverAndAddress, reason }: ConnectFailure): void {
    // After a session was open, the client's state describes it.
    if (this.#client !== undefined) return;
    // Names the address of a server with several: `zk1:2181 at 10.0.0.1`.
    const server = serverAndAddress.split(' at ')[0]!;
    this.#failures.set(server, `${serverAndAddress}: ${connectErrorText(reason)}`);
    this.#untried.delete(server);
    if (this.#untried.size > 0) return;
    const remainingMs = this.#giveUpAfterMs - this.#elapsedMs;
    if (remainingMs <= 0) this.#timeOut();
    else this.#report(`cannot connect to ${this.#failureList}; trying again for ${secondsText(remainingMs)}`);
  }

  /** No server has opened the session, and not every server has failed. */
  #reportConnecting(): void {
    const failures = this.#failures.size === 0 ? '' : ` (${this.#failureList})`;
    const left = secondsText(this.#timeoutMs - this.#elapsedMs);
    this.#report(`connecting to ${this.#settings.connectString}; no session yet${failures}; trying for ${left}`);
  }

  #report(sentence: string): void {
    if (this.#hasReported || this.#isClosed) return;
    this.#hasReported = true;
    this.#options.onProgress(sentence);
  }

  #timeOut(): void {
    this.#hasTimedOut = true;
    this.#resolveTimedOut();
  }

  #cancelTimers(): void {
    for (const timer of this.#timers.splice(0)) this.#options.clock.cancel(timer);
  }

  get #giveUpAfterMs(): number {
    return Math.min(this.#settings.connectTimeoutMs ?? giveUpAfterMs, this.#timeoutMs);
  }

  get #elapsedMs(): number {
    return this.#options.clock.now().elapsedMs - this.#startedAtMs;
  }

  get #failureList(): string {
    return [...this.#failures.values()].join(', ');
  }

  #connectError(what: string): CommandFailed {
    const tried = this.#failures.size === 0 ? `${this.#settings.connectString}: no answer` : this.#failureList;
    return new CommandFailed(`cannot connect to ${tried}; ${what}`, exitCodes.noConnection, { code: 'ConnectionLoss' });
  }
}

/**
 * The servers of a connect string as the client names them; none if the string is invalid, which
 * the client will report.
 */
function serversOf(connectString: string): Set<string> {
  try {
    return new Set(parseConnectString(connectString).servers.map(formatServer));
  } catch {
    return new Set();
  }
}

/** `4 s`, `0.3 s`. */
function secondsText(ms: number): string {
  return `${ms < 10_000 ? Math.round(ms / 100) / 10 : Math.round(ms / 1000)} s`;
}
