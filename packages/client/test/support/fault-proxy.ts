/**
 * A TCP proxy with faults: it cuts, refuses, or stalls connections, in both directions or in one,
 * and delivers stalled bytes when the test says so, even after their sender is gone.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

type Direction = 'requests' | 'answers';

class Pair {
  readonly near: Socket;
  readonly far: Socket;
  /** Stalled bytes by direction. */
  readonly held: Record<Direction, Buffer[]> = { requests: [], answers: [] };
  nearIsOver = false;

  constructor(near: Socket, far: Socket) {
    this.near = near;
    this.far = far;
  }

  reset(): void {
    for (const socket of [this.near, this.far]) {
      // Node loses a socket that is reset while its end is on the way.
      if (socket.writableEnded) socket.destroy();
      else socket.resetAndDestroy();
    }
  }
}

export class FaultProxy {
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  readonly #stalled = new Set<Direction>();
  #refuses = false;
  #answersToLose = 0;
  /** All accepted connections, including those that reached the server. */
  accepted = 0;

  private constructor(port: number) {
    this.#server = createServer((near) => {
      this.accepted++;
      near.setNoDelay(true);
      near.on('error', () => undefined);
      if (this.#refuses) {
        near.resetAndDestroy();
        return;
      }
      const pair = new Pair(near, connect({ port, host: '127.0.0.1', noDelay: true }));
      this.#pairs.add(pair);
      pair.far.on('error', () => undefined);
      near.on('data', (bytes) => this.#pass(pair, 'requests', bytes));
      pair.far.on('data', (bytes) => this.#pass(pair, 'answers', bytes));
      near.on('close', () => {
        pair.nearIsOver = true;
        if (pair.held.requests.length === 0) this.#end(pair);
      });
      pair.far.on('close', () => {
        if (!this.#stalled.has('answers')) this.#end(pair);
      });
    });
  }

  /** A proxy for `127.0.0.1:port`. */
  static async before(connectString: string): Promise<FaultProxy> {
    const proxy = new FaultProxy(Number(connectString.split(':').at(-1)));
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get connectString(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Connections that reach the server, including those that a client has left. */
  get openCount(): number {
    return this.#pairs.size;
  }

  #pass(pair: Pair, direction: Direction, bytes: Buffer): void {
    if (direction === 'answers' && this.#answersToLose > 0) {
      this.#answersToLose--;
      pair.reset();
    } else if (this.#stalled.has(direction)) {
      pair.held[direction].push(bytes);
    } else {
      (direction === 'requests' ? pair.far : pair.near).write(bytes);
    }
  }

  #end(pair: Pair): void {
    this.#pairs.delete(pair);
    pair.near.destroy();
    pair.far.destroy();
  }

  /** Breaks every connection for both sides. */
  cut(): void {
    for (const pair of this.#pairs) pair.reset();
  }

  /** Rejects new connections and cuts existing ones. */
  refuse(): void {
    this.#refuses = true;
    this.cut();
  }

  /** Stalls these directions without telling either side. */
  stall(...directions: readonly Direction[]): void {
    for (const direction of directions.length === 0 ? (['requests', 'answers'] as const) : directions) this.#stalled.add(direction);
  }

  /** The next answer breaks its connection instead of arriving. */
  loseAnswer(): void {
    this.#answersToLose++;
  }

  /** Ends all faults; stalled bytes arrive, at the server even if its client is gone. */
  heal(): void {
    this.#refuses = false;
    this.#stalled.clear();
    for (const pair of this.#pairs) {
      for (const bytes of pair.held.requests.splice(0)) pair.far.write(bytes);
      for (const bytes of pair.held.answers.splice(0)) pair.near.write(bytes);
      if (pair.nearIsOver) pair.far.end();
      else if (pair.far.destroyed) this.#end(pair);
    }
  }

  async close(): Promise<void> {
    this.#server.close();
    for (const pair of this.#pairs) this.#end(pair);
    await once(this.#server, 'close');
  }
}
