import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Inspector } from '@tskeeper/core';
import type { SessionId } from '@tskeeper/protocol';
import { type Clock, type Logger, VirtualDisk, startRuntime } from '@tskeeper/runtime';
import type { Server } from '@tskeeper/server';
import { FsDisk, startServerWith } from '@tskeeper/server/internal';
import { ActivityTracker } from './activity-tracker.ts';
import { ProcessDisk } from './process-disk.ts';
import { throttleProbe, ProcessClock, TestClock } from './test-clock.ts';
import { FaultyNetwork } from './faulty-network.ts';

/** Options of a TestServer. */
export interface TestServerOptions {
  /**
   * - `'memory'`, the default: nothing is written to disk; acknowledged writes survive `restart`,
   *   and are gone after `close`.
   * - `'folder'`: a temporary folder, removed by `close`.
   * - `{ dataDir }`: a folder of yours, which stays.
   */
  readonly storage?: 'memory' | 'folder' | { readonly dataDir: string };
  /** The port on 127.0.0.1. Default: any free port. It stays the same after `restart`. */
  readonly port?: number;
  /**
   * Settings of zoo.cfg: `{ tickTime: 200, 'jute.maxbuffer': 4_000_000 }`. Default: a tick of 2000
   * ms, so that clients get session timeouts between 4 and 40 seconds. Every four letter word is
   * answered unless `4lw.commands.whitelist` says otherwise.
   */
  readonly config?: Readonly<Record<string, string | number | boolean>>;
  /** Receives the log lines of the server. Default: none. */
  readonly logger?: Logger;
}

/** Name of the in-memory data folder in the server's log. */
const serverMemoryFolder = '/memory';
const serverTickTimeMsDefault = 2000;

/**
 * A ZooKeeper server for one test: a real server, in this process, reachable over TCP by any
 * client.
 *
 * Start it with `await using server = await TestServer.start()`, or call `close` in your own
 * teardown. Each server has its own port and data, so tests can run side by side.
 */
export class TestServer implements AsyncDisposable {
  readonly #options: TestServerOptions;
  readonly #disk: VirtualDisk | undefined;
  readonly #dataDir: string;
  readonly #activity = new ActivityTracker();
  readonly #clock: TestClock;
  #server: Server | undefined;
  #network: FaultyNetwork | undefined;
  #port: number;
  #isClosed = false;

  private constructor(options: TestServerOptions, disk: VirtualDisk | undefined, dataDir: string) {
    this.#options = options;
    this.#disk = disk;
    this.#dataDir = dataDir;
    this.#port = options.port ?? 0;
    this.#clock = new TestClock(this.#activity, Number(options.config?.['tickTime']) || serverTickTimeMsDefault);
  }

  /**
   * Resolves when clients can connect. Rejects with one sentence if a port, a folder or a setting
   * cannot be used.
   */
  static async start(options: TestServerOptions = {}): Promise<TestServer> {
    const { storage = 'memory' } = options;
    const inMemory = storage === 'memory';
    let dataDir = serverMemoryFolder;
    if (storage === 'folder') dataDir = await mkdtemp(join(tmpdir(), 'tskeeper-'));
    else if (!inMemory) dataDir = storage.dataDir;
    const server = new TestServer(options, inMemory ? new VirtualDisk() : undefined, dataDir);
    try {
      await server.start();
    } catch (error) {
      await server.close();
      throw error;
    }
    return server;
  }

  /**
   * Connect string for clients: `127.0.0.1:40123`. It stays the same while the server is stopped,
   * and after a restart.
   */
  get connectString(): string {
    return `127.0.0.1:${this.#port}`;
  }

  /** Port on 127.0.0.1. It stays the same after `restart`. */
  get port(): number {
    return this.#port;
  }

  /** Whether the server serves clients: false between `stop` and `start`, and after `close`. */
  get isRunning(): boolean {
    return this.#server !== undefined;
  }

  /**
   * State of the server: sessions, connections, watches, znodes, zxids. Throws while it is stopped.
   */
  get inspect(): Inspector {
    return this.#running.inspect;
  }

  /**
   * Starts a stopped server, on the same port, with its data. Rejects if the port is in use by
   * then, or the folder cannot be used.
   */
  async start(): Promise<void> {
    if (this.#isClosed) throw new Error('this server is closed; start another one with TestServer.start()');
    if (this.#server !== undefined) throw new Error('this server is already running');
    const defaults = { '4lw.commands.whitelist': '*', tickTime: serverTickTimeMsDefault };
    const lines = Object.entries({ ...defaults, ...this.#options.config }).map(([key, value]) => `${key}=${value}`);
    const config = { name: 'the config of this TestServer', text: lines.join('\n') };
    const options = { dataDir: this.#dataDir, clientPort: this.#port, clientAddress: '127.0.0.1', logger: this.#options.logger };
    const network = (real: ConstructorParameters<typeof FaultyNetwork>[0]): FaultyNetwork => (this.#network = new FaultyNetwork(real));
    const disk = new ProcessDisk(this.#disk ?? new FsDisk(), this.#activity);
    this.#server = await startServerWith(startRuntime, options, {
      disk,
      network,
      clock: new ProcessClock(this.#clock),
      memory: throttleProbe,
      config,
    });
    this.#port = Number(this.#server.connectString.split(':').at(-1));
  }

  /**
   * Stops the server: connections are closed, and new ones are refused until `start`. Sessions live
   * on, and get their full timeout again when the server is back. A partition ends. Does nothing if
   * the server is already stopped. Rejects if the server fails while it closes.
   */
  async stop(): Promise<void> {
    const server = this.#server;
    const network = this.#network;
    this.#server = undefined;
    this.#network = undefined;
    // A server that is cut off would wait until clients have received their last replies.
    network?.heal();
    await server?.close();
  }

  /** `stop` and `start`. Rejects as they do. */
  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  /**
   * Expires a session as if its client had been silent for too long: its ephemeral znodes are
   * deleted, and the client learns that the session has expired. Resolves with true when that has
   * happened on the server, with false if the session did not exist. Throws while the server is
   * stopped, and rejects if the server ends before.
   */
  expireSession(session: SessionId): Promise<boolean> {
    return this.#running.expireSession(session);
  }

  /**
   * Closes the connection of a session, or all client connections; returns how many there were.
   * Sessions live on, and clients may connect again at once.
   */
  cutConnections(session?: SessionId): number {
    if (session === undefined) return this.#faultyNetwork.cut();
    const streams = [...this.inspect.cnxns()].filter((cnxn) => cnxn.session === session).map(({ id }) => id);
    return this.#faultyNetwork.cut(streams);
  }

  /**
   * Cuts the server off: until the result is disposed of, no byte passes in either direction, and
   * no connection is closed. New connections are accepted, as by a machine that is paused; the
   * server's own clock continues, so sessions expire.
   *
   * `{ using silence = server.partition(); ... }`, or call the result's `[Symbol.dispose]()`.
   */
  partition(): Disposable {
    const heal = this.#faultyNetwork.partition();
    return { [Symbol.dispose]: heal };
  }

  /**
   * The server's clock. Pass it to a client (`connect(server.connectString, { clock: server.clock
   * })`) to let `advance` apply to the client as well: it then keeps its session alive.
   */
  get clock(): Clock {
    return this.#clock;
  }

  /**
   * Advances the server's clock by this many ms without waiting for them: sessions of silent
   * clients expire, and container and TTL znodes are checked. Resolves when everything that follows
   * has happened. Rejects with a RangeError for an invalid time.
   *
   * Clients without `clock` do not see the added time: after more than its timeout, their session
   * has expired.
   */
  advance(ms: number): Promise<void> {
    return this.#clock.advance(ms);
  }

  /**
   * Stops for good, and removes a temporary folder. Rejects if the server fails while it closes, or
   * the folder cannot be removed.
   */
  async close(): Promise<void> {
    this.#isClosed = true;
    try {
      await this.stop();
    } finally {
      await this.#activity.close();
      if (this.#options.storage === 'folder') await rm(this.#dataDir, { recursive: true, force: true });
    }
  }

  /** The same as `close`, for `await using`, and rejects as that does. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  get #running(): Server {
    if (this.#server === undefined) throw new Error('this server is stopped');
    return this.#server;
  }

  get #faultyNetwork(): FaultyNetwork {
    if (this.#network === undefined) throw new Error('this server is stopped');
    return this.#network;
  }
}
