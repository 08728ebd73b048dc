/**
 * A transport that can be cut, or made to fall silent, so that a check can lose a connection when it wants to. Nothing on the machine is touched
 * for it, and no other client notices.
 */
import { type DialledAddress, NodeTransport, type Transport, type TransportCnxn, type TransportSink } from '@tskeeper/client';

interface Line {
  readonly real: TransportCnxn;
  readonly sink: TransportSink;
}

export class Wire implements Transport {
  readonly #real = new NodeTransport();
  readonly #lines = new Set<Line>();
  /** Who is told of the end when a silence is over: dials made meanwhile, and connections that the server has closed meanwhile. */
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

  /** Breaks every connection; the client may connect again at once. */
  cut(): void {
    const lines = [...this.#lines];
    this.#lines.clear();
    for (const { real } of lines) real.destroy();
    // A sink is called from the loop only.
    setImmediate(() => {
      for (const { sink } of lines) sink.closed('cut by the check');
    });
  }

  /** From now on nothing gets through in either direction, and nobody is told, until `restore`. */
  silence(): void {
    this.#isSilent = true;
  }

  /** Ends the silence: what was connected is cut, since bytes are missing, and the client may connect again. */
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
