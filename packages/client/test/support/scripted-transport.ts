/**
 * A transport whose other end is the test: it sees every connection and what was sent on it, and
 * sends the answers.
 */
import type { ServerAddress, Transport, TransportCnxn, TransportSink } from '../../src/index.ts';

export class ScriptedCnxn implements TransportCnxn {
  readonly address: ServerAddress;
  readonly sink: TransportSink;
  readonly sent: Buffer[] = [];
  ended = false;
  destroyed = false;

  constructor(address: ServerAddress, sink: TransportSink) {
    this.address = address;
    this.sink = sink;
  }

  send(bytes: Uint8Array): void {
    if (this.over) throw new Error('the client sent on a connection that it had closed');
    this.sent.push(Buffer.from(bytes));
  }

  end(): void {
    this.ended = true;
  }

  destroy(): void {
    this.destroyed = true;
  }

  get over(): boolean {
    return this.ended || this.destroyed;
  }
}

export class ScriptedTransport implements Transport {
  readonly cnxns: ScriptedCnxn[] = [];

  connect(address: ServerAddress, sink: TransportSink): TransportCnxn {
    const cnxn = new ScriptedCnxn(address, sink);
    this.cnxns.push(cnxn);
    return cnxn;
  }

  get latest(): ScriptedCnxn {
    return this.cnxns.at(-1)!;
  }
}
