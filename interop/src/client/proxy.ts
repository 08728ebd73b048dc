/** A proxy that passes everything to a server until it holds, cuts, or loses a reply on request. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

export class Proxy {
  readonly #server: Server;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #held = false;
  #losesNextAnswer = false;

  private constructor(port: number, answered: (bytes: Buffer) => Buffer) {
    this.#server = createServer((near) => {
      const far = connect(port, '127.0.0.1');
      const pair = [near, far] as const;
      this.#pairs.add(pair);
      const over = () => {
        this.#pairs.delete(pair);
        near.destroy();
        far.destroy();
      };
      for (const [from, to] of [pair, [far, near] as const]) {
        from.on('error', over);
        from.on('close', over);
        from.on('end', () => to.end());
        from.on('data', (bytes) => {
          if (from === far && this.#losesNextAnswer) {
            this.#losesNextAnswer = false;
            this.cut();
          } else {
            to.write(from === far ? answered(bytes) : bytes);
          }
        });
      }
      if (this.#held) for (const socket of pair) socket.pause();
    });
  }

  /** `answered` may change the server's bytes, which arrive in pieces. */
  static async to(port: number, answered = (bytes: Buffer): Buffer => bytes): Promise<Proxy> {
    const proxy = new Proxy(port, answered);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get connectString(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Resets every connection. */
  cut(): void {
    // If a socket is reset while its end is pending, Node never emits its end.
    for (const socket of [...this.#pairs].flat()) {
      if (socket.writableEnded) socket.destroy();
      else socket.resetAndDestroy();
    }
  }

  /** The next reply of the server resets every connection instead of arriving. */
  loseNextAnswer(): void {
    this.#losesNextAnswer = true;
  }

  /** No byte passes, and no connection is closed. */
  hold(): void {
    this.#held = true;
    for (const pair of this.#pairs) for (const socket of pair) socket.pause();
  }

  /** Resets every connection, and holds later ones: no session is resumed before `release`. */
  breakOff(): void {
    this.cut();
    this.hold();
  }

  release(): void {
    this.#held = false;
    for (const pair of this.#pairs) for (const socket of pair) socket.resume();
  }

  async close(): Promise<void> {
    this.#server.close();
    this.cut();
    await once(this.#server, 'close');
  }
}
