/**
 * A process that lives by a recipe: it has a session, starts another when that is over, and repeats
 * its program, as programs do. It can be paused and continue, and it can end at any moment.
 */
import { type Client, type ClientView, connect, KeeperError } from '@tskeeper/client';
import type { Millis } from '@tskeeper/protocol';
import { RecipeError, Sessions, type SessionSource } from '@tskeeper/recipes';
import type { Clock, SeededRandom } from '@tskeeper/runtime';
import type { VirtualCnxn } from '@tskeeper/runtime/internal';
import { serverPort } from '../clients/client-world.ts';
import type { PingsOnlyMode } from '../clients/pings-only-wire.ts';
import { WireTransport } from '../clients/wire-transport.ts';
import type { Run } from '../run/run.ts';
import type { TimerOwner } from '../world/virtual-clock.ts';
import { ProcessNetwork } from './process-network.ts';

/**
 * The program's repeated step. Resolves with whether it succeeded: a process that never does is
 * starved.
 */
export type Turn = (process: RecipeProcess, zk: Client) => Promise<boolean>;

export interface ProcessOptions {
  readonly name: string;
  readonly address: string;
  /** The index of the process slot, from 0. A process that replaces an ended one has the same. */
  readonly number: number;
  readonly timeoutMs: Millis;
  readonly requestTimeoutMs: Millis | undefined;
}

/** The reason of `RecipeProcess.stopping`. */
class Stopped extends Error {
  override readonly name = 'Stopped';
}

export class RecipeProcess implements TimerOwner {
  readonly name: string;
  readonly number: number;
  readonly timeoutMs: Millis;
  readonly requestTimeoutMs: Millis | undefined;
  readonly random: SeededRandom;
  /** The clock of this process: its timers do not fire while it is paused or after it has ended. */
  readonly clock: Clock;
  isDead = false;
  pausedUntilMs: Millis = 0;
  /** Infinity while it runs. */
  endedMs: Millis = Infinity;
  readonly freezes: { readonly fromMs: Millis; readonly toMs: Millis }[] = [];
  /** The number of holds that it believes to have. */
  holdCount = 0;
  /** The number of turns that succeeded. */
  turnsCompleted = 0;
  readonly #run: Run;
  readonly #network: ProcessNetwork;
  readonly #transport: WireTransport;
  readonly #stop = new AbortController();
  #client: Client | undefined;
  #connecting: Promise<Client> | undefined;
  #sessions: Promise<Sessions> | undefined;

  constructor(run: Run, random: SeededRandom, { name, address, number, timeoutMs, requestTimeoutMs }: ProcessOptions) {
    this.name = name;
    this.number = number;
    this.timeoutMs = timeoutMs;
    this.requestTimeoutMs = requestTimeoutMs;
    this.random = random;
    this.#run = run;
    this.clock = run.world.clock.forOwner(this);
    this.#network = new ProcessNetwork(run.world.clientNetwork(name, address), run.world.clock, this);
    this.#transport = new WireTransport(this.#network);
  }

  // --- For programs

  get nowMs(): Millis {
    return this.#run.nowMs;
  }

  /** Whether all faults have ceased. */
  get isHealed(): boolean {
    return this.#run.isHealed;
  }

  /** Aborted when the program must end: for waits that would otherwise never end. */
  get stopping(): AbortSignal {
    return this.#stop.signal;
  }

  /** A random number: 0 .. below - 1. */
  below(below: number): number {
    return this.random.below(below);
  }

  /** Lets time pass. */
  sleep(ms: Millis): Promise<void> {
    return new Promise((resolve) => {
      this.clock.after(ms, () => resolve());
    });
  }

  /** Counts a mark; it is also in the trace. */
  hitMark(mark: string): void {
    this.#run.hitMark(mark);
  }

  /** Reports a violation. */
  reportViolation(text: string): void {
    this.#run.reportViolation(`${this.name}: ${text}`);
  }

  /** A session that is not known to be over. */
  session(): Promise<Client> {
    if (this.#client !== undefined && this.#client.endReason === undefined) return Promise.resolve(this.#client);
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = undefined;
    });
    return this.#connecting;
  }

  /**
   * What this process passes to its recipes: half of the processes use Sessions, one as long as
   * they run, so that their recipes continue in the next session; the others use the current client
   * and recreate their recipes.
   */
  async source(zk: Client): Promise<SessionSource> {
    if (this.number % 2 === 0) return zk;
    this.#sessions ??= Sessions.start(() => this.session());
    const sessions = await this.#sessions;
    if (!sessions.signal.aborted) return sessions;
    this.#sessions = undefined;
    return zk;
  }

  /** Notes that a recipe continued in another session than the one in which it was called. */
  noteNextSession(asked: Client, had: ClientView): void {
    if (had !== asked) this.hitMark('a recipe continued in the next session');
  }

  async #connect(): Promise<Client> {
    const servers = this.#run.world.servers.map(({ name }) => `${name}:${serverPort}`).join(',');
    this.#client = await connect(servers, {
      sessionTimeoutMs: this.timeoutMs,
      connectTimeoutMs: Infinity,
      requestTimeoutMs: this.requestTimeoutMs,
      transport: this.#transport,
      clock: this.clock,
      random: this.random,
    });
    return this.#client;
  }

  // --- Life cycle

  /** Repeats the program until it is stopped. */
  async run(turn: Turn, restMsMax: Millis): Promise<void> {
    while (!this.#stop.signal.aborted) {
      try {
        if (await turn(this, await this.session())) this.turnsCompleted++;
      } catch (error) {
        this.handleError(error);
      }
      await this.sleep(1 + this.below(restMsMax));
    }
  }

  /** Work besides the program, whose errors are of the kind that programs meet. */
  async once(work: (zk: Client) => Promise<unknown>): Promise<void> {
    try {
      await work(await this.session());
    } catch (error) {
      this.handleError(error);
    }
  }

  /**
   * Handles an error: notes it if it is of the kind that programs meet; any other rejection of a
   * recipe is a violation.
   */
  handleError(error: unknown): void {
    if (error instanceof Stopped) return;
    if (error instanceof RecipeError) this.hitMark(`gave up: ${error.code}`);
    else if (KeeperError.is(error, 'SessionExpired', 'ConnectionLoss', 'SessionMoved', 'RequestTimeout'))
      this.hitMark(`gave up: ${error.code}`);
    else this.reportViolation(error instanceof Error ? (error.stack ?? error.message) : String(error));
  }

  /** Called once; `run` resolves when the program has ended. */
  stop(): void {
    this.#stop.abort(new Stopped('the program must end'));
  }

  get client(): Client | undefined {
    return this.#client;
  }

  get wire(): VirtualCnxn | undefined {
    const { stream } = this.#transport;
    return stream === undefined ? undefined : this.#network.wireOf(stream);
  }

  freeze(ms: Millis): void {
    const { nowMs } = this.#run;
    if (this.pausedUntilMs > nowMs) return;
    this.pausedUntilMs = nowMs + ms;
    this.freezes.push({ fromMs: nowMs, toMs: nowMs + ms });
  }

  /** From now on the server answers only pings, as long as this connection lasts. */
  answerOnlyPings(mode: PingsOnlyMode): void {
    this.#transport.answerOnlyPings(mode);
  }

  /** Ends at once, possibly with its machine. */
  end(what: 'process' | 'machine'): void {
    this.isDead = true;
    this.endedMs = this.#run.nowMs;
    this.#network.shutDown(what);
  }
}
