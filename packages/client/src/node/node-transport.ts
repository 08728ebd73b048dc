/** TCP over node:net, names by the system's resolver, SRV names by DNS. */
import dns from 'node:dns';
import { connect, type Socket } from 'node:net';
import { checkOptions, kinds, optionKinds } from '../arguments.ts';
import type { DialledAddress, ServiceRecord, Transport, TransportCnxn, TransportSink } from '../transport.ts';
import { SocketCnxn } from './socket-cnxn.ts';

export const nodeTransportOptions = optionKinds({ keepProcessAlive: kinds.boolean });

/** What is taken from a socket at once. */
const receiveBytes = 64 * 1024;

/** How the sockets of a NodeTransport are set up. */
export interface NodeTransportOptions {
  /** Whether an open connection keeps the process running. Default: true. */
  readonly keepProcessAlive?: boolean | undefined;
}

/** TCP, with names looked up by the system and SRV names by DNS: what `connect` uses where no other is given. */
export class NodeTransport implements Transport {
  readonly #keepProcessAlive: boolean;

  /** Throws a TypeError for unknown options. */
  constructor(options: NodeTransportOptions = {}) {
    checkOptions(options, nodeTransportOptions, 'new NodeTransport(options)');
    this.#keepProcessAlive = options.keepProcessAlive ?? true;
  }

  /** A socket of this transport, before it connects. */
  protected prepare(socket: Socket): void {
    if (!this.#keepProcessAlive) socket.unref();
  }

  /** All addresses of a name, by getaddrinfo. Rejects with the system's error. */
  resolve(host: string): Promise<readonly string[]> {
    return new Promise((resolve, reject) => {
      dns.lookup(host, { all: true, verbatim: true }, (error, addresses) => {
        if (error === null) resolve(addresses.map(({ address }) => address));
        else reject(error);
      });
    });
  }

  /** The records of an SRV name (RFC 2782). Rejects with the resolver's error. */
  resolveService(name: string): Promise<readonly ServiceRecord[]> {
    return new Promise((resolve, reject) => {
      // Asked for by way of the module, whose methods change when the program sets the servers of its DNS.
      dns.resolveSrv(name, (error, records) => {
        if (error === null) resolve(records.map(({ name: host, port, priority, weight }) => ({ host, port, priority, weight })));
        else reject(error);
      });
    });
  }

  /** Dials one address. */
  connect({ host, port }: DialledAddress, sink: TransportSink): TransportCnxn {
    const buffer = Buffer.allocUnsafeSlow(receiveBytes);
    // One buffer for whatever arrives: 'data' events would each bring one of their own, and cost more than what most of them carry.
    const onread = {
      buffer,
      callback: (count: number) => cnxn.received(buffer.subarray(0, count)),
    };
    // The session tries addresses one by one with its own time limit; Node's racing of addresses would cut attempts short.
    const socket = connect({ host, port, noDelay: true, autoSelectFamily: false, onread });
    this.prepare(socket);
    const cnxn = new SocketCnxn(socket, sink, { readyEvent: 'connect', words: wordsOfSystem });
    return cnxn;
  }
}

export function wordsOfSystem(error: NodeJS.ErrnoException): string {
  return error.code ?? error.message;
}
