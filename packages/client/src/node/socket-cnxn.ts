/** A connection of a transport over a socket of Node, plain or TLS. */
import type { Socket } from 'node:net';
import type { TransportCnxn, TransportSink } from '../transport.ts';

/**
 * After this many bytes the rest of the program gets a turn, even if more has arrived: libuv reads
 * up to 32 full buffers in a row, and each may contain thousands of events.
 */
const turnBytes = 256 * 1024;
/** How long a peer may take to close its side. */
const lingerMs = 1000;

/** The differences between plain and TLS sockets. */
export interface SocketBehavior {
  /** The socket's event that says that it can send. */
  readonly readyEvent: 'connect' | 'secureConnect';
  /** Called after that event: why the peer must not be used anyway; undefined if it may. */
  peerProblem?(): string | undefined;
  /** The text of an error. */
  errorText(error: NodeJS.ErrnoException): string;
}

export class SocketCnxn implements TransportCnxn {
  readonly #socket: Socket;
  readonly #sink: TransportSink;
  #isReady = false;
  #isClosed = false;
  /** Since the last pause. */
  #receivedBytes = 0;

  constructor(socket: Socket, sink: TransportSink, behavior: SocketBehavior) {
    this.#socket = socket;
    this.#sink = sink;
    let error: string | undefined;
    socket.on(behavior.readyEvent, () => {
      if (this.#isClosed) return;
      error = behavior.peerProblem?.();
      if (error === undefined) {
        this.#isReady = true;
        sink.connected();
      } else {
        socket.destroy();
      }
    });
    // This listener is never removed: a socket may fail at any later time.
    socket.on('error', (cause: NodeJS.ErrnoException) => {
      error ??= behavior.errorText(cause);
    });
    socket.on('close', () => {
      if (this.#isClosed) return;
      this.#isClosed = true;
      sink.closed(error);
    });
  }

  /**
   * Called by the creator of the socket, which may reuse the bytes when this returns. Returns
   * whether to continue reading in this turn of the event loop; if not, reading resumes by itself
   * in the next.
   */
  received(bytes: Buffer): boolean {
    if (this.#isClosed || !this.#isReady) return true;
    this.#sink.received(bytes);
    this.#receivedBytes += bytes.length;
    if (this.#receivedBytes < turnBytes) return true;
    this.#receivedBytes = 0;
    setImmediate(this.#resumeReading);
    return false;
  }

  readonly #resumeReading = (): void => {
    this.#socket.resume();
  };

  send(bytes: Uint8Array): void {
    this.#socket.write(bytes);
  }

  end(): void {
    this.#isClosed = true;
    // Discard what still arrives, so that the peer's end is seen.
    this.#socket.resume();
    this.#socket.end();
    // A peer that does not close its side must not keep the program running.
    const timer = setTimeout(() => this.#socket.destroy(), lingerMs);
    this.#socket.on('close', () => clearTimeout(timer));
  }

  destroy(): void {
    this.#isClosed = true;
    this.#socket.destroy();
  }
}
