/**
 * What a learner asks of its leader for clients, while the stream is full. It waits here, in order, and not in the stream: ACKs, answers to PINGs and
 * whatever else the leader judges a learner by go before it, so no amount of requests makes the leader give the learner up. REVALIDATE waits in the
 * same order: what the leader answers holds for requests that were sent before it.
 */
import type { Writer } from '@tskeeper/protocol';
import { Fifo } from '../fifo.ts';
import { type Fingerprint, writeBytes } from '../fingerprint.ts';
import type { ChannelId, QuorumLinks } from './quorum-links.ts';

export class RequestQueue {
  readonly #links: QuorumLinks;
  readonly #channel: ChannelId;
  readonly #waiting = new Fifo<Buffer>();
  /** Of those that wait. */
  bytes = 0;

  constructor(links: QuorumLinks, channel: ChannelId) {
    this.#links = links;
    this.#channel = channel;
  }

  /** Where the next packet is to be written; undefined when it has to wait, and goes to `push`. */
  writer(): Writer | undefined {
    if (this.#waiting.length > 0 || this.#links.channelIsFull(this.#channel)) return undefined;
    return this.#links.packets(this.#channel);
  }

  /** Its bytes may be used again after the call. */
  push({ bytes, offset }: Writer): void {
    this.#waiting.push(Buffer.from(bytes.subarray(0, offset)));
    this.bytes += offset;
  }

  /** There may be room in the stream. */
  send(): void {
    for (let next = this.#waiting.peek(); next !== undefined; next = this.#waiting.peek()) {
      if (this.#links.channelIsFull(this.#channel)) return;
      this.#waiting.shift();
      this.bytes -= next.length;
      this.#links.share(this.#channel, next, 0);
    }
    if (this.bytes !== 0) throw new Error(`no request waits, and ${this.bytes} bytes of them are counted`);
  }

  fingerprint(to: Fingerprint): void {
    to.number(this.#waiting.length);
    for (const packet of this.#waiting.values()) writeBytes(to, packet);
  }
}
