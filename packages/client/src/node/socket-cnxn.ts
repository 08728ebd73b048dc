/** A connection of a transport over one of Node's sockets, plain or TLS. */
import type { Socket } from 'node:net';
import type { TransportCnxn, TransportSink } from '../transport.ts';

/** After so many bytes the rest of the program has a turn, whatever else has arrived: libuv reads up to 32 full buffers in a row, and each may hold thousands of events. */
const turnBytes = 256 * 1024;
/** How long a peer may take to end its side. */
const lingerMs = 1000;

/** What differs between sockets. */
export interface SocketManner {
  /** The socket's event that says that bytes may go out. */
  readonly readyEvent: 'connect' | 'secureConnect';
  /** Asked when it has come: why the peer must not be talked to all the same; undefined when it may. */
  fault?(): string | undefined;
  /** How to tell of an error. */
  words(error: NodeJS.ErrnoException): string;
}

export class SocketCnxn implements TransportCnxn {
  readonly #socket: Socket;
  readonly #sink: TransportSink;
  #ready = false;
  #over = false;
  /** Since the last rest. */
  #receivedBytes = 0;

  constructor(socket: Socket, sink: TransportSink, manner: SocketManner) {
    this.#socket = socket;
    this.#sink = sink;
    let error: string | undefined;
    socket.on(manner.readyEvent, () => {
      if (this.#over) return;
      error = manner.fault?.();
      if (error === undefined) {
        this.#ready = true;
        sink.connected();
      } else {
        socket.destroy();
      }
    });
    // Stays for good: a socket may fail long after anyone is interested.
    socket.on('error', (cause: NodeJS.ErrnoException) => {
      error ??= manner.words(cause);
    });
    socket.on('close', () => {
      if (this.#over) return;
      this.#over = true;
      sink.closed(error);
    });
  }

  /**
   * Told by whoever made the socket. The bytes are the caller's again when this returns. Returns whether more may be read in this turn of the loop; else reading goes on in the next, by
   * itself.
   */
  received(bytes: Buffer): boolean {
    if (this.#over || !this.#ready) return true;
    this.#sink.received(bytes);
    this.#receivedBytes += bytes.length;
    if (this.#receivedBytes < turnBytes) return true;
    this.#receivedBytes = 0;
    setImmediate(this.#readOn);
    return false;
  }

  readonly #readOn = (): void => {
    this.#socket.resume();
  };

  send(bytes: Uint8Array): void {
    this.#socket.write(bytes);
  }

  end(): void {
    this.#over = true;
    // What is still received is thrown away, so that the peer's end can be seen.
    this.#socket.resume();
    this.#socket.end();
    // A peer that does not end as well must not keep the program from ending.
    const timer = setTimeout(() => this.#socket.destroy(), lingerMs);
    this.#socket.on('close', () => clearTimeout(timer));
  }

  destroy(): void {
    this.#over = true;
    this.#socket.destroy();
  }
}
