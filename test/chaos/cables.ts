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
import { lastingPort } from '../../scripts/server-process.js';

export type Purpose = 'client' | 'quorum' | 'election';

/** One direction between two machines. */
export class Lane {
  cut = false;
  delayMs = 0;
  jitterMs = 0;
  /** Number of bytes that pass at once before a pause; 0 for any number. */
  dribbleBytes = 0;
  readonly pipes = new Set<Pipe>();

  get isSound(): boolean {
    return !this.cut && this.delayMs === 0 && this.jitterMs === 0 && this.dribbleBytes === 0;
  }

  heal(): void {
    this.cut = false;
    this.delayMs = 0;
    this.jitterMs = 0;
    this.dribbleBytes = 0;
    for (const pipe of this.pipes) pipe.pump();
  }
}

const dribbleMs = 2;
/** What a pipe holds back before it stops reading, as a socket's buffers would. */
const queueBytesMax = 1 << 20;

type Passing = { readonly bytes: Buffer; readonly dueMs: number } | { readonly end: 'end' | 'reset'; readonly dueMs: number };

/** One direction of one connection. */
class Pipe {
  readonly #lane: Lane;
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #passed: ((bytes: Buffer) => void) | undefined;
  readonly #queue: Passing[] = [];
  #queued = 0;
  #lastDueMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #isFull = false;
  #over = false;
  /** Only this connection is held. */
  held = false;
  /** Bytes that still pass before the connection is reset, often in the middle of a frame. */
  resetAfterBytes = Infinity;

  constructor(lane: Lane, from: Socket, to: Socket, passed: ((bytes: Buffer) => void) | undefined) {
    this.#lane = lane;
    this.#from = from;
    this.#to = to;
    this.#passed = passed;
    lane.pipes.add(this);
    to.on('drain', () => {
      this.#isFull = false;
      this.pump();
    });
  }

  take(bytes: Buffer): void {
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
    const { delayMs, jitterMs } = this.#lane;
    this.#lastDueMs = Math.max(this.#lastDueMs, performance.now() + delayMs + Math.random() * jitterMs);
    return this.#lastDueMs;
  }

  pump(): void {
    if (this.#timer !== undefined || this.#over) return;
    while (!this.#lane.cut && !this.held && !this.#isFull) {
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
    const { dribbleBytes } = this.#lane;
    const count = Math.min(bytes.length, dribbleBytes > 0 ? dribbleBytes : Infinity, this.resetAfterBytes);
    if (count < bytes.length) this.#queue.unshift({ bytes: bytes.subarray(count), dueMs: 0 });
    this.#queued -= count;
    this.resetAfterBytes -= count;
    const now = bytes.subarray(0, count);
    if (count > 0) {
      this.#passed?.(now);
      this.#isFull = !this.#to.write(now);
    }
    if (this.resetAfterBytes <= 0) {
      this.breakOff();
      return false;
    }
    if (this.#queued <= queueBytesMax) this.#from.resume();
    if (count === bytes.length) return true;
    this.#later(dribbleMs);
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
    else drop(this.#to);
    this.close();
  }

  /** Resets both sides at once. */
  breakOff(): void {
    drop(this.#from);
    drop(this.#to);
    this.close();
  }

  close(): void {
    this.#over = true;
    clearTimeout(this.#timer);
    this.#lane.pipes.delete(this);
  }
}

/** If a socket is reset while its end is pending, Node never emits its end. */
function drop(socket: Socket): void {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}

/** `forth` from the dialling side, and `back`. */
export interface Connection {
  readonly forth: Pipe;
  readonly back: Pipe;
}

export interface CableParts {
  readonly from: string;
  readonly to: string;
  readonly purpose: Purpose;
  readonly targetPort: number;
  readonly forth: Lane;
  readonly back: Lane;
  /** Receives everything that reaches the target, with the sender's port. */
  readonly passed?: ((senderPort: number, bytes: Buffer) => void) | undefined;
  /** Replaces the first bytes of what is sent; returns undefined while it needs more bytes. */
  readonly rewrite?: ((beginning: Buffer) => Buffer | undefined) | undefined;
}

/** The link from one machine to one port of another. */
export class Cable {
  readonly port: number;
  readonly parts: CableParts;
  readonly connections = new Set<Connection>();
  readonly #sockets = new Set<Socket>();
  /** Connections dialled while a lane was cut: none of their bytes has arrived. */
  readonly #waiting = new Set<() => void>();
  #server: Server | undefined;

  constructor(port: number, parts: CableParts) {
    this.port = port;
    this.parts = parts;
  }

  static async lay(parts: CableParts): Promise<Cable> {
    return new Cable(await lastingPort(), parts);
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
  renew(): void {
    if (this.parts.forth.cut || this.parts.back.cut) return;
    for (const go of this.#waiting) go();
    this.#waiting.clear();
  }

  close(): void {
    this.refuse();
    for (const { forth, back } of this.connections) {
      forth.close();
      back.close();
    }
    for (const socket of this.#sockets) socket.destroy();
    this.connections.clear();
    this.#waiting.clear();
  }

  #accept(near: Socket): void {
    this.#keep(near);
    const { forth, back } = this.parts;
    if (!forth.cut && !back.cut) {
      this.#join(near);
      return;
    }
    near.pause();
    const go = () => {
      near.resume();
      if (near.destroyed) this.#waiting.delete(go);
      else this.#join(near);
    };
    this.#waiting.add(go);
    near.once('close', () => this.#waiting.delete(go));
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => this.#sockets.delete(socket));
  }

  #join(near: Socket): void {
    const { targetPort, forth, back, passed, rewrite } = this.parts;
    const far = connect({ port: targetPort, host: '127.0.0.1', noDelay: true, allowHalfOpen: true });
    this.#keep(far);
    const senderPort = near.remotePort ?? 0;
    const toFar = new Pipe(forth, near, far, passed === undefined ? undefined : (bytes) => passed(senderPort, bytes));
    const toNear = new Pipe(back, far, near, undefined);
    const connection = { forth: toFar, back: toNear };
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
    far.on('data', (bytes) => toNear.take(bytes));
    near.on('data', rewrite === undefined ? (bytes) => toFar.take(bytes) : rewriting(rewrite, (bytes) => toFar.take(bytes)));
  }
}

/** Passes pieces on, with the first bytes rewritten. */
function rewriting(rewrite: (beginning: Buffer) => Buffer | undefined, take: (bytes: Buffer) => void): (bytes: Buffer) => void {
  let beginning: Buffer | undefined = Buffer.alloc(0);
  return (bytes) => {
    if (beginning === undefined) {
      take(bytes);
      return;
    }
    beginning = Buffer.concat([beginning, bytes]);
    const rewritten = rewrite(beginning);
    if (rewritten === undefined) return;
    beginning = undefined;
    take(rewritten);
  };
}

/** All links of an ensemble. */
export class Cables {
  readonly #lanes = new Map<string, Lane>();
  readonly all: Cable[] = [];

  lane(from: string, to: string): Lane {
    const key = `${from} ${to}`;
    let lane = this.#lanes.get(key);
    if (lane === undefined) this.#lanes.set(key, (lane = new Lane()));
    return lane;
  }

  async lay(
    from: string,
    to: string,
    purpose: Purpose,
    targetPort: number,
    extra: Pick<CableParts, 'passed' | 'rewrite'> = {},
  ): Promise<Cable> {
    const forth = this.lane(from, to);
    const back = this.lane(to, from);
    const cable = await Cable.lay({ from, to, purpose, targetPort, forth, back, ...extra });
    this.all.push(cable);
    return cable;
  }

  find(from: string, to: string, purpose: Purpose): Cable {
    const found = this.all.find(({ parts }) => parts.from === from && parts.to === to && parts.purpose === purpose);
    if (found === undefined) throw new Error(`no cable leads from ${from} to the ${purpose} port of ${to}`);
    return found;
  }

  async up(machine: string): Promise<void> {
    for (const cable of this.all) if (cable.parts.to === machine) await cable.open();
  }

  down(machine: string): void {
    for (const cable of this.all) if (cable.parts.to === machine) cable.refuse();
  }

  heal(lanes: Iterable<Lane> = this.#lanes.values()): void {
    for (const lane of lanes) lane.heal();
    for (const cable of this.all) cable.renew();
  }

  close(): void {
    for (const cable of this.all) cable.close();
  }
}

const headBytes = 20;

/**
 * A server that dials an election port first sends the address at which it can be dialled back (two
 * longs, a length, the text). It names its own port, which bypasses the proxies; this replaces it
 * by the port of a proxy.
 */
export function redirected(dialBackPort: number): (beginning: Buffer) => Buffer | undefined {
  return (beginning) => {
    if (beginning.length >= 1 && beginning[0]! < 0x80) return beginning;
    if (beginning.length < headBytes) return undefined;
    const end = headBytes + beginning.readInt32BE(headBytes - 4);
    if (beginning.length < end) return undefined;
    const text = Buffer.from(`127.0.0.1:${dialBackPort}`);
    const head = Buffer.from(beginning.subarray(0, headBytes));
    head.writeInt32BE(text.length, headBytes - 4);
    return Buffer.concat([head, text, beginning.subarray(end)]);
  };
}
