/**
 * The links of a real ensemble: every connection between two machines passes through this proxy, on
 * its own port for each pair and purpose, so that the proxy knows both ends. A link has two lanes,
 * one per direction, whichever side dialled; each may be cut, be slow, or pass a few bytes at a
 * time, without closing a connection. Single connections may be reset, or held and released later.
 *
 * Bytes that a cut lane holds back arrive when it heals, as TCP resends lost bytes. A server that
 * is down refuses connections: its ports are closed here as well, since servers react to a refusal.
 */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { reservePort } from './ports.ts';

/** What the servers of an ensemble dial. */
export interface PeerPorts {
  readonly quorum: number;
  readonly election: number;
}

export type Purpose = 'client' | 'quorum' | 'election';

/** One direction between two machines. */
export class LinkDirection {
  isCut = false;
  delayMs = 0;
  jitterMs = 0;
  /** Number of bytes that pass at once before a pause; 0 for any number. */
  chunkBytes = 0;
  readonly pipes = new Set<Pipe>();

  get isHealthy(): boolean {
    return !this.isCut && this.delayMs === 0 && this.jitterMs === 0 && this.chunkBytes === 0;
  }

  heal(): void {
    this.isCut = false;
    this.delayMs = 0;
    this.jitterMs = 0;
    this.chunkBytes = 0;
    for (const pipe of this.pipes) pipe.pump();
  }
}

const chunkPauseMs = 2;
/** What a pipe holds back before it stops reading, as a socket's buffers would. */
const queueBytesMax = 1 << 20;

type QueuedPiece = { readonly bytes: Buffer; readonly dueMs: number } | { readonly end: 'end' | 'reset'; readonly dueMs: number };

/** One direction of one connection. */
class Pipe {
  readonly #direction: LinkDirection;
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #onBytes: ((bytes: Buffer) => void) | undefined;
  readonly #queue: QueuedPiece[] = [];
  #queued = 0;
  #lastDueMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #isFull = false;
  #isClosed = false;
  /** Only this connection is held. */
  isHeld = false;
  /** Bytes that still pass before the connection is reset, often in the middle of a frame. */
  resetAfterBytes = Infinity;

  constructor(lane: LinkDirection, from: Socket, to: Socket, passed: ((bytes: Buffer) => void) | undefined) {
    this.#direction = lane;
    this.#from = from;
    this.#to = to;
    this.#onBytes = passed;
    lane.pipes.add(this);
    to.on('drain', () => {
      this.#isFull = false;
      this.pump();
    });
  }

  enqueue(bytes: Buffer): void {
    this.#queue.push({ bytes, dueMs: this.#due() });
    this.#queued += bytes.length;
    if (this.#queued > queueBytesMax) this.#from.pause();
    this.pump();
  }

  /** The sender has ended or broken the connection; that arrives after its bytes. */
  ended(how: 'end' | 'reset'): void {
    this.#queue.push({ end: how, dueMs: this.#due() });
    this.pump();
  }

  #due(): number {
    const { delayMs, jitterMs } = this.#direction;
    this.#lastDueMs = Math.max(this.#lastDueMs, performance.now() + delayMs + Math.random() * jitterMs);
    return this.#lastDueMs;
  }

  pump(): void {
    if (this.#timer !== undefined || this.#isClosed) return;
    while (!this.#direction.isCut && !this.isHeld && !this.#isFull) {
      const next = this.#queue[0];
      if (next === undefined) return;
      const waitMs = next.dueMs - performance.now();
      if (waitMs > 0) {
        this.#later(waitMs);
        return;
      }
      this.#queue.shift();
      if ('end' in next) {
        this.#finish(next.end);
        return;
      }
      if (!this.#pass(next.bytes)) return;
    }
  }

  /** Returns whether more may follow at once. */
  #pass(bytes: Buffer): boolean {
    const { chunkBytes } = this.#direction;
    const count = Math.min(bytes.length, chunkBytes > 0 ? chunkBytes : Infinity, this.resetAfterBytes);
    if (count < bytes.length) this.#queue.unshift({ bytes: bytes.subarray(count), dueMs: 0 });
    this.#queued -= count;
    this.resetAfterBytes -= count;
    const now = bytes.subarray(0, count);
    if (count > 0) {
      this.#onBytes?.(now);
      this.#isFull = !this.#to.write(now);
    }
    if (this.resetAfterBytes <= 0) {
      this.reset();
      return false;
    }
    if (this.#queued <= queueBytesMax) this.#from.resume();
    if (count === bytes.length) return true;
    this.#later(chunkPauseMs);
    return false;
  }

  #later(ms: number): void {
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.pump();
    }, ms);
  }

  #finish(how: 'end' | 'reset'): void {
    if (how === 'end') this.#to.end();
    else resetSocket(this.#to);
    this.close();
  }

  /** Resets both sides at once. */
  reset(): void {
    resetSocket(this.#from);
    resetSocket(this.#to);
    this.close();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#direction.pipes.delete(this);
  }
}

/** If a socket is reset while its end is pending, Node never emits its end. */
function resetSocket(socket: Socket): void {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}

/** `forward` carries bytes from the dialling side, `backward` bytes to it. */
export interface ProxiedCnxn {
  readonly forward: Pipe;
  readonly backward: Pipe;
}

export interface ProxyOptions {
  readonly from: string;
  readonly to: string;
  readonly purpose: Purpose;
  readonly targetPort: number;
  readonly forward: LinkDirection;
  readonly backward: LinkDirection;
  /** Receives everything that reaches the target, with the sender's port. */
  readonly onBytes?: ((senderPort: number, bytes: Buffer) => void) | undefined;
  /** Replaces the first bytes of what is sent; returns undefined while it needs more bytes. */
  readonly rewrite?: ((firstBytes: Buffer) => Buffer | undefined) | undefined;
}

/** The link from one machine to one port of another. */
export class Proxy {
  readonly port: number;
  readonly options: ProxyOptions;
  readonly connections = new Set<ProxiedCnxn>();
  readonly #sockets = new Set<Socket>();
  /** Connections dialled while a lane was cut: none of their bytes has arrived. */
  readonly #pendingDials = new Set<() => void>();
  #server: Server | undefined;

  constructor(port: number, parts: ProxyOptions) {
    this.port = port;
    this.options = parts;
  }

  static async create(parts: ProxyOptions): Promise<Proxy> {
    return new Proxy(await reservePort(), parts);
  }

  /** Accepts connections: the target runs. */
  async open(): Promise<void> {
    if (this.#server !== undefined) return;
    const server = (this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (near) => this.#accept(near)));
    server.listen(this.port, '127.0.0.1');
    await once(server, 'listening');
  }

  /** Refuses connections: the target is down. Existing connections stay. */
  refuse(): void {
    this.#server?.close();
    this.#server = undefined;
  }

  /** Both lanes may have healed: connects pending connections. */
  resumeDials(): void {
    if (this.options.forward.isCut || this.options.backward.isCut) return;
    for (const go of this.#pendingDials) go();
    this.#pendingDials.clear();
  }

  close(): void {
    this.refuse();
    for (const { forward, backward } of this.connections) {
      forward.close();
      backward.close();
    }
    for (const socket of this.#sockets) socket.destroy();
    this.connections.clear();
    this.#pendingDials.clear();
  }

  #accept(near: Socket): void {
    this.#track(near);
    const { forward, backward } = this.options;
    if (!forward.isCut && !backward.isCut) {
      this.#connectThrough(near);
      return;
    }
    near.pause();
    const go = () => {
      near.resume();
      if (near.destroyed) this.#pendingDials.delete(go);
      else this.#connectThrough(near);
    };
    this.#pendingDials.add(go);
    near.once('close', () => this.#pendingDials.delete(go));
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => this.#sockets.delete(socket));
  }

  #connectThrough(near: Socket): void {
    const { targetPort, forward, backward, onBytes, rewrite } = this.options;
    const far = connect({ port: targetPort, host: '127.0.0.1', noDelay: true, allowHalfOpen: true });
    this.#track(far);
    const senderPort = near.remotePort ?? 0;
    const toFar = new Pipe(forward, near, far, onBytes === undefined ? undefined : (bytes) => onBytes(senderPort, bytes));
    const toNear = new Pipe(backward, far, near, undefined);
    const connection = { forward: toFar, backward: toNear };
    this.connections.add(connection);
    let open = 2;
    for (const [from, pipe] of [[near, toFar] as const, [far, toNear] as const]) {
      let hasEnded = false;
      let hasFailed = false;
      from.on('end', () => {
        hasEnded = true;
        pipe.ended('end');
      });
      from.on('error', () => {
        hasFailed = true;
      });
      from.on('close', () => {
        if (hasFailed || !hasEnded) pipe.ended('reset');
        if (--open === 0) this.connections.delete(connection);
      });
    }
    far.on('data', (bytes) => toNear.enqueue(bytes));
    near.on('data', rewrite === undefined ? (bytes) => toFar.enqueue(bytes) : rewriting(rewrite, (bytes) => toFar.enqueue(bytes)));
  }
}

/** Passes pieces on, with the first bytes rewritten. */
function rewriting(rewrite: (firstBytes: Buffer) => Buffer | undefined, take: (bytes: Buffer) => void): (bytes: Buffer) => void {
  let firstBytes: Buffer | undefined = Buffer.alloc(0);
  return (bytes) => {
    if (firstBytes === undefined) {
      take(bytes);
      return;
    }
    firstBytes = Buffer.concat([firstBytes, bytes]);
    const rewritten = rewrite(firstBytes);
    if (rewritten === undefined) return;
    firstBytes = undefined;
    take(rewritten);
  };
}

/** All links of an ensemble. */
export class ProxyNetwork {
  readonly #directions = new Map<string, LinkDirection>();
  readonly all: Proxy[] = [];

  direction(from: string, to: string): LinkDirection {
    const key = `${from} ${to}`;
    let lane = this.#directions.get(key);
    if (lane === undefined) this.#directions.set(key, (lane = new LinkDirection()));
    return lane;
  }

  async add(
    from: string,
    to: string,
    purpose: Purpose,
    targetPort: number,
    extra: Pick<ProxyOptions, 'onBytes' | 'rewrite'> = {},
  ): Promise<Proxy> {
    const forward = this.direction(from, to);
    const backward = this.direction(to, from);
    const proxy = await Proxy.create({ from, to, purpose, targetPort, forward, backward, ...extra });
    this.all.push(proxy);
    return proxy;
  }

  /**
   * Adds the proxies of both ports between every two of these servers. The address at which a server
   * asks to be dialled back is replaced by that of a proxy.
   */
  async addServers(servers: readonly { readonly name: string; readonly ports: PeerPorts }[]): Promise<void> {
    for (const { name: from } of servers) {
      for (const { name: to, ports } of servers) {
        if (from === to) continue;
        await this.add(from, to, 'quorum', ports.quorum);
        // The proxy of the way back may not exist yet; it is looked up at the first connection.
        const rewrite = (firstBytes: Buffer) => redirectDialBack(this.find(to, from, 'election').port)(firstBytes);
        await this.add(from, to, 'election', ports.election, { rewrite });
      }
    }
  }

  /** The ports at which `from` reaches `to`. */
  serverPorts(from: string, to: string): PeerPorts {
    return { quorum: this.find(from, to, 'quorum').port, election: this.find(from, to, 'election').port };
  }

  find(from: string, to: string, purpose: Purpose): Proxy {
    const found = this.all.find(({ options }) => options.from === from && options.to === to && options.purpose === purpose);
    if (found === undefined) throw new Error(`no proxy leads from ${from} to the ${purpose} port of ${to}`);
    return found;
  }

  async accept(machine: string): Promise<void> {
    for (const proxy of this.all) if (proxy.options.to === machine) await proxy.open();
  }

  refuse(machine: string): void {
    for (const proxy of this.all) if (proxy.options.to === machine) proxy.refuse();
  }

  heal(lanes: Iterable<LinkDirection> = this.#directions.values()): void {
    for (const lane of lanes) lane.heal();
    for (const proxy of this.all) proxy.resumeDials();
  }

  close(): void {
    for (const proxy of this.all) proxy.close();
  }
}

const headBytes = 20;

/**
 * A server that dials an election port first sends the address at which it can be dialled back (two
 * longs, a length, the text). It names its own port, which bypasses the proxies; this replaces it
 * by the port of a proxy.
 */
export function redirectDialBack(dialBackPort: number): (firstBytes: Buffer) => Buffer | undefined {
  return (firstBytes) => {
    if (firstBytes.length >= 1 && firstBytes[0]! < 0x80) return firstBytes;
    if (firstBytes.length < headBytes) return undefined;
    const end = headBytes + firstBytes.readInt32BE(headBytes - 4);
    if (firstBytes.length < end) return undefined;
    const text = Buffer.from(`127.0.0.1:${dialBackPort}`);
    const head = Buffer.from(firstBytes.subarray(0, headBytes));
    head.writeInt32BE(text.length, headBytes - 4);
    return Buffer.concat([head, text, firstBytes.subarray(end)]);
  };
}
