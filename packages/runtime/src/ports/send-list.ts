import type { Network, SendBatch, StreamId } from '../network.ts';

const nothing = Buffer.alloc(0);

/**
 * The output at the end of a turn, for one call to the network. It grows to the largest turn and
 * keeps that size.
 */
export class SendList implements SendBatch {
  count = 0;
  readonly streams: StreamId[] = [];
  readonly buffers: Buffer[] = [];
  readonly starts: number[] = [];
  readonly ends: number[] = [];
  readonly kept: boolean[] = [];

  add(stream: StreamId, buffer: Buffer, start = 0, end: number = buffer.length): void {
    const at = this.count++;
    this.streams[at] = stream;
    this.buffers[at] = buffer;
    this.starts[at] = start;
    this.ends[at] = end;
    this.kept[at] = false;
  }

  /** `onKept` is called for each stream whose bytes the network still holds. */
  send(network: Network, onKept: (stream: StreamId) => void): void {
    if (this.count === 0) return;
    network.send(this);
    const { count } = this;
    this.count = 0;
    for (let index = 0; index < count; index++) {
      this.buffers[index] = nothing;
      if (this.kept[index]!) onKept(this.streams[index]!);
    }
  }
}
