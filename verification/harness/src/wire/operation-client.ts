/**
 * A client of the reference model's operations over a real socket: no retries and no pings of its
 * own. It returns what it receives in order, and throws if a message is malformed.
 */
import { Xid } from '@tskeeper/protocol';
import type { ConnectRequest, ConnectResponse, Message, Operation, OperationKind, Reply } from '@tskeeper/simulator';
import { encodeConnect, encodeRequest, operationMessageOf } from './operation-codec.ts';
import { type Endpoint, WireCnxn } from './wire-cnxn.ts';

/** Long enough for any running server, on any machine. */
const answerLimitMs = 30_000;

export class OperationClient {
  readonly #cnxn: WireCnxn;
  readonly #kinds = new Map<number, OperationKind>();
  readonly #inbox: Message[] = [];
  lastXid = 0;
  session: ConnectResponse | undefined;

  private constructor(cnxn: WireCnxn) {
    this.#cnxn = cnxn;
  }

  static async open(endpoint: Endpoint): Promise<OperationClient> {
    return new OperationClient(await WireCnxn.open(endpoint));
  }

  /** True after the server, or an error, has ended the connection. */
  get closed(): boolean {
    return this.#cnxn.closed;
  }

  sendRaw(bytes: Buffer): void {
    this.#cnxn.sendRaw(bytes);
  }

  #take(): void {
    for (const message of this.#cnxn.take()) {
      if (message.kind === 'closed' || message.kind === 'silence') continue;
      const decoded = operationMessageOf(message, (xid) => this.#kinds.get(xid)!);
      if (decoded.kind === 'connected') this.session = decoded;
      this.#inbox.push(decoded);
    }
  }

  /**
   * Takes messages from the inbox, up to and including the first wanted one; all of them if the
   * connection ends first.
   */
  async #until(what: string, wanted: (message: Message) => boolean, timeoutMs: number): Promise<Message[]> {
    let taken: Message[] | undefined;
    // Takes at once: other calls wait as well, and take what is theirs before this one continues.
    const hasArrived = (): boolean => {
      this.#take();
      const at = this.#inbox.findIndex(wanted);
      if (at >= 0) taken = this.#inbox.splice(0, at + 1);
      return taken !== undefined;
    };
    await this.#cnxn.until(hasArrived, timeoutMs);
    if (taken !== undefined) return taken;
    if (!this.closed) throw new Error(`timed out after ${timeoutMs} ms waiting for ${what}`);
    return this.#inbox.splice(0);
  }

  async handshake(request: ConnectRequest): Promise<Message[]> {
    this.#cnxn.sendRaw(encodeConnect(request));
    return this.#until('the answer to a handshake', (message) => message.kind === 'connected', answerLimitMs);
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
    this.#cnxn.sendRaw(encodeRequest(xid, operation));
    // A ping is answered with its own xid, whatever it was sent with.
    const answerXid = operation.kind === 'ping' ? Xid.ping : xid;
    this.#kinds.set(answerXid, operation.kind);
    return answerXid;
  }

  /** Everything that arrives up to and including the reply with that xid. */
  async receive(xid: number): Promise<Message[]> {
    const isReply = (message: Message): boolean => message.kind === 'reply' && message.xid === xid;
    const messages = await this.#until(`the reply to a ${this.#kinds.get(xid)}`, isReply, answerLimitMs);
    this.#kinds.delete(xid);
    return messages;
  }

  async call(operation: Operation): Promise<Reply | undefined> {
    const messages = await this.receive(this.send(operation));
    const last = messages.at(-1);
    return last?.kind === 'reply' ? last : undefined;
  }

  /** Resolves with the remaining messages when the other side has ended the connection. */
  async untilClosed(timeoutMs = 24 * 3_600_000): Promise<Message[]> {
    return this.#until('the end of the connection', () => false, timeoutMs);
  }

  destroy(): void {
    this.#cnxn.destroy();
  }
}
