/**
 * A connection of this process with itself. What is sent over it comes behind everything that was sent over TCP within this machine before, so that
 * whoever waits for a byte of his own knows that those of others have arrived.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

const byte = Buffer.alloc(1);

export class Loopback {
  readonly #server: Server;
  readonly #from: Socket;
  readonly #to: Socket;
  #arrived: () => void = () => undefined;

  private constructor(server: Server, from: Socket, to: Socket) {
    this.#server = server;
    this.#from = from;
    this.#to = to;
    to.on('data', () => this.#arrived());
    to.on('close', () => this.#arrived());
  }

  static async open(): Promise<Loopback> {
    const server = createServer({ noDelay: true });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const from = connect({ host: '127.0.0.1', port: (server.address() as AddressInfo).port, noDelay: true });
    const [[to]] = (await Promise.all([once(server, 'connection'), once(from, 'connect')])) as [[Socket], unknown];
    return new Loopback(server, from, to);
  }

  /** Resolves when what has been sent by now has arrived, or when it is closed. One at a time. */
  async pass(): Promise<void> {
    if (this.#to.destroyed) return;
    await new Promise<void>((resolve) => {
      this.#arrived = resolve;
      this.#from.write(byte);
    });
  }

  close(): void {
    this.#from.destroy();
    this.#to.destroy();
    this.#server.close();
  }
}
