/**
 * Our server and the real client in one virtual world: time, randomness, disk and network are
 * simulated, everything else is real. The server can be killed and restarted on its disk, the
 * network can be cut, stalled and observed, and hours take no time.
 */
import { coreDefaults, type CoreOptions } from '@tskeeper/core';
import { ManualClock, VirtualDisk, runtimeDefaults, SeededRandom, silentLogger, startRuntime, type Clock } from '@tskeeper/runtime';
import { type VirtualNetwork, type VirtualCnxn, VirtualWire } from '@tskeeper/runtime/internal';
import { type Client, connect, type ConnectOptions } from '../../src/index.ts';
import { WireTransport } from './wire-transport.ts';

const port = 2181;
/** Turns of the event loop after which everything that needs no time has settled. */
const passes = 12;

/** One run of a server. */
interface Life {
  dead: boolean;
  readonly network: VirtualNetwork;
  close(): Promise<void>;
}

export class ClientWorld {
  readonly clock = new ManualClock(1_000_000);
  readonly wire = new VirtualWire(this.clock);
  readonly disk = new VirtualDisk();
  readonly #core: Partial<CoreOptions>;
  #lives = 0;
  #clients = 0;
  #life: Life | undefined;

  private constructor(core: Partial<CoreOptions>) {
    this.#core = core;
  }

  static async start(core: Partial<CoreOptions> = {}): Promise<ClientWorld> {
    const world = new ClientWorld(core);
    await world.boot();
    return world;
  }

  /**
   * Starts the server on the current disk, at an address of its own. The name `server` resolves to
   * it.
   */
  async boot(): Promise<void> {
    const network = this.wire.stack(`10.0.0.${++this.#lives}`);
    const life: Life = { dead: false, network, close: () => Promise.resolve() };
    const clock: Clock = {
      now: () => this.clock.now(),
      cancel: (timer) => this.clock.cancel(timer),
      after: (delayMs, callback) => this.clock.after(delayMs, () => !life.dead && callback()),
      setImmediate: (callback) => this.clock.setImmediate(() => !life.dead && callback()),
    };
    const runtime = await this.until(
      startRuntime(
        { disk: this.disk.attach(), network, clock, random: new SeededRandom(this.#lives) },
        {
          ...coreDefaults,
          tickTimeMs: 1000,
          minSessionTimeoutMs: 2000,
          maxSessionTimeoutMs: 60_000,
          extendedTypesEnabled: true,
          ...this.#core,
        },
        { ...runtimeDefaults, dataDir: '/data', dataLogDir: '/data', clientPort: port, preAllocSizeBytes: 4096, purgeIntervalMs: 0 },
        {
          logger: silentLogger,
          snappy: undefined,
          host: { version: 'virtual', environment: () => [], openFileDescriptors: () => undefined, maxFileDescriptors: () => undefined },
          failed: (error) => {
            throw error;
          },
        },
      ),
    );
    life.close = () => runtime.close();
    this.#life = life;
    this.wire.name('server', [network.address]);
    await this.settle();
  }

  /** The numeric address of the running server. */
  get address(): string {
    return this.#life!.network.address;
  }

  /** The server is gone at once; what it acknowledged is on its disk. */
  kill(): void {
    const life = this.#life!;
    life.dead = true;
    this.#life = undefined;
    const { network } = life;
    network.start({
      accepted: (stream) => network.reset(stream),
      connected() {},
      received() {},
      drained() {},
      ended() {},
      closed() {},
    });
    for (const { forward } of this.wire.cnxns) if (forward.to.stack === network) network.reset(forward.to.stream);
    this.disk.kill();
    this.wire.name('server', []);
  }

  async close(): Promise<void> {
    if (this.#life !== undefined) await this.until(this.#life.close());
  }

  /** Number of clients with options of this world: 10.1.0.1 is the address of the first. */
  get clients(): number {
    return this.#clients;
  }

  /** The options of a client of this world; each client has its own address. */
  options(options: ConnectOptions = {}): ConnectOptions {
    const network = this.wire.stack(`10.1.0.${++this.#clients}`);
    return {
      sessionTimeoutMs: 10_000,
      transport: new WireTransport(network),
      clock: this.clock,
      random: new SeededRandom(100 + this.#clients),
      ...options,
    };
  }

  /** A client with a session. */
  connect(options: ConnectOptions = {}, chroot = ''): Promise<Client> {
    return this.until(connect(`server:${port}${chroot}`, this.options(options)));
  }

  // --- Time

  /** Runs until everything waits for time. */
  async settle(): Promise<void> {
    for (let pass = 0; pass < passes; pass++) {
      await turn();
      this.clock.advance(0);
    }
    await turn();
  }

  async pass(ms: number, stepMs = 100): Promise<void> {
    for (let left = ms; left > 0; left -= stepMs) {
      this.clock.advance(Math.min(left, stepMs));
      await this.settle();
    }
  }

  /** Advances time until the promise settles. */
  async until<T>(promise: Promise<T>, atMostMs = 120_000): Promise<T> {
    const progress = { done: false };
    const note = () => {
      progress.done = true;
    };
    promise.then(note, note);
    for (let left = atMostMs; ; left -= 50) {
      await this.settle();
      if (progress.done) return promise;
      if (left <= 0) throw new Error(`still not settled after ${atMostMs} ms of virtual time`);
      this.clock.advance(50);
    }
  }

  /** Advances time until `isSo` is true. */
  async untilSo(isSo: () => boolean, atMostMs = 120_000): Promise<void> {
    for (let left = atMostMs; ; left -= 50) {
      await this.settle();
      if (isSo()) return;
      if (left <= 0) throw new Error(`still not so after ${atMostMs} ms of virtual time`);
      this.clock.advance(50);
    }
  }

  // --- The network

  /** The newest open connection. */
  get cnxn(): VirtualCnxn {
    const open = [...this.wire.cnxns].filter(({ forward }) => !forward.from.isClosed && !forward.to.isClosed);
    if (open.length === 0) throw new Error('no client is connected');
    return open.at(-1)!;
  }

  /** Breaks a connection for both sides. */
  break(cnxn: VirtualCnxn = this.cnxn): void {
    const { forward } = cnxn;
    forward.from.stack.breakStream(forward.from, 'ECONNRESET');
    forward.to.stack.breakStream(forward.to, 'ECONNRESET');
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
