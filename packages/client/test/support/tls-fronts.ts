/** Sockets that end with their test, among them TLS proxies for a server without TLS. */
import { once } from 'node:events';
import { type AddressInfo, connect, type Server, type Socket } from 'node:net';
import { createServer, type TLSSocket, type TlsOptions } from 'node:tls';

export interface Front {
  readonly port: number;
  /** The handshakes. */
  readonly seen: { readonly servername: string | false | null; readonly peer: string | undefined; readonly protocol: string | null }[];
}

export class TlsFronts {
  #servers: Server[] = [];
  #sockets: Socket[] = [];

  readonly keep = (socket: Socket): void => {
    this.#sockets.push(socket);
    socket.on('error', () => undefined);
  };

  async listening(server: Server, host = '127.0.0.1'): Promise<number> {
    this.#servers.push(server);
    server.listen(0, host);
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  }

  /** Terminates TLS and forwards. */
  async before(connectString: string, options: TlsOptions, host?: string): Promise<Front> {
    const seen: Front['seen'][number][] = [];
    const server = createServer(options, (socket: TLSSocket) => {
      this.keep(socket);
      const { servername } = socket as unknown as { servername: string | false | null };
      seen.push({ servername, peer: socket.getPeerX509Certificate()?.subject, protocol: socket.getProtocol() });
      const behind = connect(Number(connectString.split(':').at(-1)), '127.0.0.1');
      this.keep(behind);
      socket.pipe(behind).pipe(socket);
      socket.on('close', () => behind.destroy());
    });
    return { port: await this.listening(server, host), seen };
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  get socketCount(): number {
    return this.#sockets.length;
  }

  async close(): Promise<void> {
    this.cut();
    this.#sockets = [];
    const servers = this.#servers;
    this.#servers = [];
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  }
}
