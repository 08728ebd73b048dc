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
import { aborted } from './aborted.ts';
import { CommandFailed } from './command.ts';
import type { ConnectionSettings } from './connection-settings.ts';
import { troubleText } from './trouble-text.ts';

/**
 * Longer than a server takes to start and an ensemble to elect a leader, and short enough for a
 * person to wait without explanation.
 */
const patienceMs = 4000;
/** How long to report nothing while no server has failed. */
const quietMs = 2000;

export interface ConnectingParts {
  readonly clock: Clock;
  /** Receives the report of the search, once. */
  readonly say: (sentence: string) => void;
  readonly onState: (event: SessionEvent) => void;
  /** Called when the session is open. */
  readonly onOpened: () => void;
  /** The client's `createClient`. */
  readonly dial: typeof createClient;
}

export class Connecting {
  readonly #settings: ConnectionSettings;
  readonly #parts: ConnectingParts;
  readonly #timers: object[] = [];
  readonly #beganMs: number;
  /** How long a command waits, whatever the servers do. */
  readonly #limitMs: number;
  /** The last error of each server. */
  readonly #troubles = new Map<string, string>();
  /** Servers without a known failure; empty for an SRV name, whose servers are not known here. */
  readonly #untried: Set<string>;
  readonly #opening: Promise<Client>;
  /** Resolves when a command has waited long enough. */
  readonly #impatience: Promise<void>;
  #giveUp: () => void = () => undefined;
  #gaveUp = false;
  #hasSaid = false;
  #hasEnded = false;
  #isClosed = false;
  /** The client that searches for a server. */
  #searching: Client | undefined;
  #client: Client | undefined;

  constructor(settings: ConnectionSettings, parts: ConnectingParts) {
    this.#settings = settings;
    this.#parts = parts;
    const { clock } = parts;
    this.#beganMs = clock.now().elapsedMs;
    this.#limitMs = settings.connectTimeoutMs ?? settings.timeoutMs;
    this.#untried = serversOf(settings.server);
    this.#impatience = new Promise((resolve) => {
      this.#giveUp = resolve;
    });
    if (quietMs < this.#limitMs) this.#timers.push(clock.after(quietMs, () => this.#sayConnecting()));
    this.#timers.push(clock.after(this.#limitMs, () => this.#lose()));
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
    if (this.#gaveUp) throw this.#failure('still trying');
    const client = await Promise.race([this.#opening, this.#impatience, aborted(signal)]);
    if (client !== undefined) return client;
    const seconds = secondsText(this.#elapsedMs);
    throw this.#failure(`gave up after ${seconds}, --timeout <ms> sets another time`);
  }

  /** Ends the search, or the session that it opened. */
  async close(): Promise<void> {
    this.#over();
    this.#isClosed = true;
    await this.#searching?.close();
  }

  async #open(): Promise<Client> {
    const { server, timeoutMs, readOnly, maxPacketBytes, auth } = this.#settings;
    try {
      const client = this.#parts.dial(server, { sessionTimeoutMs: timeoutMs, connectTimeoutMs: Infinity, readOnly, maxPacketBytes, auth });
      this.#searching = client;
      client.on('connectFailed', (failure) => this.#failed(failure));
      await client.connected();
      this.#client = client;
      client.on('state', this.#parts.onState);
      this.#parts.onOpened();
      return client;
    } catch (error) {
      this.#hasEnded = true;
      if (error instanceof ConnectStringError) throw new CommandFailed(error.message, exitCodes.refused);
      throw error;
    } finally {
      this.#over();
    }
  }

  #failed({ server: place, reason }: ConnectFailure): void {
    // After a session was open, the client's state describes it.
    if (this.#client !== undefined) return;
    // Names the address of a server with several: `zk1:2181 at 10.0.0.1`.
    const server = place.split(' at ')[0]!;
    this.#troubles.set(server, `${place}: ${troubleText(reason)}`);
    this.#untried.delete(server);
    if (this.#untried.size > 0) return;
    const left = this.#patienceMs - this.#elapsedMs;
    if (left <= 0) this.#lose();
    else this.#say(`cannot connect to ${this.#troubleList}; trying again for ${secondsText(left)}`);
  }

  /** No server has opened the session, and not every server has failed. */
  #sayConnecting(): void {
    const troubles = this.#troubles.size === 0 ? '' : ` (${this.#troubleList})`;
    const left = secondsText(this.#limitMs - this.#elapsedMs);
    this.#say(`connecting to ${this.#settings.server}; no session yet${troubles}; trying for ${left}`);
  }

  #say(sentence: string): void {
    if (this.#hasSaid || this.#isClosed) return;
    this.#hasSaid = true;
    this.#parts.say(sentence);
  }

  #lose(): void {
    this.#gaveUp = true;
    this.#giveUp();
  }

  #over(): void {
    for (const timer of this.#timers.splice(0)) this.#parts.clock.cancel(timer);
  }

  get #patienceMs(): number {
    return Math.min(this.#settings.connectTimeoutMs ?? patienceMs, this.#limitMs);
  }

  get #elapsedMs(): number {
    return this.#parts.clock.now().elapsedMs - this.#beganMs;
  }

  get #troubleList(): string {
    return [...this.#troubles.values()].join(', ');
  }

  #failure(what: string): CommandFailed {
    const tried = this.#troubles.size === 0 ? `${this.#settings.server}: no answer` : this.#troubleList;
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
