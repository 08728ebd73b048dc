/**
 * A process slot: a process that ended is replaced by another. To faults it is a client like any
 * other.
 */
import type { SetDataRequest } from '@tskeeper/protocol';
import type { Millis } from '@tskeeper/protocol';
import { SeededRandom } from '@tskeeper/runtime';
import type { VirtualCnxn } from '@tskeeper/runtime/internal';
import type { Actor, ClientRequest } from '../clients/actor.ts';
import type { Run } from '../run/run.ts';
import { RecipeProcess, type Turn } from './recipe-process.ts';

export interface ProcessSlotOptions {
  readonly number: number;
  readonly timeoutMs: Millis;
  readonly requestTimeoutMs: Millis | undefined;
  /** Maximum pause between two turns. */
  readonly pauseMsMax: Millis;
  readonly turn: Turn;
}

export class ProcessSlot implements Actor {
  readonly #run: Run;
  readonly #random: SeededRandom;
  readonly #options: ProcessSlotOptions;
  /** All processes so far; the current one is last. */
  readonly processes: RecipeProcess[] = [];
  /** Whether the program of the last process has ended. */
  isDone = false;

  constructor(run: Run, random: SeededRandom, options: ProcessSlotOptions) {
    this.#run = run;
    this.#random = random;
    this.#options = options;
    this.#start();
  }

  #start(): void {
    const { number, timeoutMs, requestTimeoutMs, turn, pauseMsMax } = this.#options;
    const life = this.processes.length + 1;
    const process = new RecipeProcess(this.#run, new SeededRandom(this.#random.uint32()), {
      name: `process-${number + 1}.${life}`,
      address: `10.8.${number + 1}.${life}`,
      number,
      timeoutMs,
      requestTimeoutMs,
    });
    this.processes.push(process);
    void this.#awaitEnd(process, process.run(turn, pauseMsMax));
  }

  async #awaitEnd(process: RecipeProcess, program: Promise<void>): Promise<void> {
    try {
      await program;
      this.isDone = true;
    } catch (error) {
      process.reportViolation(`its program threw: ${String(error)}`);
    }
  }

  get process(): RecipeProcess {
    return this.processes.at(-1)!;
  }

  /** Of all its processes. */
  get turns(): number {
    return this.processes.reduce((sum, { turnsCompleted }) => sum + turnsCompleted, 0);
  }

  /** The process or its machine ends; another starts after a while, on another machine. */
  crash(what: 'process' | 'machine', downMs: Millis): void {
    if (this.process.isDead) return;
    this.process.end(what);
    this.#run.schedule(downMs, 'process', undefined, () => this.#start());
  }

  stop(): void {
    this.process.stop();
  }

  // --- As faults see it

  get name(): string {
    return this.process.name;
  }

  get ready(): boolean {
    return !this.process.isDead && this.process.client?.state === 'connected';
  }

  get acceptsRequests(): boolean {
    return this.ready;
  }

  /** Recipes wait for long, which is expected. */
  readonly outstandingCount = 0;

  get wire(): VirtualCnxn | undefined {
    return this.process.wire;
  }

  /** A write without a waiter, as a lonely leader has in its log. */
  submit({ name, record }: ClientRequest): void {
    if (name !== 'setData') throw new Error(`a process of a recipe cannot send ${name}`);
    const { path, data } = record as SetDataRequest;
    void this.process.client?.setData(path!, data).catch(() => undefined);
  }

  reset(): void {
    this.wire?.forward.resetAfter(0);
  }

  halfClose(): void {
    this.reset();
  }

  redial(): void {
    const { wire } = this;
    wire?.forward.cut();
    wire?.backward.cut();
  }

  goOffline(ms: Millis): void {
    this.#run.cutLinks([this], this.#run.world.servers, ms);
  }

  abandon(): void {
    this.process.end('machine');
  }
}
