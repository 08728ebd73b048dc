import { Writer } from '@tskeeper/protocol';

/** Enough for one or two replies; a writer that needed more keeps its size. */
const capacityFirst = 1024;
/** A writer that served one huge reply is not kept for small ones. */
const capacityKeptMax = 64 * 1024;
const pooledBytesMax = 16 * 1024 * 1024;

/** Output buffers, lent to connections for a turn: ten thousand idle connections hold none. */
export class WriterPool {
  readonly #free: Writer[] = [];
  #bytes = 0;

  take(): Writer {
    const writer = this.#free.pop();
    if (writer === undefined) return new Writer(capacityFirst);
    this.#bytes -= writer.bytes.length;
    return writer;
  }

  /** Only for a writer whose bytes nothing else holds. */
  put(writer: Writer): void {
    const capacity = writer.bytes.length;
    if (capacity > capacityKeptMax || this.#bytes + capacity > pooledBytesMax) return;
    writer.clear();
    this.#free.push(writer);
    this.#bytes += capacity;
  }
}
