/** TCP over node:net, names by the system's resolver, SRV names by DNS. */
import dns from 'node:dns';
import { connect } from 'node:net';
import type { DialledAddress, ServiceRecord, Transport, TransportCnxn, TransportSink } from '../transport.ts';
import { SocketCnxn } from './socket-cnxn.ts';

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

  connect({ host, port }: DialledAddress, sink: TransportSink): TransportCnxn {
    // The session tries addresses one by one with its own time limit; Node's racing of addresses would cut attempts short.
    const socket = connect({ host, port, noDelay: true, autoSelectFamily: false });
    return new SocketCnxn(socket, sink, { readyEvent: 'connect', words: wordsOfSystem });
  }
}

export function wordsOfSystem(error: NodeJS.ErrnoException): string {
  return error.code ?? error.message;
}
