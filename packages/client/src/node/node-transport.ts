/** TCP over node:net, names by the system's resolver, SRV names by DNS. */
import dns from 'node:dns';
import { connect, type Socket } from 'node:net';
import type { ServerAddress, ServiceRecord, Transport, TransportCnxn, TransportSink } from '../transport.ts';

export class NodeTransport implements Transport {
  resolve(host: string): Promise<readonly string[]> {
    return new Promise((resolve, reject) => {
      dns.lookup(host, { all: true, verbatim: true }, (error, addresses) => {
        if (error === null) resolve(addresses.map(({ address }) => address));
        else reject(error);
      });
    });
  }

  resolveService(name: string): Promise<readonly ServiceRecord[]> {
    return new Promise((resolve, reject) => {
      // Asked for by way of the module, whose methods change when the program sets the servers of its DNS.
      dns.resolveSrv(name, (error, records) => {
        if (error === null) resolve(records.map(({ name: host, port, priority, weight }) => ({ host, port, priority, weight })));
        else reject(error);
      });
    });
  }

  connect({ host, port }: ServerAddress, sink: TransportSink): TransportCnxn {
    // The session tries addresses one by one with its own time limit; Node's racing of addresses would cut attempts short.
    const socket = connect({ host, port, noDelay: true, autoSelectFamily: false });
    return new NodeCnxn(socket, sink);
  }
}

/** How long a peer may take to end its side. */
const lingerMs = 1000;

class NodeCnxn implements TransportCnxn {
  readonly #socket: Socket;
  #over = false;

  constructor(socket: Socket, sink: TransportSink) {
    this.#socket = socket;
    let error: string | undefined;
    socket.on('connect', () => {
      if (!this.#over) sink.connected();
    });
    socket.on('data', (bytes) => {
      if (!this.#over) sink.received(bytes);
    });
    // Stays for good: a socket may fail long after anyone is interested.
    socket.on('error', (cause: NodeJS.ErrnoException) => {
      error = cause.code ?? cause.message;
    });
    socket.on('close', () => {
      if (this.#over) return;
      this.#over = true;
      sink.closed(error);
    });
  }

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
