import { Writer } from '@tskeeper/protocol';

/** Much written to somebody who is gone is no reason to keep its memory. */
const bytesMax = 64 * 1024;

/** Takes what is written to connections that are gone, so that whoever writes needs no other way for them. */
export class Nowhere {
  #writer = new Writer();

  /** An empty writer, good until the next call. */
  writer(): Writer {
    if (this.#writer.bytes.length > bytesMax) this.#writer = new Writer();
    this.#writer.clear();
    return this.#writer;
  }
}
