/**
 * One TCP connection at the level of frames of the client protocol: it sends exactly what the
 * caller specifies, valid or not, and keeps what it receives in order.
 *
 * It is not a ZooKeeper client. It never pings, reconnects or sets watches again by itself, because
 * a comparison of servers must know of every byte. Every frame except a notification is a reply;
 * after the handshake, replies arrive in request order.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

import { Reader, Writer, Xid } from '@tskeeper/protocol';

export type Message =
  | {
      readonly kind: 'handshake';
      readonly protocolVersion: number;
      readonly timeOut: number;
      readonly sessionId: bigint;
      readonly passwd: Buffer;
      /** Absent if the reply had no such byte. */
      readonly readOnly: boolean | undefined;
      /** Bytes after the record: a correct reply has none. */
      readonly rest: Buffer;
    }
  | { readonly kind: 'reply'; readonly xid: number; readonly zxid: number; readonly err: number; readonly body: Buffer }
  | { readonly kind: 'event'; readonly zxid: number; readonly err: number; readonly body: Buffer }
  | { readonly kind: 'unreadable'; readonly bytes: Buffer }
  | { readonly kind: 'closed' }
  /** The awaited message did not arrive in time. */
  | { readonly kind: 'silence' };

export interface Handshake {
  readonly protocolVersion?: number;
  readonly lastZxidSeen?: number;
  readonly timeOut: number;
  readonly sessionId?: bigint;
  readonly passwd?: Buffer | null;
  /** undefined omits the byte, as clients of 3.3 do. */
  readonly readOnly?: boolean | undefined;
}

export const noPasswd = Buffer.alloc(16);

/** The body of a ConnectRequest. */
export function handshakeBody(handshake: Handshake): Buffer {
  const writer = new Writer(64);
  writer.int32(handshake.protocolVersion ?? 0);
  writer.bigint64(BigInt(handshake.lastZxidSeen ?? 0));
  writer.int32(handshake.timeOut);
  writer.bigint64(handshake.sessionId ?? 0n);
  writer.buffer(handshake.passwd === undefined ? noPasswd : handshake.passwd);
  if (handshake.readOnly !== undefined) writer.boolean(handshake.readOnly);
  return Buffer.from(writer.written());
}

/** A frame: its length, then the body. */
export function frameOf(body: Buffer): Buffer {
  const frame = Buffer.allocUnsafe(4 + body.length);
  frame.writeInt32BE(body.length, 0);
  body.copy(frame, 4);
  return frame;
}

export class WireCnxn {
  /** Everything received and not yet taken, oldest first. */
  readonly inbox: Message[] = [];
  closed = false;
  /** Replies received (handshake included) since the last `expect`. */
  #replies = 0;
  #awaited = 0;
  #wake: (() => void) | undefined;
  #pending: Buffer = Buffer.alloc(0);
  #handshakeDone = false;
  readonly #socket: Socket;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (chunk) => this.#onData(chunk));
    // A reset and an orderly end mean the same to the protocol: the connection is closed.
    socket.on('error', () => this.#onClosed());
    socket.on('close', () => this.#onClosed());
    socket.on('end', () => this.#onClosed());
  }

  static async open(port: number): Promise<WireCnxn> {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    return new WireCnxn(socket);
  }

  sendRaw(bytes: Buffer): void {
    if (!this.closed) this.#socket.write(bytes);
  }

  send(body: Buffer): void {
    this.sendRaw(frameOf(body));
  }

  /**
   * Waits for this many further replies; a close, or the deadline, ends the wait too and leaves its
   * own message in the inbox.
   */
  async replies(count: number, timeoutMs: number): Promise<void> {
    this.#awaited = count;
    if (this.#replies < count && !this.closed) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(() => {
          this.inbox.push({ kind: 'silence' });
          resolve();
        }, timeoutMs);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.#wake = undefined;
    }
    this.#replies = Math.max(0, this.#replies - count);
    this.#awaited = 0;
  }

  /** Waits until the other side has closed. */
  async untilClosed(timeoutMs: number): Promise<void> {
    await this.replies(Number.MAX_SAFE_INTEGER, timeoutMs);
  }

  /** Takes what has arrived so far. */
  take(): Message[] {
    return this.inbox.splice(0);
  }

  /** Closes the connection without ending the session, as a client whose machine has failed. */
  destroy(): void {
    this.closed = true;
    this.#socket.removeAllListeners('data');
    this.#socket.destroy();
  }

  #onClosed(): void {
    if (this.closed) return;
    this.closed = true;
    this.inbox.push({ kind: 'closed' });
    this.#socket.destroy();
    this.#wake?.();
  }

  #onData(chunk: Buffer): void {
    let bytes = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    while (bytes.length >= 4) {
      const length = bytes.readInt32BE(0);
      if (length < 0) {
        this.inbox.push({ kind: 'unreadable', bytes });
        this.destroy();
        this.#wake?.();
        return;
      }
      if (bytes.length < 4 + length) break;
      this.#onFrame(Buffer.from(bytes.subarray(4, 4 + length)));
      bytes = bytes.subarray(4 + length);
    }
    this.#pending = bytes;
    if (this.#awaited > 0 && this.#replies >= this.#awaited) this.#wake?.();
  }

  #onFrame(body: Buffer): void {
    const message = this.#handshakeDone ? readMessage(body) : readHandshake(body);
    this.#handshakeDone = true;
    if (message.kind !== 'event') this.#replies += 1;
    this.inbox.push(message);
  }
}

function readHandshake(body: Buffer): Message {
  if (body.length < 20) return { kind: 'unreadable', bytes: body };
  const reader = new Reader(body);
  const protocolVersion = reader.int32();
  const timeOut = reader.int32();
  const sessionId = reader.bigint64();
  const passwd = reader.buffer() ?? Buffer.alloc(0);
  const readOnly = reader.remaining > 0 ? reader.boolean() : undefined;
  return { kind: 'handshake', protocolVersion, timeOut, sessionId, passwd, readOnly, rest: body.subarray(reader.offset) };
}

function readMessage(body: Buffer): Message {
  if (body.length < 16) return { kind: 'unreadable', bytes: body };
  const reader = new Reader(body);
  const xid = reader.int32();
  const zxid = reader.int64();
  const err = reader.int32();
  const rest = body.subarray(reader.offset);
  return xid === Xid.notification ? { kind: 'event', zxid, err, body: rest } : { kind: 'reply', xid, zxid, err, body: rest };
}
