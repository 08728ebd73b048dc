/**
 * A connection of this process to itself. Bytes sent over it arrive after everything that was sent
 * over TCP on this machine before, so a caller that receives its own byte knows that the earlier
 * bytes of others have arrived.
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

  /**
   * Resolves when everything sent so far has arrived, or when the connection is closed. Only one
   * call at a time.
   */
  async roundTrip(): Promise<void> {
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
