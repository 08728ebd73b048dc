/**
 * A connection that sends exactly what a check specifies, valid or not: for what the client refuses
 * to send, such as an illegal path or an unknown opcode. It neither pings nor reconnects.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { ServerAddress } from '@tskeeper/client';
import {
  type ConnectResponse,
  FrameDecoder,
  juteMaxBufferDefault,
  OpCode,
  Reader,
  readConnectResponse,
  readReplyHeader,
  readWatcherEvent,
  type SessionId,
  type WatcherEvent,
  writeConnectRequest,
  writeRequestHeader,
  Writer,
  Xid,
} from '@tskeeper/protocol';

export interface RawHandshake {
  readonly timeOut?: number;
  readonly session?: { readonly id: SessionId; readonly password: Uint8Array };
  readonly lastZxidSeen?: number;
  /**
   * Whether to send the last byte of the handshake, which clients before 3.4 do not send. Default:
   * true.
   */
  readonly withReadOnly?: boolean;
}

export interface RawReply {
  readonly xid: number;
  readonly zxid: number;
  readonly err: number;
  /** Positioned after the header. */
  readonly body: Reader;
}

const noPassword = new Uint8Array(16);
const frameBytesMax = 4 * juteMaxBufferDefault;

export class RawCnxn {
  readonly #socket: Socket;
  readonly #cutter = new FrameDecoder(frameBytesMax);
  /**
   * Each waits for the next frame that is not an event; undefined if the connection is closed
   * first.
   */
  readonly #frameWaiters: ((body: Buffer | undefined) => void)[] = [];
  readonly #frames: Buffer[] = [];
  readonly events: WatcherEvent[] = [];
  #isClosed = false;
  #hasHandshaken = false;
  #xid = 0;
  readonly #closed: Promise<void>;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => {
      this.#cutter.feed(bytes, 0, bytes.length, (reader) => this.#onFrame(reader));
    });
    this.#closed = new Promise((resolve) => {
      socket.on('close', () => {
        this.#isClosed = true;
        for (const wake of this.#frameWaiters.splice(0)) wake(undefined);
        resolve();
      });
    });
  }

  static async open({ host, port }: ServerAddress): Promise<RawCnxn> {
    const socket = connect({ host, port });
    await once(socket, 'connect');
    return new RawCnxn(socket);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Resolves when the server has closed the connection. */
  closed(): Promise<void> {
    return this.#closed;
  }

  #onFrame(reader: Reader): boolean {
    const body = Buffer.from(reader.bytes.subarray(reader.offset, reader.limit));
    if (this.#hasHandshaken && body.length >= 4 && body.readInt32BE(0) === Xid.notification) {
      const event = new Reader(body);
      readReplyHeader(event);
      this.events.push(readWatcherEvent(event));
      return true;
    }
    this.#hasHandshaken = true;
    const wake = this.#frameWaiters.shift();
    if (wake === undefined) this.#frames.push(body);
    else wake(body);
    return true;
  }

  #nextFrame(): Promise<Buffer | undefined> {
    const frame = this.#frames.shift();
    if (frame !== undefined || this.#isClosed) return Promise.resolve(frame);
    return new Promise((resolve) => void this.#frameWaiters.push(resolve));
  }

  /** Sends what `write` writes as a frame. */
  #send(write: (writer: Writer) => void): void {
    const writer = new Writer();
    writer.int32(0);
    write(writer);
    const frame = Buffer.from(writer.written());
    frame.writeInt32BE(frame.length - 4, 0);
    this.sendBytes(frame);
  }

  sendBytes(bytes: Uint8Array): void {
    if (!this.#isClosed) this.#socket.write(bytes);
  }

  /** The reply to a handshake; undefined if the connection was closed without one. */
  async handshake(handshake: RawHandshake = {}): Promise<{ readonly response: ConnectResponse; readonly rest: number } | undefined> {
    const { timeOut = 30_000, session, lastZxidSeen = 0, withReadOnly = true } = handshake;
    this.#send((writer) =>
      writeConnectRequest(writer, {
        protocolVersion: 0,
        lastZxidSeen,
        timeOut,
        sessionId: session?.id ?? 0n,
        passwd: session?.password ?? noPassword,
        readOnly: withReadOnly ? false : undefined,
      }),
    );
    const body = await this.#nextFrame();
    if (body === undefined) return undefined;
    const reader = new Reader(body);
    return { response: readConnectResponse(reader), rest: reader.remaining };
  }

  /**
   * The reply to a request; undefined if the connection was closed without one. `write` writes the
   * part after the header.
   */
  async call(opCode: number, write: (writer: Writer) => void = () => undefined, xid = ++this.#xid): Promise<RawReply | undefined> {
    this.#send((writer) => {
      writeRequestHeader(writer, { xid, type: opCode });
      write(writer);
    });
    const body = await this.#nextFrame();
    if (body === undefined) return undefined;
    const reader = new Reader(body);
    return { ...readReplyHeader(reader), body: reader };
  }

  ping(): Promise<RawReply | undefined> {
    return this.call(OpCode.ping, undefined, Xid.ping);
  }

  /** Pings until this many events have arrived, or the connection is closed. */
  async waitForEvents(count: number): Promise<void> {
    while (this.events.length < count && !this.#isClosed) await this.ping();
  }

  /** Closes session and connection. */
  async close(): Promise<void> {
    if (!this.#isClosed && this.#hasHandshaken) await this.call(OpCode.closeSession);
    this.destroy();
  }

  /** Closes the connection without ending the session. */
  destroy(): void {
    this.#socket.destroy();
  }
}
