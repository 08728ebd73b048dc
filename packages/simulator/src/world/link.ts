/** The cable between two machines, by their names. Pulled, nothing passes and nobody is told; a server that starts anew is behind it too. */
import type { VirtualWire } from '@tskeeper/runtime/internal';

/** Where machines can be found, and what lies between them. */
export interface Ground {
  readonly wire: VirtualWire;
  /** Where a machine can be reached now; undefined for a server that is down. */
  addressOf(name: string): string | undefined;
}

export class Link {
  readonly a: string;
  readonly b: string;
  readonly #ground: Ground;
  /** Pairs of addresses that are cut. */
  #cut: (readonly [string, string])[] = [];
  isCut = false;

  constructor(ground: Ground, a: string, b: string) {
    this.#ground = ground;
    this.a = a;
    this.b = b;
  }

  cut(): void {
    this.isCut = true;
    this.renew();
  }

  heal(): void {
    this.isCut = false;
    for (const [a, b] of this.#cut) this.#ground.wire.heal(a, b);
    this.#cut = [];
  }

  /** A machine at one end has another address now. */
  renew(): void {
    if (!this.isCut) return;
    const a = this.#ground.addressOf(this.a);
    const b = this.#ground.addressOf(this.b);
    if (a === undefined || b === undefined || this.#cut.some((pair) => pair[0] === a && pair[1] === b)) return;
    this.#cut.push([a, b]);
    this.#ground.wire.cut(a, b);
  }
}
