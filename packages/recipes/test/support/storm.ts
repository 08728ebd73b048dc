/**
 * The faults of a story's network and server, step by step, as a seed decides: connections break,
 * clients are cut off for a while, the server dies and restarts, and the story's own mishaps. The
 * stories say what has to hold nevertheless.
 */
import { SeededRandom } from '@tskeeper/runtime';
import { ClientWorld } from '../../../client/test/support/client-world.ts';

/** A mishap of the story itself: in how many steps of a hundred it happens, and what it does. */
export type Mishap = readonly [chance: number, happen: () => unknown];

export interface StormOptions {
  readonly steps: number;
  /**
   * In how many steps of a hundred a connection breaks; a client is cut off; the server dies and
   * restarts.
   */
  readonly breaks: number;
  readonly cuts: number;
  readonly restarts: number;
  readonly mishaps?: readonly Mishap[];
  /** For how many steps a client is cut off. */
  readonly cutSteps: (random: SeededRandom) => number;
  /** Whether this client stays cut off for good: its process has died. */
  readonly staysAway?: (address: string) => boolean;
  /** The maximum length of a step, in this many parts. */
  readonly stepMsMax: number;
  readonly parts: number;
  /** Addresses of clients without faults. Default: that of the first, the observer. */
  readonly spared?: readonly string[];
  /** Whether the storm can end. */
  readonly isOver: () => boolean;
  /** Called after each step. */
  readonly look?: () => void;
}

/** The world of a story under a seed: replies take no time, or up to `delayMsMax` each. */
export async function storyWorld(
  seed: number,
  delayMsMax: number,
): Promise<{ readonly world: ClientWorld; readonly random: SeededRandom }> {
  const random = new SeededRandom(seed);
  const world = await ClientWorld.start();
  const delaysBelow = random.below(2) === 0 ? 1 : delayMsMax + 1;
  world.wire.conditionsOf = () => ({ delayMs: random.below(delaysBelow) });
  return { world, random };
}

export class Storm {
  readonly #world: ClientWorld;
  readonly #random: SeededRandom;
  readonly #options: StormOptions;
  #step = 0;
  #later: { readonly step: number; readonly happen: () => unknown }[] = [];

  constructor(world: ClientWorld, random: SeededRandom, options: StormOptions) {
    this.#world = world;
    this.#random = random;
    this.#options = options;
  }

  /** Runs all steps, and ends all faults that would last longer. */
  async pass(): Promise<void> {
    const { steps, stepMsMax, parts, isOver, look } = this.#options;
    const partMs = stepMsMax / parts;
    for (; this.#step < steps && !isOver(); this.#step++) {
      this.#happen(({ step }) => step <= this.#step);
      await this.#befall(this.#random.below(100));
      await this.#world.pass(this.#random.below(parts + 1) * partMs, partMs);
      look?.();
    }
    this.#happen(() => true);
  }

  /** After this many steps, or at the end. */
  later(steps: number, happen: () => unknown): void {
    this.#later.push({ step: this.#step + steps, happen });
  }

  /** Cuts both directions between the addresses; at most until `later`. */
  cut(from: string, to: string, steps: number): void {
    this.#world.wire.cut(from, to);
    this.later(steps, () => this.#options.staysAway?.(from) === true || this.#world.wire.heal(from, to));
  }

  async #befall(dice: number): Promise<void> {
    const { breaks, cuts, restarts, cutSteps, mishaps = [], spared = ['10.1.0.1'] } = this.#options;
    const open = [...this.#world.wire.cnxns].filter(({ dialer, forward }) => !spared.includes(dialer.address) && !forward.from.isClosed);
    const cable = open[this.#random.below(Math.max(1, open.length))];
    let left = dice;
    const common: readonly Mishap[] = [
      [breaks, () => cable && this.#world.break(cable)],
      [cuts, () => cable && this.cut(cable.dialer.address, cable.listener.address, cutSteps(this.#random))],
      [
        restarts,
        async () => {
          this.#world.kill();
          await this.#world.boot();
        },
      ],
    ];
    for (const [chance, happen] of [...common, ...mishaps]) {
      if (left < chance) {
        await happen();
        return;
      }
      left -= chance;
    }
  }

  #happen(isDue: (later: { readonly step: number }) => boolean): void {
    const due = this.#later.filter(isDue);
    this.#later = this.#later.filter((each) => !due.includes(each));
    for (const { happen } of due) happen();
  }
}
