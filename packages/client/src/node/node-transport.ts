/** TCP over node:net, names by the system's resolver. */
import { lookup } from 'node:dns';
import { connect } from 'node:net';
import type { DialledAddress, Transport, TransportCnxn, TransportSink } from '../transport.ts';
import { SocketCnxn } from './socket-cnxn.ts';

export class NodeTransport implements Transport {
  resolve(host: string): Promise<readonly string[]> {
    return new Promise((resolve, reject) => {
      lookup(host, { all: true, verbatim: true }, (error, addresses) => {
        if (error === null) resolve(addresses.map(({ address }) => address));
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
