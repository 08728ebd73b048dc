/**
 * The link between two machines, by their names. While it is cut, nothing passes and neither side
 * is notified; cut in one direction, one side can send and not receive. It also applies to a server
 * that restarts at another address.
 */
import type { Millis } from '@tskeeper/protocol';
import type { AcceptingProxy, VirtualWire } from '@tskeeper/runtime/internal';

/** Where machines can be reached, and the network between them. */
export interface LinkWorld {
  readonly wire: VirtualWire;
  /** The current address of a machine; undefined for a server that is down. */
  addressOf(name: string): string | undefined;
}

/** From the first machine to the second, and back. */
export type Direction = 'forward' | 'backward';

export class Link {
  readonly a: string;
  readonly b: string;
  readonly #world: LinkWorld;
  /** Pairs of addresses between which nothing passes, from the first to the second. */
  #cut: (readonly [string, string])[] = [];
  readonly #cutDirections = new Set<Direction>();
  /** Additional delay at present. */
  delayMs: Millis = 0;
  /** Additional delay at all times, because of the distance between the machines. */
  distanceMs: Millis = 0;
  /** A proxy that accepts connections in place of the server. */
  earlyAccept: AcceptingProxy | undefined;

  constructor(world: LinkWorld, a: string, b: string) {
    this.#world = world;
    this.a = a;
    this.b = b;
  }

  get isCut(): boolean {
    return this.#cutDirections.size > 0;
  }

  /** Whether nothing passes in this direction. */
  isCutOneWay(direction: Direction): boolean {
    return this.#cutDirections.has(direction);
  }

  cut(): void {
    this.cutOneWay('forward');
    this.cutOneWay('backward');
  }

  cutOneWay(direction: Direction): void {
    this.#cutDirections.add(direction);
    this.addressChanged();
  }

  heal(): void {
    this.#cutDirections.clear();
    for (const [from, to] of this.#cut) this.#world.wire.healOneWay(from, to);
    this.#cut = [];
  }

  /** Sets the additional delay, also for bytes in transit. */
  slow(delayMs: Millis): void {
    const [a, b] = [this.#world.addressOf(this.a), this.#world.addressOf(this.b)];
    const moreMs = delayMs - this.delayMs;
    this.delayMs = delayMs;
    if (a === undefined || b === undefined) return;
    for (const [from, to] of [
      [a, b],
      [b, a],
    ] as const) {
      this.#world.wire.forEachPipe(from, to, (pipe) => {
        pipe.conditions.delayMs = Math.max(0, pipe.conditions.delayMs + moreMs);
        pipe.conditionsChanged();
      });
    }
  }

  /** Applies the link to the current addresses of its machines. */
  addressChanged(): void {
    const [a, b] = [this.#world.addressOf(this.a), this.#world.addressOf(this.b)];
    if (a === undefined || b === undefined) return;
    for (const direction of this.#cutDirections) {
      const [from, to] = direction === 'forward' ? [a, b] : [b, a];
      if (this.#cut.some((pair) => pair[0] === from && pair[1] === to)) continue;
      this.#cut.push([from, to]);
      this.#world.wire.cutOneWay(from, to);
    }
  }
}
