import { Writer } from '@tskeeper/protocol';

/** Output to a closed connection may be large: above this size its memory is released. */
const bytesMax = 64 * 1024;

/**
 * Receives what is written to connections that are gone, so that writers need no other path for
 * them.
 */
export class DiscardSink {
  #writer = new Writer();

  /** An empty writer, valid until the next call. */
  writer(): Writer {
    if (this.#writer.bytes.length > bytesMax) this.#writer = new Writer();
    this.#writer.clear();
    return this.#writer;
  }
}
