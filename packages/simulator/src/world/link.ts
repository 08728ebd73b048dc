/**
 * The link between two machines, by their names. While it is cut, nothing passes and neither side
 * is notified; cut in one direction, one side can send and not receive. It also applies to a server
 * that restarts at another address.
 */
import type { Millis } from '@tskeeper/protocol';
import type { EarlyAccept, VirtualWire } from '@tskeeper/runtime/internal';

/** Where machines can be reached, and the network between them. */
export interface Ground {
  readonly wire: VirtualWire;
  /** The current address of a machine; undefined for a server that is down. */
  addressOf(name: string): string | undefined;
}

/** From the first machine to the second, and back. */
export type Direction = 'forth' | 'back';

export class Link {
  readonly a: string;
  readonly b: string;
  readonly #ground: Ground;
  /** Pairs of addresses between which nothing passes, from the first to the second. */
  #cut: (readonly [string, string])[] = [];
  readonly #directions = new Set<Direction>();
  /** Additional delay at present. */
  delayMs: Millis = 0;
  /** Additional delay at all times, because of the distance between the machines. */
  distanceMs: Millis = 0;
  /** A proxy that accepts connections in place of the server. */
  early: EarlyAccept | undefined;

  constructor(ground: Ground, a: string, b: string) {
    this.#ground = ground;
    this.a = a;
    this.b = b;
  }

  get isCut(): boolean {
    return this.#directions.size > 0;
  }

  /** Whether nothing passes in this direction. */
  isCutOneWay(direction: Direction): boolean {
    return this.#directions.has(direction);
  }

  cut(): void {
    this.cutOneWay('forth');
    this.cutOneWay('back');
  }

  cutOneWay(direction: Direction): void {
    this.#directions.add(direction);
    this.renew();
  }

  heal(): void {
    this.#directions.clear();
    for (const [from, to] of this.#cut) this.#ground.wire.healOneWay(from, to);
    this.#cut = [];
  }

  /** Sets the additional delay, also for bytes in transit. */
  slow(delayMs: Millis): void {
    const [a, b] = [this.#ground.addressOf(this.a), this.#ground.addressOf(this.b)];
    const moreMs = delayMs - this.delayMs;
    this.delayMs = delayMs;
    if (a === undefined || b === undefined) return;
    for (const [from, to] of [
      [a, b],
      [b, a],
    ] as const) {
      this.#ground.wire.forEachPipe(from, to, (pipe) => {
        pipe.manners.delayMs = Math.max(0, pipe.manners.delayMs + moreMs);
        pipe.changed();
      });
    }
  }

  /** Applies the link to the current addresses of its machines. */
  renew(): void {
    const [a, b] = [this.#ground.addressOf(this.a), this.#ground.addressOf(this.b)];
    if (a === undefined || b === undefined) return;
    for (const direction of this.#directions) {
      const [from, to] = direction === 'forth' ? [a, b] : [b, a];
      if (this.#cut.some((pair) => pair[0] === from && pair[1] === to)) continue;
      this.#cut.push([from, to]);
      this.#ground.wire.cutOneWay(from, to);
    }
  }
}
