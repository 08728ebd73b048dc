/**
 * Requests of clients that a learner has for its leader while the stream is full. They wait here,
 * in order, and not in the stream: ACKs, answers to PINGs and other packets by which the leader
 * judges a learner are sent before them, so no number of requests makes the leader drop the
 * learner. REVALIDATE waits in the same order: the leader's answer covers the requests sent before
 * it.
 */
import type { Writer } from '@tskeeper/protocol';
import { Fifo } from '../fifo.ts';
import { type Fingerprint, fingerprintBytes } from '../fingerprint.ts';
import type { ChannelId, QuorumLinks } from './quorum-links.ts';

export class RequestQueue {
  readonly #links: QuorumLinks;
  readonly #channel: ChannelId;
  readonly #waiting = new Fifo<Buffer>();
  /** Total bytes of the waiting requests. */
  bytes = 0;

  constructor(links: QuorumLinks, channel: ChannelId) {
    this.#links = links;
    this.#channel = channel;
  }

  /** The output for the next packet; undefined if it must wait, and is passed to `push`. */
  writer(): Writer | undefined {
    if (this.#waiting.length > 0 || this.#links.channelIsFull(this.#channel)) return undefined;
    return this.#links.packets(this.#channel);
  }

  /** Its bytes may be reused after the call. */
  push({ bytes, offset }: Writer): void {
    this.#waiting.push(Buffer.from(bytes.subarray(0, offset)));
    this.bytes += offset;
  }

  /** Sends waiting requests if the stream has room. */
  send(): void {
    for (let next = this.#waiting.peek(); next !== undefined; next = this.#waiting.peek()) {
      if (this.#links.channelIsFull(this.#channel)) return;
      this.#waiting.shift();
      this.bytes -= next.length;
      this.#links.writeShared(this.#channel, next, 0);
    }
    if (this.bytes !== 0) throw new Error(`no request waits, but ${this.bytes} bytes are counted`);
  }

  fingerprint(to: Fingerprint): void {
    to.number(this.#waiting.length);
    for (const packet of this.#waiting.values()) fingerprintBytes(to, packet);
  }
}
