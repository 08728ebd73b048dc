/** The cable between two machines, by their names. Pulled, nothing passes and nobody is told; a server that starts anew is behind it too. */
import type { VirtualWorld } from './virtual-world.ts';

export class Link {
  readonly a: string;
  readonly b: string;
  readonly #world: VirtualWorld;
  /** Pairs of addresses that are cut. */
  #cut: (readonly [string, string])[] = [];
  isCut = false;

  constructor(world: VirtualWorld, a: string, b: string) {
    this.#world = world;
    this.a = a;
    this.b = b;
  }

  cut(): void {
    this.isCut = true;
    this.renew();
  }

  heal(): void {
    this.isCut = false;
    for (const [a, b] of this.#cut) this.#world.wire.heal(a, b);
    this.#cut = [];
  }

  /** A machine at one end has another address now. */
  renew(): void {
    if (!this.isCut) return;
    const a = this.#world.addressOf(this.a);
    const b = this.#world.addressOf(this.b);
    if (a === undefined || b === undefined || this.#cut.some((pair) => pair[0] === a && pair[1] === b)) return;
    this.#cut.push([a, b]);
    this.#world.wire.cut(a, b);
  }
}
