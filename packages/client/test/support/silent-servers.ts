/**
 * Servers that open every session and answer every ping, and answer requests unless they are
 * silent. The test advances time, and requests are answered in the same turn.
 */
import { FrameDecoder, OpCode, type Reader, readRequestHeader, type Stat, writeStat, Xid } from '@tskeeper/protocol';
import { ManualClock, SeededRandom } from '@tskeeper/runtime';
import {
  type Client,
  type Clock,
  connect,
  type ConnectOptions,
  type ServerAddress,
  type Transport,
  type TransportCnxn,
  type TransportSink,
} from '../../src/index.ts';
import { connectResponse, pong, reply } from './server-frames.ts';

export const someStat: Stat = {
  czxid: 1,
  mzxid: 1,
  ctime: 0,
  mtime: 0,
  version: 5,
  cversion: 0,
  aversion: 0,
  ephemeralOwner: 0n,
  dataLength: 0,
  numChildren: 0,
  pzxid: 1,
};

/** The server side of one connection. */
export class ServedCnxn implements TransportCnxn {
  readonly server: string;
  readonly sink: TransportSink;
  /** The received requests by name, without pings. */
  readonly asked: string[] = [];
  over = false;
  ended = false;
  readonly #servers: SilentServers;
  readonly #cutter = new FrameDecoder(1 << 20);
  #isGreeted = false;

  constructor(servers: SilentServers, server: string, sink: TransportSink) {
    this.#servers = servers;
    this.server = server;
    this.sink = sink;
  }

  send(bytes: Uint8Array): void {
    if (this.over) throw new Error('the client sent on a connection that it had closed');
    const buffer = Buffer.from(bytes);
    this.#cutter.feed(buffer, 0, buffer.length, (reader) => this.#heard(reader));
  }

  end(): void {
    this.over = this.ended = true;
  }

  destroy(): void {
    this.over = true;
  }

  #heard(reader: Reader): boolean {
    if (!this.#isGreeted) {
      this.#isGreeted = true;
      this.#answer(connectResponse({ timeoutMs: this.#servers.sessionTimeoutMs }));
      return true;
    }
    const { xid, type } = readRequestHeader(reader);
    if (xid === Xid.ping) {
      this.#answer(pong);
      return true;
    }
    this.asked.push(names.get(type) ?? String(type));
    if (this.#servers.silent.has(this.server) || this.#servers.mute.has(type)) return true;
    if (type === OpCode.addWatch) {
      this.#answer(reply(xid, 1, 0, (writer) => writer.int32(0)));
      return true;
    }
    const hasStat = type === OpCode.exists || type === OpCode.setData;
    this.#answer(reply(xid, 1, 0, (writer) => hasStat && writeStat(writer, someStat)));
    return true;
  }

  #answer(frame: Buffer): void {
    // From the event loop, never during a call to the transport.
    this.#servers.clock.after(0, () => {
      if (!this.over) this.sink.received(Buffer.from(frame));
    });
  }
}

const names = new Map<number, string>(Object.entries(OpCode).map(([name, code]) => [code, name]));

export class SilentServers implements Transport {
  readonly clock = new ManualClock();
  readonly sessionTimeoutMs: number;
  readonly cnxns: ServedCnxn[] = [];
  /** Servers that answer only pings. */
  readonly silent = new Set<string>();
  /** Kinds of requests that no server answers. */
  readonly mute = new Set<number>();

  /** No server can be reached. */
  isDown = false;

  constructor(sessionTimeoutMs = 9000) {
    this.sessionTimeoutMs = sessionTimeoutMs;
  }

  connect({ host }: ServerAddress, sink: TransportSink): TransportCnxn {
    const cnxn = new ServedCnxn(this, host, sink);
    this.cnxns.push(cnxn);
    // An unanswered attempt lasts until its client cancels it.
    const tryToOpen = () => {
      if (cnxn.over) return;
      if (this.isDown) this.clock.after(10, tryToOpen);
      else sink.connected();
    };
    this.clock.after(0, tryToOpen);
    return cnxn;
  }

  get latest(): ServedCnxn {
    return this.cnxns.at(-1)!;
  }

  /** The late answer to a sync. */
  answerSync(sink: TransportSink, xid: number): void {
    sink.received(reply(xid, 1, 0, (writer) => writer.ustring('/')));
  }

  /** A late answer without a record. */
  answer(sink: TransportSink, xid: number): void {
    sink.received(reply(xid, 1));
  }

  /**
   * The clock of the client's process: timers that are due while it is paused fire when it resumes,
   * before all input.
   */
  readonly #processClock: Clock = {
    now: () => this.clock.now(),
    after: (delayMs, callback) =>
      this.clock.after(delayMs, () => {
        if (this.#due === undefined) callback();
        else this.#due.push(callback);
      }),
    cancel: (timer) => this.clock.cancel(timer),
  };
  #due: (() => void)[] | undefined;

  standStill(ms: number): void {
    this.#due = [];
    this.clock.advance(ms);
    const due = this.#due;
    this.#due = undefined;
    for (const callback of due) callback();
  }

  client(options: ConnectOptions = {}): Promise<Client> {
    const { sessionTimeoutMs } = this;
    const clock = this.#processClock;
    return this.until(connect('one,two', { transport: this, clock, random: new SeededRandom(1), sessionTimeoutMs, ...options }));
  }

  /** Advances time in small steps, with everything that happens meanwhile. */
  async pass(ms: number, stepMs = 10): Promise<void> {
    for (let left = ms; left > 0; left -= stepMs) {
      this.clock.advance(Math.min(left, stepMs));
      await turn();
    }
  }

  /** Advances time until the promise settles. */
  async until<Result>(promise: Promise<Result>, atMostMs = 60_000): Promise<Result> {
    const progress = { isSettled: false };
    const note = () => {
      progress.isSettled = true;
    };
    promise.then(note, note);
    await turn();
    for (let ms = 0; !progress.isSettled; ms += 10) {
      if (ms > atMostMs) throw new Error(`not settled within ${atMostMs} ms`);
      await this.pass(10);
    }
    return promise;
  }

  get nowMs(): number {
    return this.clock.now().elapsedMs;
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
