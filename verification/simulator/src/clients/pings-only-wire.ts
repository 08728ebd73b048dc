/**
 * The traffic of a connection with a server that answers pings, sends events, and sends no other
 * reply. Either requests never reach it, or they are carried out and the replies never come back.
 * It begins between two frames and lasts as long as the connection.
 */
import { FrameDecoder, OpCode, readReplyHeader, readRequestHeader, Xid } from '@tskeeper/protocol';

export type PingsOnlyMode = 'no requests' | 'no answers';

/** Longer than any frame of a run. */
const frameBytesMax = 16 * 1024 * 1024;

export class PingsOnlyWire {
  #mode: PingsOnlyMode | undefined;
  /** Whether it has begun, for what the server sends. */
  #dropsReplies = false;
  #passed: Buffer[] = [];
  readonly #cutter = new FrameDecoder(frameBytesMax);

  begin(mode: PingsOnlyMode): void {
    this.#mode = mode;
    this.#dropsReplies = mode === 'no answers' && this.#cutter.retainedBytes === 0;
  }

  /** Filters complete frames, as clients send them. */
  toServer(bytes: Buffer): Buffer {
    if (this.#mode !== 'no requests') return bytes;
    const passed: Buffer[] = [];
    new FrameDecoder(frameBytesMax).feed(bytes, 0, bytes.length, (reader) => {
      const frame = framed(reader.bytes, reader.offset, reader.offset + reader.remaining);
      if (readRequestHeader(reader).type === OpCode.ping) passed.push(frame);
      return true;
    });
    return Buffer.concat(passed);
  }

  /** Filters arbitrary pieces. */
  toClient(bytes: Buffer): Buffer {
    const isSilent = this.#dropsReplies;
    this.#passed = [];
    this.#cutter.feed(bytes, 0, bytes.length, (reader) => {
      if (!isSilent) return true;
      const frame = framed(reader.bytes, reader.offset, reader.offset + reader.remaining);
      const { xid } = readReplyHeader(reader);
      if (xid === Xid.ping || xid === Xid.notification) this.#passed.push(frame);
      return true;
    });
    if (this.#mode === 'no answers' && this.#cutter.retainedBytes === 0) this.#dropsReplies = true;
    return isSilent ? Buffer.concat(this.#passed) : bytes;
  }
}

function framed(bytes: Buffer, start: number, end: number): Buffer {
  const frame = Buffer.alloc(4 + end - start);
  frame.writeInt32BE(end - start);
  bytes.copy(frame, 4, start, end);
  return frame;
}
