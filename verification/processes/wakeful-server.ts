/**
 * A server without a network: a transport whose other end answers the requests of the memory proofs
 * at once and from memory. Every znode exists, except that requests for `/silent` get no answer.
 */
import {
  OpCode,
  operationOf,
  Reader,
  readConnectRequest,
  readRequestHeader,
  type Stat,
  writeConnectResponse,
  Writer,
  writeReplyHeader,
  writeWatcherEvent,
  Xid,
} from '@tskeeper/protocol';
import type { ServerAddress, Transport, TransportCnxn, TransportSink } from '@tskeeper/client';

const sessionId = 0x1000n;
const password = Buffer.alloc(16, 7);
const stat: Stat = {
  czxid: 1,
  mzxid: 1,
  ctime: 0,
  mtime: 0,
  version: 0,
  cversion: 0,
  aversion: 0,
  ephemeralOwner: 0n,
  dataLength: 100,
  numChildren: 0,
  pzxid: 1,
};
const data = Buffer.alloc(100, 'x');

class Cnxn implements TransportCnxn {
  readonly #sink: TransportSink;
  readonly #sessionTimeoutMs: number;
  readonly #writer = new Writer();
  #hasSession = false;
  isOver = false;

  constructor(sink: TransportSink, sessionTimeoutMs: number) {
    this.#sink = sink;
    this.#sessionTimeoutMs = sessionTimeoutMs;
    this.#later(() => sink.connected());
  }

  send(bytes: Uint8Array): void {
    const input = Buffer.from(bytes);
    for (let at = 0; at < input.length;) {
      const end = at + 4 + input.readInt32BE(at);
      this.#answer(new Reader(input, at + 4, end));
      at = end;
    }
    this.#flush();
  }

  end(): void {
    this.isOver = true;
  }

  destroy(): void {
    this.isOver = true;
  }

  reset(): void {
    this.isOver = true;
    this.#sink.closed('ECONNRESET');
  }

  notify(type: number, path: string, count: number): void {
    for (let i = 0; i < count; i++) this.#reply(Xid.notification, -1, () => writeWatcherEvent(this.#writer, { type, state: 3, path }));
    this.#flush();
  }

  #answer(reader: Reader): void {
    if (!this.#hasSession) {
      this.#hasSession = true;
      readConnectRequest(reader);
      const start = this.#writer.beginFrame();
      const timeOut = this.#sessionTimeoutMs;
      writeConnectResponse(this.#writer, { protocolVersion: 0, timeOut, sessionId, passwd: password, readOnly: false });
      this.#writer.endFrame(start);
      return;
    }
    const { xid, type } = readRequestHeader(reader);
    switch (type) {
      case OpCode.getData: {
        const { path } = operationOf(type)!.request.read(reader) as { readonly path: string };
        if (path !== '/silent') this.#reply(xid, 1, () => operationOf(type)!.reply.write(this.#writer, { data, stat }));
        return;
      }
      case OpCode.addWatch:
        this.#reply(xid, 1, () => operationOf(type)!.reply.write(this.#writer, { err: 0 }));
        return;
      case OpCode.ping:
      case OpCode.auth:
      case OpCode.setWatches2:
      case OpCode.removeWatches:
      case OpCode.closeSession:
        this.#reply(xid, 1, () => {});
        return;
      default:
        throw new Error(`this server knows nothing of opcode ${type}`);
    }
  }

  #reply(xid: number, zxid: number, body: () => void): void {
    const start = this.#writer.beginFrame();
    writeReplyHeader(this.#writer, { xid, zxid, err: 0 });
    body();
    this.#writer.endFrame(start);
  }

  #flush(): void {
    if (this.#writer.offset === 0) return;
    const bytes = Buffer.from(this.#writer.written());
    this.#writer.clear();
    this.#later(() => this.#sink.received(bytes));
  }

  /** Never from inside a call of the client. */
  #later(tell: () => void): void {
    queueMicrotask(() => {
      if (!this.isOver) tell();
    });
  }
}

export class WakefulServer implements Transport {
  #latest: Cnxn | undefined;
  readonly #sessionTimeoutMs: number;

  constructor(sessionTimeoutMs: number) {
    this.#sessionTimeoutMs = sessionTimeoutMs;
  }

  connect(_address: ServerAddress, sink: TransportSink): TransportCnxn {
    this.#latest = new Cnxn(sink, this.#sessionTimeoutMs);
    return this.#latest;
  }

  /** Resets the current connection. */
  reset(): void {
    this.#latest!.reset();
  }

  /** Sends this many events at once. */
  notify(type: number, path: string, count: number): void {
    this.#latest!.notify(type, path, count);
  }
}
