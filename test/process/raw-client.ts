/**
 * A client that sends and receives frames over a socket and nothing more: no retries and no pings
 * of its own. It returns what it receives in order.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Xid } from '@tskeeper/protocol';
import type { ConnectRequest, ConnectResponse, Message, Operation, OperationKind, Reply } from '@tskeeper/simulator';
import { decodeConnectResponse, decodeMessage, encodeConnect, encodeRequest, FrameCutter } from '../model/wire.ts';

export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

export function endpointOf(connectString: string): Endpoint {
  const colon = connectString.lastIndexOf(':');
  return { host: connectString.slice(0, colon), port: Number(connectString.slice(colon + 1)) };
}

/** A wait with a time limit: a server that hangs must not hang the tests. */
export async function within<T>(limitMs: number, what: string, wait: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`timed out after ${limitMs} ms waiting for ${what}`)), limitMs);
  });
  try {
    return await Promise.race([wait, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Long enough for any running server, on any machine. */
const answerLimitMs = 30_000;

export class RawClient {
  readonly socket: Socket;
  readonly #cutter = new FrameCutter();
  readonly #kinds = new Map<number, OperationKind>();
  readonly #inbox: Message[] = [];
  #wakers: (() => void)[] = [];
  #handshakeDone = false;
  /** True after the server, or an error, has ended the connection. */
  closed = false;
  lastXid = 0;
  session: ConnectResponse | undefined;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (chunk) => this.#take(chunk));
    socket.on('error', () => this.#end());
    socket.on('close', () => this.#end());
  }

  static async open({ host, port }: Endpoint): Promise<RawClient> {
    const socket = connect({ host, port });
    await once(socket, 'connect');
    return new RawClient(socket);
  }

  #take(chunk: Buffer): void {
    for (const frame of this.#cutter.push(chunk)) {
      if (this.#handshakeDone) {
        this.#inbox.push(decodeMessage(frame, (xid) => this.#kinds.get(xid)!));
      } else {
        this.#handshakeDone = true;
        this.session = decodeConnectResponse(frame);
        this.#inbox.push(this.session);
      }
    }
    this.#wake();
  }

  #end(): void {
    this.closed = true;
    this.#wake();
  }

  #wake(): void {
    const wakers = this.#wakers;
    this.#wakers = [];
    for (const wake of wakers) wake();
  }

  /**
   * Takes messages from the inbox, up to and including the first wanted one; all of them if the
   * connection ends first.
   */
  async #until(wanted: (message: Message) => boolean): Promise<Message[]> {
    for (;;) {
      const at = this.#inbox.findIndex(wanted);
      if (at >= 0) return this.#inbox.splice(0, at + 1);
      if (this.closed) return this.#inbox.splice(0);
      await new Promise<void>((resolve) => this.#wakers.push(resolve));
    }
  }

  async handshake(request: ConnectRequest): Promise<Message[]> {
    this.socket.write(encodeConnect(request));
    const connected = this.#until((message) => message.kind === 'connected');
    return within(answerLimitMs, 'answer to a handshake', connected);
  }

  /**
   * Opens a session, or resumes one. undefined if the server closes the connection instead of
   * answering.
   */
  async openSession(timeOut: number, again?: ConnectResponse): Promise<ConnectResponse | undefined> {
    await this.handshake({
      protocolVersion: 0,
      lastZxidSeen: 0,
      timeOut,
      sessionId: again?.sessionId ?? 0n,
      passwd: again?.passwd ?? '\0'.repeat(16),
      readOnly: false,
    });
    return this.session;
  }

  /** Sends without waiting and returns the xid of the reply. */
  send(operation: Operation, xid = ++this.lastXid): number {
    this.socket.write(encodeRequest(xid, operation));
    // A ping is answered with its own xid, whatever it was sent with.
    const answerXid = operation.kind === 'ping' ? Xid.ping : xid;
    this.#kinds.set(answerXid, operation.kind);
    return answerXid;
  }

  /** Everything that arrives up to and including the reply with that xid. */
  async receive(xid: number): Promise<Message[]> {
    const reply = this.#until((message) => message.kind === 'reply' && message.xid === xid);
    const messages = await within(answerLimitMs, `reply to a ${this.#kinds.get(xid)}`, reply);
    this.#kinds.delete(xid);
    return messages;
  }

  async call(operation: Operation): Promise<Reply | undefined> {
    const messages = await this.receive(this.send(operation));
    const last = messages.at(-1);
    return last?.kind === 'reply' ? last : undefined;
  }

  /** Resolves with the remaining messages when the other side has ended the connection. */
  async untilClosed(): Promise<Message[]> {
    return this.#until(() => false);
  }

  destroy(): void {
    this.socket.destroy();
  }
}
