/**
 * The cables of a real ensemble: every connection between two machines goes through this proxy, over a port of its own for each pair and
 * purpose, so that it is known who speaks to whom. A cable has two lanes, one for each direction, whoever dialled; each may be cut, be
 * slow, or pass a few bytes at a time, while nobody is told. Single connections may be reset, or held and let go later.
 *
 * What a cut lane holds back arrives when it heals, as TCP sends again what was lost. A server that is down refuses: its ports are closed
 * here as well, since servers conclude something from a refusal.
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
  /** Bytes that pass at once, and the pause behind them; 0 for any number. */
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
  /** This connection alone is held. */
  held = false;
  /** So many more bytes pass, and then the connection is reset, in the midst of a frame as likely as not. */
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

  /** The sender has ended or broken the connection; that arrives behind what it sent. */
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

  /** A reset for both sides, at once. */
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

/** Node loses a socket that is reset while its end is on the way, and then never comes to its own end. */
function drop(socket: Socket): void {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}

/** Forth from who dialled, and back. */
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
  /** Told of everything that reaches the target, with the port its sender has dialled from. */
  readonly passed?: ((senderPort: number, bytes: Buffer) => void) | undefined;
  /** Makes something else of the beginning of what is sent; undefined as long as more is needed to say. */
  readonly rewrite?: ((beginning: Buffer) => Buffer | undefined) | undefined;
}

/** The way from one machine to one port of another. */
export class Cable {
  readonly port: number;
  readonly parts: CableParts;
  readonly connections = new Set<Connection>();
  readonly #sockets = new Set<Socket>();
  /** Dialled while a lane was cut: nothing of them has arrived. */
  readonly #waiting = new Set<() => void>();
  #server: Server | undefined;

  constructor(port: number, parts: CableParts) {
    this.port = port;
    this.parts = parts;
  }

  static async lay(parts: CableParts): Promise<Cable> {
    return new Cable(await lastingPort(), parts);
  }

  /** There is somebody at the other end. */
  async open(): Promise<void> {
    if (this.#server !== undefined) return;
    const server = (this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (near) => this.#accept(near)));
    server.listen(this.port, '127.0.0.1');
    await once(server, 'listening');
  }

  /** There is nobody: who dials is refused. Connections that are there stay. */
  refuse(): void {
    this.#server?.close();
    this.#server = undefined;
  }

  /** Both lanes may have healed: those who dialled meanwhile get through. */
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

/** Takes pieces and passes them on, the beginning rewritten. */
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

/** All cables of an ensemble. */
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
 * Who dials an election port says first at which address it can be dialled back (two longs, a length, the text). It names its own port,
 * which leads past the cables; here it is given the way that has one.
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
