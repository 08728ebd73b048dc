/**
 * Servers that open every session and answer every ping, and answer requests only if they are not silent. Time is moved by hand, and what a client sends is answered in
 * the same turn.
 */
import { FrameCutter, OpCode, type Reader, readRequestHeader, type Stat, writeStat, Xid } from '@tskeeper/protocol';
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

/** One connection, as its server has it. */
export class ServedCnxn implements TransportCnxn {
  readonly server: string;
  readonly sink: TransportSink;
  /** What was asked, by name. Pings are not listed. */
  readonly asked: string[] = [];
  over = false;
  ended = false;
  readonly #servers: SilentServers;
  readonly #cutter = new FrameCutter(1 << 20);
  #isGreeted = false;

  constructor(servers: SilentServers, server: string, sink: TransportSink) {
    this.#servers = servers;
    this.server = server;
    this.sink = sink;
  }

  send(bytes: Uint8Array): void {
    if (this.over) throw new Error('the client sent on a connection it had given up');
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
    // From the loop, never from inside a call on the transport.
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
  /** Servers that answer pings only. */
  readonly silent = new Set<string>();
  /** Kinds of requests that no server answers. */
  readonly mute = new Set<number>();

  /** Nobody is reached. */
  isDown = false;

  constructor(sessionTimeoutMs = 9000) {
    this.sessionTimeoutMs = sessionTimeoutMs;
  }

  connect({ host }: ServerAddress, sink: TransportSink): TransportCnxn {
    const cnxn = new ServedCnxn(this, host, sink);
    this.cnxns.push(cnxn);
    // An attempt that nobody answers lasts until its client gives it up.
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

  /** The clock of the process of the client: what comes due while that stands still fires when it goes on, ahead of all input. */
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

  /** Lets so much time pass, in small steps, with everything that happens meanwhile. */
  async pass(ms: number, stepMs = 10): Promise<void> {
    for (let left = ms; left > 0; left -= stepMs) {
      this.clock.advance(Math.min(left, stepMs));
      await turn();
    }
  }

  /** Lets time pass until the promise is settled. */
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
