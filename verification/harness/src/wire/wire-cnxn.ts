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
import { FrameCutter, frameOf } from './frames.ts';
import { type FrameMessage, readHandshakeReply, readMessage } from './messages.ts';

export type Message =
  | FrameMessage
  | { readonly kind: 'closed' }
  /** The awaited message did not arrive in time. */
  | { readonly kind: 'silence' };

export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

export function endpointOf(connectString: string): Endpoint {
  const colon = connectString.lastIndexOf(':');
  return { host: connectString.slice(0, colon), port: Number(connectString.slice(colon + 1)) };
}

export class WireCnxn {
  /** Everything received and not yet taken, oldest first. */
  readonly inbox: Message[] = [];
  closed = false;
  readonly socket: Socket;
  readonly #cutter = new FrameCutter();
  /** Replies received (handshake included) that no call of `replies` has waited for. */
  #replies = 0;
  #hasHandshaken = false;
  #wakers: (() => void)[] = [];

  constructor(socket: Socket) {
    this.socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (chunk) => this.#received(chunk));
    // A reset and an orderly end mean the same to the protocol: the connection is closed.
    socket.on('error', () => this.#ended());
    socket.on('close', () => this.#ended());
    socket.on('end', () => this.#ended());
  }

  static async open({ host, port }: Endpoint): Promise<WireCnxn> {
    const socket = connect({ host, port });
    await once(socket, 'connect');
    return new WireCnxn(socket);
  }

  sendRaw(bytes: Buffer): void {
    if (!this.closed) this.socket.write(bytes);
  }

  send(body: Buffer): void {
    this.sendRaw(frameOf(body));
  }

  /**
   * Waits until the condition holds, which is checked whenever something arrives. False if the
   * connection ends or the timeout passes first.
   */
  async until(holds: () => boolean, timeoutMs: number): Promise<boolean> {
    const deadlineMs = performance.now() + timeoutMs;
    while (!holds()) {
      const leftMs = deadlineMs - performance.now();
      if (this.closed || leftMs <= 0) return false;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, leftMs);
        this.#wakers.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
    return true;
  }

  /**
   * Waits for this many further replies; a close, or the deadline, ends the wait too and leaves its
   * own message in the inbox.
   */
  async replies(count: number, timeoutMs: number): Promise<void> {
    const arrived = await this.until(() => this.#replies >= count, timeoutMs);
    if (!arrived && !this.closed) this.inbox.push({ kind: 'silence' });
    this.#replies = Math.max(0, this.#replies - count);
  }

  /** Waits until the other side has closed. */
  async untilClosed(timeoutMs: number): Promise<void> {
    await this.until(() => this.closed, timeoutMs);
  }

  /** Takes the messages received so far. */
  take(): Message[] {
    return this.inbox.splice(0);
  }

  /** Closes the connection without ending the session, as a client whose machine has failed. */
  destroy(): void {
    this.closed = true;
    this.socket.removeAllListeners('data');
    this.socket.destroy();
    this.#wake();
  }

  #ended(): void {
    if (this.closed) return;
    this.closed = true;
    this.inbox.push({ kind: 'closed' });
    this.socket.destroy();
    this.#wake();
  }

  #received(chunk: Buffer): void {
    for (const frame of this.#cutter.push(chunk)) {
      const message = this.#hasHandshaken ? readMessage(frame) : readHandshakeReply(frame);
      this.#hasHandshaken = true;
      if (message.kind !== 'event') this.#replies += 1;
      this.inbox.push(message);
    }
    const { unreadable } = this.#cutter;
    if (unreadable !== undefined) {
      this.inbox.push({ kind: 'unreadable', bytes: unreadable });
      this.destroy();
    }
    this.#wake();
  }

  #wake(): void {
    for (const wake of this.#wakers.splice(0)) wake();
  }
}
