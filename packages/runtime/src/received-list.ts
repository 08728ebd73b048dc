import type { ReceivedBatch, StreamId } from './network.ts';

const nothing = Buffer.alloc(0);

/**
 * Bytes that arrived in a turn, for one call to the sink. It grows to the largest turn and keeps
 * that size.
 */
export class ReceivedList implements ReceivedBatch {
  #count = 0;
  readonly streams: StreamId[] = [];
  readonly buffers: Buffer[] = [];
  readonly starts: number[] = [];
  readonly ends: number[] = [];

  get count(): number {
    return this.#count;
  }

  add(stream: StreamId, bytes: Buffer): void {
    const at = this.#count++;
    this.streams[at] = stream;
    this.buffers[at] = bytes;
    this.starts[at] = 0;
    this.ends[at] = bytes.length;
  }

  /** Removes bytes of streams that are no longer wanted. */
  keepOnly(isWanted: (stream: StreamId) => boolean): void {
    let kept = 0;
    for (let index = 0; index < this.#count; index++) {
      if (!isWanted(this.streams[index]!)) continue;
      if (kept !== index) {
        this.streams[kept] = this.streams[index]!;
        this.buffers[kept] = this.buffers[index]!;
        this.ends[kept] = this.ends[index]!;
      }
      kept++;
    }
    this.buffers.fill(nothing, kept, this.#count);
    this.#count = kept;
  }

  /** Drops the references to the buffers, which now belong to the receiver. */
  clear(): void {
    this.buffers.fill(nothing, 0, this.#count);
    this.#count = 0;
  }
}
