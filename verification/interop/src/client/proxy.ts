/** A proxy that passes everything to a server until it holds, cuts, or loses a reply on request. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

export class Proxy {
  readonly #server: Server;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #isHeld = false;
  #dropsNextReply = false;

  private constructor(port: number, rewriteReplies: (bytes: Buffer) => Buffer) {
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
          if (from === far && this.#dropsNextReply) {
            this.#dropsNextReply = false;
            this.cut();
          } else {
            to.write(from === far ? rewriteReplies(bytes) : bytes);
          }
        });
      }
      if (this.#isHeld) for (const socket of pair) socket.pause();
    });
  }

  /** `rewriteReplies` may change the server's bytes, which arrive in pieces. */
  static async to(port: number, rewriteReplies = (bytes: Buffer): Buffer => bytes): Promise<Proxy> {
    const proxy = new Proxy(port, rewriteReplies);
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
  dropNextReply(): void {
    this.#dropsNextReply = true;
  }

  /** No byte passes, and no connection is closed. */
  hold(): void {
    this.#isHeld = true;
    for (const pair of this.#pairs) for (const socket of pair) socket.pause();
  }

  /** Resets every connection, and holds later ones: no session is resumed before `release`. */
  cutAndHold(): void {
    this.cut();
    this.hold();
  }

  release(): void {
    this.#isHeld = false;
    for (const pair of this.#pairs) for (const socket of pair) socket.resume();
  }

  async close(): Promise<void> {
    this.#server.close();
    this.cut();
    await once(this.#server, 'close');
  }
}
