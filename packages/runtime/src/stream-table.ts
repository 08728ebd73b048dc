import type { StreamId } from './network.ts';

/**
 * The streams of a network adapter, by number. A number is free again once `closed` has been
 * delivered for it, and not before; the number freed last is used first, so that a mix-up shows.
 */
export class StreamTable<T> {
  readonly #streams: (T | undefined)[] = [];
  readonly #free: StreamId[] = [];

  get count(): number {
    return this.#streams.length - this.#free.length;
  }

  get(stream: StreamId): T | undefined {
    return this.#streams[stream];
  }

  add(make: (stream: StreamId) => T): T {
    const stream = this.#free.pop() ?? this.#streams.length;
    return (this.#streams[stream] = make(stream));
  }

  delete(stream: StreamId): void {
    if (this.#streams[stream] === undefined) return;
    this.#streams[stream] = undefined;
    this.#free.push(stream);
  }

  *values(): Generator<T, void, undefined> {
    for (const each of this.#streams) if (each !== undefined) yield each;
  }
}
