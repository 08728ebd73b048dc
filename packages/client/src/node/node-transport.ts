/** TCP over node:net; resolves names with the system's resolver, and SRV names with DNS. */
import dns from 'node:dns';
import { connect, type Socket } from 'node:net';
import { checkOptions, valueTypes, optionTypes } from '../arguments.ts';
import type { ResolvedAddress, SrvRecord, Transport, TransportCnxn, TransportSink } from '../transport.ts';
import { SocketCnxn } from './socket-cnxn.ts';

export const nodeTransportOptionTypes = optionTypes({ keepProcessAlive: valueTypes.boolean });

/** Size of the receive buffer of a socket. */
const receiveBytes = 64 * 1024;

/** The options of a NodeTransport. */
export interface NodeTransportOptions {
  /** Whether an open connection keeps the process running. Default: true. */
  readonly keepProcessAlive?: boolean | undefined;
}

/**
 * TCP; resolves names with the system's resolver, and SRV names with DNS. The default transport of
 * `connect`.
 */
export class NodeTransport implements Transport {
  readonly #keepProcessAlive: boolean;

  /** Throws a TypeError for unknown options. */
  constructor(options: NodeTransportOptions = {}) {
    checkOptions(options, nodeTransportOptionTypes, 'new NodeTransport(options)');
    this.#keepProcessAlive = options.keepProcessAlive ?? true;
  }

  /** Prepares a socket of this transport before it connects. */
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
  resolveSrv(name: string): Promise<readonly SrvRecord[]> {
    return new Promise((resolve, reject) => {
      // Call it on the module, whose methods change when the program sets the servers of its DNS.
      dns.resolveSrv(name, (error, records) => {
        if (error === null) resolve(records.map(({ name: host, port, priority, weight }) => ({ host, port, priority, weight })));
        else reject(error);
      });
    });
  }

  /** Connects to one address. */
  connect({ host, port }: ResolvedAddress, sink: TransportSink): TransportCnxn {
    const buffer = Buffer.allocUnsafeSlow(receiveBytes);
    // One buffer for all reads: each 'data' event would allocate one of its own, which costs more
    // than most events carry.
    const onread = {
      buffer,
      callback: (count: number) => cnxn.received(buffer.subarray(0, count)),
    };
    // The session tries addresses one by one with its own time limit; Node's address racing would
    // cut attempts short.
    const socket = connect({ host, port, noDelay: true, autoSelectFamily: false, onread });
    this.prepare(socket);
    const cnxn = new SocketCnxn(socket, sink, { readyEvent: 'connect', errorText: systemErrorText });
    return cnxn;
  }
}

export function systemErrorText(error: NodeJS.ErrnoException): string {
  return error.code ?? error.message;
}
