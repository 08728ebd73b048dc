/**
 * A process slot: a process that ended is replaced by another. To faults it is a client like any
 * other.
 */
import type { SetDataRequest } from '@tskeeper/protocol';
import type { Millis } from '@tskeeper/protocol';
import { SeededRandom } from '@tskeeper/runtime';
import type { VirtualCnxn } from '@tskeeper/runtime/internal';
import type { Actor, Ask } from '../clients/actor.ts';
import type { Stage } from '../story/stage.ts';
import { RecipeProcess, type Turn } from './recipe-process.ts';

export interface SeatOptions {
  readonly number: number;
  readonly timeoutMs: Millis;
  readonly requestTimeoutMs: Millis | undefined;
  /** Maximum pause between two turns. */
  readonly restMsMax: Millis;
  readonly turn: Turn;
}

export class Seat implements Actor {
  readonly #stage: Stage;
  readonly #random: SeededRandom;
  readonly #options: SeatOptions;
  /** All processes so far; the current one is last. */
  readonly processes: RecipeProcess[] = [];
  /** Whether the program of the last process has ended. */
  isDone = false;

  constructor(stage: Stage, random: SeededRandom, options: SeatOptions) {
    this.#stage = stage;
    this.#random = random;
    this.#options = options;
    this.#start();
  }

  #start(): void {
    const { number, timeoutMs, requestTimeoutMs, turn, restMsMax } = this.#options;
    const life = this.processes.length + 1;
    const process = new RecipeProcess(this.#stage, new SeededRandom(this.#random.uint32()), {
      name: `process-${number + 1}.${life}`,
      address: `10.8.${number + 1}.${life}`,
      number,
      timeoutMs,
      requestTimeoutMs,
    });
    this.processes.push(process);
    void this.#watchOver(process, process.run(turn, restMsMax));
  }

  async #watchOver(process: RecipeProcess, program: Promise<void>): Promise<void> {
    try {
      await program;
      this.isDone = true;
    } catch (error) {
      process.complain(`its program threw: ${String(error)}`);
    }
  }

  get process(): RecipeProcess {
    return this.processes.at(-1)!;
  }

  /** Of all its processes. */
  get turns(): number {
    return this.processes.reduce((sum, { turns }) => sum + turns, 0);
  }

  /** The process or its machine ends; another starts after a while, on another machine. */
  crash(what: 'process' | 'machine', downMs: Millis): void {
    if (this.process.dead) return;
    this.process.end(what);
    this.#stage.after(downMs, 'process', undefined, () => this.#start());
  }

  stop(): void {
    this.process.stop();
  }

  // --- As faults see it

  get name(): string {
    return this.process.name;
  }

  get ready(): boolean {
    return !this.process.dead && this.process.client?.state === 'connected';
  }

  get takesCalls(): boolean {
    return this.ready;
  }

  /** Recipes wait for long, which is expected. */
  readonly outstandingCount = 0;

  get wire(): VirtualCnxn | undefined {
    return this.process.wire;
  }

  /** A write without a waiter, as a lonely leader has in its log. */
  ask({ name, record }: Ask): void {
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

  moveOn(): void {
    const { wire } = this;
    wire?.forward.hold();
    wire?.backward.hold();
  }

  sleep(ms: Millis): void {
    this.#stage.cutBetween([this], this.#stage.world.servers, ms);
  }

  retire(): void {
    this.process.end('machine');
  }
}
