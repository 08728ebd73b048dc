/**
 * What the wire and the server of a story go through, step by step, as a seed decides: connections break, clients are cut off for a while, the server dies and comes
 * back, and whatever else the story has in store. The stories say what is to hold all the same.
 */
import { SeededRandom } from '@tskeeper/runtime';
import { ClientWorld } from '../../../client/test/support/client-world.ts';

/** Something of a story's own: how many steps of a hundred bring it, and what it is. */
export type Mishap = readonly [chance: number, happen: () => unknown];

export interface StormOptions {
  readonly steps: number;
  /** How many steps of a hundred break a connection; cut a client off; kill the server and start it again. */
  readonly breaks: number;
  readonly cuts: number;
  readonly restarts: number;
  readonly mishaps?: readonly Mishap[];
  /** For how many steps a client is cut off. */
  readonly cutSteps: (random: SeededRandom) => number;
  /** Whoever is there stays cut off for good: its process has died. */
  readonly staysAway?: (address: string) => boolean;
  /** How long a step takes at the most, in so many parts. */
  readonly stepMsMax: number;
  readonly parts: number;
  /** Addresses of clients that it leaves alone. Default: that of the first, which looks on. */
  readonly spared?: readonly string[];
  /** There is no need to go on. */
  readonly isOver: () => boolean;
  /** Is called after each step. */
  readonly look?: () => void;
}

/** The world of a story under a seed: answers take no time, or up to `delayMsMax` each. */
export async function storyWorld(
  seed: number,
  delayMsMax: number,
): Promise<{ readonly world: ClientWorld; readonly random: SeededRandom }> {
  const random = new SeededRandom(seed);
  const world = await ClientWorld.start();
  const delaysBelow = random.below(2) === 0 ? 1 : delayMsMax + 1;
  world.wire.mannersOf = () => ({ delayMs: random.below(delaysBelow) });
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

  /** Goes through all steps, and ends everything that was to last longer. */
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

  /** So many steps from now, or when it is over. */
  later(steps: number, happen: () => unknown): void {
    this.#later.push({ step: this.#step + steps, happen });
  }

  /** From one address to the other and back; until `later`, when that comes first. */
  cut(from: string, to: string, steps: number): void {
    this.#world.wire.cut(from, to);
    this.later(steps, () => this.#options.staysAway?.(from) === true || this.#world.wire.heal(from, to));
  }

  async #befall(dice: number): Promise<void> {
    const { breaks, cuts, restarts, cutSteps, mishaps = [], spared = ['10.1.0.1'] } = this.#options;
    const open = [...this.#world.wire.cnxns].filter(({ dialer, forward }) => !spared.includes(dialer.address) && !forward.from.gone);
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
