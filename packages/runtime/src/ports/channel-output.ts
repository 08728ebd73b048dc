/**
 * What is to be sent over one channel. A turn's packets gather in a writer, which goes to the network as it is, a slice at a time, so that it
 * shows whether the other side takes anything; what later turns write waits behind it.
 */
import type { Writer } from '@tskeeper/protocol';
import type { StreamId } from '../network.ts';
import type { SendList } from './send-list.ts';
import type { WriterPool } from './writer-pool.ts';

/** Given to the network in one piece. */
const sliceBytes = 256 * 1024;

export class ChannelOutput {
  readonly #stream: StreamId;
  readonly #pool: WriterPool;
  #writer: Writer | undefined;
  /** Being sent: of [0, offset) everything before #sentTo has been taken, and the network has been given everything before #givenTo. */
  #sending: Writer | undefined;
  #sentTo = 0;
  #givenTo = 0;
  #isHeld = false;

  constructor(stream: StreamId, pool: WriterPool) {
    this.#stream = stream;
    this.#pool = pool;
  }

  writer(): Writer {
    return (this.#writer ??= this.#pool.take());
  }

  get isHeld(): boolean {
    return this.#isHeld;
  }

  /** Written, and not taken by the system. */
  get waitingBytes(): number {
    return this.behindBytes + (this.#sending === undefined ? 0 : this.#sending.offset - this.#sentTo);
  }

  /** Of these, what later turns have written behind the one that is being sent. */
  get behindBytes(): number {
    return this.#writer?.offset ?? 0;
  }

  /** Adds the next slice to the list, if there is one and the network holds none. Returns whether it did. */
  addSlice(list: SendList): boolean {
    if (this.#isHeld) return false;
    if (this.#sending !== undefined && this.#sentTo === this.#sending.offset) this.#release();
    if (this.#sending === undefined) {
      if (this.behindBytes === 0) return false;
      this.#sending = this.#writer;
      this.#writer = undefined;
    }
    const { bytes, offset } = this.#sending!;
    this.#givenTo = Math.min(offset, this.#sentTo + sliceBytes);
    list.add(this.#stream, bytes, this.#sentTo, this.#givenTo);
    return true;
  }

  /** The network has taken the slice, or holds it; once it has let go of that, this is called again. */
  sliceSent(isHeld: boolean): void {
    this.#isHeld = isHeld;
    if (!isHeld) this.#sentTo = this.#givenTo;
  }

  /** Gives back an empty writer at the end of a turn. */
  settle(): void {
    if (this.#sending !== undefined && !this.#isHeld && this.#sentTo === this.#sending.offset) this.#release();
    if (this.#writer?.offset !== 0) return;
    this.#pool.giveBack(this.#writer);
    this.#writer = undefined;
  }

  /** Nothing of it will be sent. */
  discard(): void {
    this.#writer = this.#sending = undefined;
    this.#isHeld = false;
  }

  #release(): void {
    this.#pool.giveBack(this.#sending!);
    this.#sending = undefined;
    this.#sentTo = this.#givenTo = 0;
  }
}
