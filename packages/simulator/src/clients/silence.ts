/**
 * The traffic of a connection with a server that answers pings, sends events, and sends no other
 * reply. Either requests never reach it, or they are carried out and the replies never come back.
 * It begins between two frames and lasts as long as the connection.
 */
import { FrameCutter, OpCode, readReplyHeader, readRequestHeader, Xid } from '@tskeeper/protocol';

export type Silence = 'no requests' | 'no answers';

/** Longer than any frame of a run. */
const frameBytesMax = 16 * 1024 * 1024;

export class SilentWire {
  #silence: Silence | undefined;
  /** Whether it has begun, for what the server sends. */
  #isSilent = false;
  #passed: Buffer[] = [];
  readonly #cutter = new FrameCutter(frameBytesMax);

  begin(silence: Silence): void {
    this.#silence = silence;
    this.#isSilent = silence === 'no answers' && this.#cutter.retainedBytes === 0;
  }

  /** Filters complete frames, as clients send them. */
  toServer(bytes: Buffer): Buffer {
    if (this.#silence !== 'no requests') return bytes;
    const passed: Buffer[] = [];
    new FrameCutter(frameBytesMax).feed(bytes, 0, bytes.length, (reader) => {
      const frame = framed(reader.bytes, reader.offset, reader.offset + reader.remaining);
      if (readRequestHeader(reader).type === OpCode.ping) passed.push(frame);
      return true;
    });
    return Buffer.concat(passed);
  }

  /** Filters arbitrary pieces. */
  toClient(bytes: Buffer): Buffer {
    const isSilent = this.#isSilent;
    this.#passed = [];
    this.#cutter.feed(bytes, 0, bytes.length, (reader) => {
      if (!isSilent) return true;
      const frame = framed(reader.bytes, reader.offset, reader.offset + reader.remaining);
      const { xid } = readReplyHeader(reader);
      if (xid === Xid.ping || xid === Xid.notification) this.#passed.push(frame);
      return true;
    });
    if (this.#silence === 'no answers' && this.#cutter.retainedBytes === 0) this.#isSilent = true;
    return isSilent ? Buffer.concat(this.#passed) : bytes;
  }
}

function framed(bytes: Buffer, start: number, end: number): Buffer {
  const frame = Buffer.alloc(4 + end - start);
  frame.writeInt32BE(end - start);
  bytes.copy(frame, 4, start, end);
  return frame;
}
