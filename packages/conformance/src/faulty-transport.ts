/**
 * A transport that can be cut or silenced, so that a check can lose a connection on purpose. It
 * changes nothing on the machine and affects no other client.
 */
import { type ResolvedAddress, NodeTransport, type Transport, type TransportCnxn, type TransportSink } from '@tskeeper/client';

interface OpenCnxn {
  readonly real: TransportCnxn;
  readonly sink: TransportSink;
}

export class FaultyTransport implements Transport {
  readonly #real = new NodeTransport();
  readonly #cnxns = new Set<OpenCnxn>();
  /**
   * Sinks to notify of the end after a silence: of dials made during it, and of connections that
   * the server closed during it.
   */
  readonly #closedLater = new Set<TransportSink>();
  #isPartitioned = false;

  resolve(host: string): Promise<readonly string[]> {
    return this.#real.resolve(host);
  }

  connect(address: ResolvedAddress, sink: TransportSink): TransportCnxn {
    if (this.#isPartitioned) {
      this.#closedLater.add(sink);
      const forget = () => void this.#closedLater.delete(sink);
      return { send: () => undefined, end: forget, destroy: forget };
    }
    const real = this.#real.connect(address, {
      connected: () => sink.connected(),
      received: (bytes) => {
        if (!this.#isPartitioned) sink.received(bytes);
      },
      closed: (error) => {
        if (!this.#cnxns.delete(cnxn)) return;
        if (this.#isPartitioned) this.#closedLater.add(sink);
        else sink.closed(error);
      },
    });
    const cnxn: OpenCnxn = { real, sink };
    this.#cnxns.add(cnxn);
    const forget = () => {
      this.#cnxns.delete(cnxn);
      this.#closedLater.delete(sink);
    };
    return {
      send: (bytes) => {
        if (!this.#isPartitioned) real.send(bytes);
      },
      end: () => {
        forget();
        real.end();
      },
      destroy: () => {
        forget();
        real.destroy();
      },
    };
  }

  /** Closes every connection; the client may connect again at once. */
  cutConnections(): void {
    const cnxns = [...this.#cnxns];
    this.#cnxns.clear();
    for (const { real } of cnxns) real.destroy();
    // A sink may only be called from the event loop.
    setImmediate(() => {
      for (const { sink } of cnxns) sink.closed('cut by the check');
    });
  }

  /** From now on no bytes pass in either direction, without an error, until `restore`. */
  partition(): void {
    this.#isPartitioned = true;
  }

  /**
   * Ends the silence: closes its connections, since bytes are missing; the client may connect
   * again.
   */
  heal(): void {
    this.#isPartitioned = false;
    this.cutConnections();
    const waiting = [...this.#closedLater];
    this.#closedLater.clear();
    setImmediate(() => {
      for (const sink of waiting) sink.closed('cut by the check');
    });
  }
}
