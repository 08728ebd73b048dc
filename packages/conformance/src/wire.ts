/**
 * A transport that can be cut or silenced, so that a check can lose a connection on purpose. It
 * changes nothing on the machine and affects no other client.
 */
import { type DialledAddress, NodeTransport, type Transport, type TransportCnxn, type TransportSink } from '@tskeeper/client';

interface Line {
  readonly real: TransportCnxn;
  readonly sink: TransportSink;
}

export class Wire implements Transport {
  readonly #real = new NodeTransport();
  readonly #lines = new Set<Line>();
  /**
   * Sinks to notify of the end after a silence: of dials made during it, and of connections that
   * the server closed during it.
   */
  readonly #waiting = new Set<TransportSink>();
  #isSilent = false;

  resolve(host: string): Promise<readonly string[]> {
    return this.#real.resolve(host);
  }

  connect(address: DialledAddress, sink: TransportSink): TransportCnxn {
    if (this.#isSilent) {
      this.#waiting.add(sink);
      const over = () => void this.#waiting.delete(sink);
      return { send: () => undefined, end: over, destroy: over };
    }
    const real = this.#real.connect(address, {
      connected: () => sink.connected(),
      received: (bytes) => {
        if (!this.#isSilent) sink.received(bytes);
      },
      closed: (error) => {
        if (!this.#lines.delete(line)) return;
        if (this.#isSilent) this.#waiting.add(sink);
        else sink.closed(error);
      },
    });
    const line: Line = { real, sink };
    this.#lines.add(line);
    const over = () => {
      this.#lines.delete(line);
      this.#waiting.delete(sink);
    };
    return {
      send: (bytes) => {
        if (!this.#isSilent) real.send(bytes);
      },
      end: () => {
        over();
        real.end();
      },
      destroy: () => {
        over();
        real.destroy();
      },
    };
  }

  /** Closes every connection; the client may connect again at once. */
  cut(): void {
    const lines = [...this.#lines];
    this.#lines.clear();
    for (const { real } of lines) real.destroy();
    // A sink may only be called from the event loop.
    setImmediate(() => {
      for (const { sink } of lines) sink.closed('cut by the check');
    });
  }

  /** From now on no bytes pass in either direction, without an error, until `restore`. */
  silence(): void {
    this.#isSilent = true;
  }

  /**
   * Ends the silence: closes its connections, since bytes are missing; the client may connect
   * again.
   */
  restore(): void {
    this.#isSilent = false;
    this.cut();
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    setImmediate(() => {
      for (const sink of waiting) sink.closed('cut by the check');
    });
  }
}
