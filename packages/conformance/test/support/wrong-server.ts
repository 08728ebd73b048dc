/**
 * A server that is wrong in one way: a correct server behind a proxy that reads every frame of the
 * client protocol and changes some. It shows a check what the check has to detect.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import {
  type ConnectRequest,
  type ConnectResponse,
  FrameDecoder,
  operationOf,
  Reader,
  readConnectRequest,
  readConnectResponse,
  readReplyHeader,
  readRequestHeader,
  readWatcherEvent,
  writeConnectRequest,
  writeConnectResponse,
  writeReplyHeader,
  writeRequestHeader,
  Writer,
  writeWatcherEvent,
  Xid,
} from '@tskeeper/protocol';

export interface Request {
  readonly xid: number;
  readonly type: number;
  /** The part after the header. */
  readonly body: Buffer;
}

export type Outgoing =
  | {
      readonly kind: 'reply';
      readonly type: number;
      readonly xid: number;
      readonly zxid: number;
      readonly err: number;
      readonly body: Buffer;
    }
  | { readonly kind: 'event'; readonly zxid: number; readonly type: number; readonly state: number; readonly path: string }
  /** The connection is closed. */
  | { readonly kind: 'end' };

/**
 * What is wrong with one connection. Each hook receives a frame and returns the frame to pass on;
 * without a hook, frames pass unchanged.
 */
export interface Wrongness {
  /** Whether four letter words get no answer. */
  readonly isMute?: boolean;
  connectRequest?(request: ConnectRequest): ConnectRequest;
  connectResponse?(response: ConnectResponse): ConnectResponse;
  /**
   * Whether an invalid frame length is skipped, so that the bytes after it are read as the next
   * frame.
   */
  readonly skipsBadLengths?: boolean;
  /**
   * undefined keeps the request from the server; `answer` then answers it. Of several requests each
   * is sent and answered; `outgoing` may merge their replies.
   */
  request?(request: Request, answer: (err: number) => void): Request | readonly Request[] | undefined;
  outgoing?(frame: Outgoing): readonly Outgoing[];
}

/** The request with another record. */
export function withRecord<T>(request: Request, change: (record: T) => T): Request {
  const codec = operationOf(request.type)!.request;
  const writer = new Writer();
  codec.write(writer, change(codec.read(new Reader(request.body)) as T));
  return { ...request, body: Buffer.from(writer.written()) };
}

/** The reply with another record; rejections are unchanged. */
export function withReply<T>(frame: Outgoing, types: readonly number[], change: (record: T) => T): readonly Outgoing[] {
  if (frame.kind !== 'reply' || !types.includes(frame.type) || frame.err !== 0) return [frame];
  const codec = operationOf(frame.type)!.reply;
  const writer = new Writer();
  codec.write(writer, change(codec.read(new Reader(frame.body)) as T));
  return [{ ...frame, body: Buffer.from(writer.written()) }];
}

function frameOf(write: (writer: Writer) => void): Buffer {
  const writer = new Writer();
  writer.int32(0);
  write(writer);
  const frame = Buffer.from(writer.written());
  frame.writeInt32BE(frame.length - 4, 0);
  return frame;
}

const frameMax = 4 << 20;
const fourLetters = /^[a-z]{4}/;

export class WrongServer implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(port: number, wrongness: () => Wrongness) {
    this.#server = createServer((near) => this.#accept(near, port, wrongness()));
  }

  /** A proxy before the server at `port`; `wrongness` is called for each connection. */
  static async start(port: number, wrongness: () => Wrongness): Promise<WrongServer> {
    const server = new WrongServer(port, wrongness);
    server.#server.listen(0, '127.0.0.1');
    await once(server.#server, 'listening');
    return server;
  }

  get connectString(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  #accept(near: Socket, port: number, wrongness: Wrongness): void {
    const far = connect(port, '127.0.0.1');
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
    }
    near.once('data', (first) => {
      if (fourLetters.test(first.toString('latin1', 0, 4))) {
        if (wrongness.isMute === true) {
          near.end();
        } else {
          far.write(first);
          far.pipe(near);
        }
        return;
      }
      const take = speak(near, far, wrongness);
      take(first);
      near.on('data', take);
    });
  }

  async close(): Promise<void> {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await once(this.#server, 'close');
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Passes frames on. Returns a function that takes the bytes of the client. */
function speak(near: Socket, far: Socket, wrongness: Wrongness): (bytes: Buffer) => void {
  const [fromClient, fromServer] = [new FrameDecoder(frameMax), new FrameDecoder(frameMax)];
  /**
   * The types of the requests that the server has to answer, in order, and between them the answers
   * to requests that it does not receive.
   */
  const asked: (number | Outgoing)[] = [];
  let [isAsked, isOpen] = [false, false];
  const send = (frame: Outgoing): void => {
    if (near.destroyed) return;
    if (frame.kind === 'end') {
      near.end();
      return;
    }
    near.write(
      frameOf((writer) => {
        if (frame.kind === 'event') {
          writeReplyHeader(writer, { xid: Xid.notification, zxid: frame.zxid, err: 0 });
          writeWatcherEvent(writer, frame);
        } else {
          writeReplyHeader(writer, frame);
          writer.raw(frame.body);
        }
      }),
    );
  };
  const sendOwnAnswers = (): void => {
    for (let [next] = asked; typeof next === 'object'; [next] = asked) {
      send(next);
      asked.shift();
    }
  };
  const onRequest = (reader: Reader): boolean => {
    if (!isAsked) {
      isAsked = true;
      const request = readConnectRequest(reader);
      far.write(frameOf((writer) => writeConnectRequest(writer, wrongness.connectRequest?.(request) ?? request)));
      return true;
    }
    const request: Request = { ...readRequestHeader(reader), body: Buffer.from(reader.bytes.subarray(reader.offset, reader.limit)) };
    const { xid, type } = request;
    const answer = (err: number) => {
      asked.push({ kind: 'reply', type, xid, zxid: 1, err, body: Buffer.alloc(0) });
      sendOwnAnswers();
    };
    const passed = wrongness.request === undefined ? request : wrongness.request(request, answer);
    if (passed === undefined) return true;
    for (const each of [passed].flat()) {
      asked.push(each.type);
      far.write(
        frameOf((writer) => {
          writeRequestHeader(writer, each);
          writer.raw(each.body);
        }),
      );
    }
    return true;
  };
  const onAnswer = (reader: Reader): boolean => {
    if (!isOpen) {
      isOpen = true;
      const response = readConnectResponse(reader);
      near.write(frameOf((writer) => writeConnectResponse(writer, wrongness.connectResponse?.(response) ?? response)));
      return true;
    }
    const header = readReplyHeader(reader);
    const frame: Outgoing =
      header.xid === Xid.notification
        ? { kind: 'event', zxid: header.zxid, ...readWatcherEvent(reader) }
        : {
            kind: 'reply',
            type: asked.shift() as number,
            ...header,
            body: Buffer.from(reader.bytes.subarray(reader.offset, reader.limit)),
          };
    for (const each of wrongness.outgoing?.(frame) ?? [frame]) send(each);
    sendOwnAnswers();
    return true;
  };
  far.on('data', (bytes) => fromServer.feed(bytes, 0, bytes.length, onAnswer));
  let left: Buffer = Buffer.alloc(0);
  /** The complete frames of a valid length in these bytes. */
  const withoutBadLengths = (bytes: Buffer): Buffer => {
    left = Buffer.concat([left, bytes]);
    const frames: Buffer[] = [];
    while (left.length >= 4) {
      const length = left.readInt32BE(0);
      const isBad = length < 0 || length > frameMax;
      const end = isBad ? 4 : 4 + length;
      if (left.length < end) break;
      if (!isBad) frames.push(left.subarray(0, end));
      left = left.subarray(end);
    }
    return Buffer.concat(frames);
  };
  return (received) => {
    const bytes = wrongness.skipsBadLengths === true ? withoutBadLengths(received) : received;
    try {
      fromClient.feed(bytes, 0, bytes.length, onRequest);
    } catch {
      // A frame that no server accepts.
      near.destroy();
    }
  };
}
