/**
 * A process that lives by a recipe: it has a session, begins another when that is over, and goes through its program again and again, as
 * programs do. It can stand still and go on as if nothing had been, and it can end at any moment.
 */
import { type Client, type ClientView, connect, KeeperError } from '@tskeeper/client';
import type { Millis } from '@tskeeper/protocol';
import { RecipeError, Sessions, type SessionSource } from '@tskeeper/recipes';
import type { Clock, SeededRandom } from '@tskeeper/runtime';
import type { VirtualCnxn } from '@tskeeper/runtime/internal';
import { serverPort } from '../clients/client-world.ts';
import type { Silence } from '../clients/silence.ts';
import { WireTransport } from '../clients/wire-transport.ts';
import type { Stage } from '../story/stage.ts';
import type { Owner } from '../world/virtual-clock.ts';
import { ProcessNetwork } from './process-network.ts';

/** What it does over and over. Whether it got what it came for: who never does has been forgotten. */
export type Turn = (process: RecipeProcess, zk: Client) => Promise<boolean>;

export interface ProcessOptions {
  readonly name: string;
  readonly address: string;
  /** Which of the story's processes it is, from 0 on. The one that takes its place when it has ended has the same. */
  readonly number: number;
  readonly timeoutMs: Millis;
  readonly requestTimeoutMs: Millis | undefined;
}

/** When somebody says stop: the reason of `RecipeProcess.stopping`. */
class Stopped extends Error {
  override readonly name = 'Stopped';
}

export class RecipeProcess implements Owner {
  readonly name: string;
  readonly number: number;
  readonly timeoutMs: Millis;
  readonly requestTimeoutMs: Millis | undefined;
  readonly random: SeededRandom;
  /** Of this process: nothing comes of it while it stands still, or when it has ended. */
  readonly clock: Clock;
  dead = false;
  pausedUntilMs: Millis = 0;
  /** Infinity as long as it runs. */
  endedMs: Millis = Infinity;
  readonly standstills: { readonly fromMs: Millis; readonly toMs: Millis }[] = [];
  /** How much it holds, as it believes. */
  holds = 0;
  /** How often it got what it came for. */
  turns = 0;
  readonly #stage: Stage;
  readonly #network: ProcessNetwork;
  readonly #transport: WireTransport;
  readonly #stop = new AbortController();
  #client: Client | undefined;
  #connecting: Promise<Client> | undefined;
  #sessions: Promise<Sessions> | undefined;

  constructor(stage: Stage, random: SeededRandom, { name, address, number, timeoutMs, requestTimeoutMs }: ProcessOptions) {
    this.name = name;
    this.number = number;
    this.timeoutMs = timeoutMs;
    this.requestTimeoutMs = requestTimeoutMs;
    this.random = random;
    this.#stage = stage;
    this.clock = stage.world.clock.of(this);
    this.#network = new ProcessNetwork(stage.world.clientNetwork(name, address), stage.world.clock, this);
    this.#transport = new WireTransport(this.#network);
  }

  // --- For programs

  get nowMs(): Millis {
    return this.#stage.nowMs;
  }

  /** Nothing goes wrong any more. */
  get isHealed(): boolean {
    return this.#stage.isHealed;
  }

  /** Aborted when the program is to come to its end: for a wait that would never end otherwise. */
  get stopping(): AbortSignal {
    return this.#stop.signal;
  }

  /** One of so many: 0 .. below - 1. */
  below(below: number): number {
    return this.random.below(below);
  }

  /** Lets time pass. */
  pause(ms: Millis): Promise<void> {
    return new Promise((resolve) => {
      this.clock.after(ms, () => resolve());
    });
  }

  /** A rare thing that happened, to be counted; it stands in the trace as well. */
  note(mark: string): void {
    this.#stage.note(mark);
  }

  /** What must not be. */
  complain(text: string): void {
    this.#stage.complain(`${this.name}: ${text}`);
  }

  /** A session that is not known to be over. */
  session(): Promise<Client> {
    if (this.#client !== undefined && this.#client.closedBecause === undefined) return Promise.resolve(this.#client);
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = undefined;
    });
    return this.#connecting;
  }

  /**
   * What this process makes its recipes with: half of the processes have Sessions, one for as long as they run, so that their recipes go on in the next session; the others have the
   * client of now, and make their recipes again.
   */
  async source(zk: Client): Promise<SessionSource> {
    if (this.number % 2 === 0) return zk;
    this.#sessions ??= Sessions.start(() => this.session());
    const sessions = await this.#sessions;
    if (!sessions.signal.aborted) return sessions;
    this.#sessions = undefined;
    return zk;
  }

  /** Takes note when a recipe has gone on in another session than that in which it was asked. */
  wentOn(asked: Client, had: ClientView): void {
    if (had !== asked) this.note('a recipe went on in the next session');
  }

  async #connect(): Promise<Client> {
    const servers = this.#stage.world.servers.map(({ name }) => `${name}:${serverPort}`).join(',');
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

  // --- Its life

  /** Goes through the program until it is told to stop. */
  async run(turn: Turn, restMsMax: Millis): Promise<void> {
    while (!this.#stop.signal.aborted) {
      try {
        if (await turn(this, await this.session())) this.turns++;
      } catch (error) {
        this.met(error);
      }
      await this.pause(1 + this.below(restMsMax));
    }
  }

  /** Something by the way, whose failure is of the kind that programs meet. */
  async once(work: (zk: Client) => Promise<unknown>): Promise<void> {
    try {
      await work(await this.session());
    } catch (error) {
      this.met(error);
    }
  }

  /** Something has failed. That is noted if it is of the kind that programs meet; whatever else a recipe rejects with is a fault of its own. */
  met(error: unknown): void {
    if (error instanceof Stopped) return;
    if (error instanceof RecipeError) this.note(`gave up: ${error.code}`);
    else if (KeeperError.is(error, 'SessionExpired', 'ConnectionLoss', 'SessionMoved', 'RequestTimeout'))
      this.note(`gave up: ${error.code}`);
    else this.complain(error instanceof Error ? (error.stack ?? error.message) : String(error));
  }

  /** To be called once; `run` resolves when its program has come to its end. */
  stop(): void {
    this.#stop.abort(new Stopped('the program is to come to its end'));
  }

  get client(): Client | undefined {
    return this.#client;
  }

  get wire(): VirtualCnxn | undefined {
    const { stream } = this.#transport;
    return stream === undefined ? undefined : this.#network.wireOf(stream);
  }

  standStill(ms: Millis): void {
    const { nowMs } = this.#stage;
    if (this.pausedUntilMs > nowMs) return;
    this.pausedUntilMs = nowMs + ms;
    this.standstills.push({ fromMs: nowMs, toMs: nowMs + ms });
  }

  /** Its server answers nothing but pings from now on, as long as this connection lasts. */
  silence(silence: Silence): void {
    this.#transport.fallSilent(silence);
  }

  /** At once, and its machine with it perhaps. */
  end(what: 'process' | 'machine'): void {
    this.dead = true;
    this.endedMs = this.#stage.nowMs;
    this.#network.cease(what);
  }
}
