import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Inspect } from '@tskeeper/core';
import type { SessionId } from '@tskeeper/protocol';
import { type Clock, type Logger, MemoryDisk, startRuntime } from '@tskeeper/runtime';
import type { Server } from '@tskeeper/server';
import { FsDisk, startServerWith } from '@tskeeper/server/internal';
import { Activity } from './activity.ts';
import { ProcessDisk } from './process-disk.ts';
import { inRealTime, ProcessClock, TestClock } from './test-clock.ts';
import { TroubledNetwork } from './troubled-network.ts';

/** What a test wants of its server. */
export interface TestServerOptions {
  /**
   * - `'memory'`, the default: nothing touches the disk; what was acknowledged survives `restart`, and is gone after `close`.
   * - `'folder'`: a temporary folder, removed by `close`.
   * - `{ dataDir }`: a folder of yours, which stays.
   */
  readonly storage?: 'memory' | 'folder' | { readonly dataDir: string };
  /** The port on 127.0.0.1; any free one unless given. It stays the same over `restart`. */
  readonly port?: number;
  /**
   * Settings as in zoo.cfg: `{ tickTime: 200, 'jute.maxbuffer': 4_000_000 }`. Default: a tick is 2000 ms, so that clients get session
   * timeouts between 4 and 40 seconds. Every four letter word is answered unless `4lw.commands.whitelist` says otherwise.
   */
  readonly config?: Readonly<Record<string, string | number | boolean>>;
  /** Hears what the server logs. Default: nobody does. */
  readonly logger?: Logger;
}

/** What the server's memory is called by its own log. */
const memoryFolder = '/memory';
const tickTimeMsDefault = 2000;

/**
 * A ZooKeeper server for one test: a real one, in this process, reached over TCP by any client.
 *
 * Start it with `await using server = await TestServer.start()`, or call `close` in your own teardown. Each server has a port and data of
 * its own, so tests can run side by side.
 */
export class TestServer implements AsyncDisposable {
  readonly #options: TestServerOptions;
  readonly #disk: MemoryDisk | undefined;
  readonly #dataDir: string;
  readonly #activity = new Activity();
  readonly #clock: TestClock;
  #server: Server | undefined;
  #network: TroubledNetwork | undefined;
  #port: number;
  #isClosed = false;

  private constructor(options: TestServerOptions, disk: MemoryDisk | undefined, dataDir: string) {
    this.#options = options;
    this.#disk = disk;
    this.#dataDir = dataDir;
    this.#port = options.port ?? 0;
    this.#clock = new TestClock(this.#activity, Number(options.config?.['tickTime']) || tickTimeMsDefault);
  }

  /** Resolves when clients can connect. Rejects with one sentence when a port, a folder or a setting cannot be used. */
  static async start(options: TestServerOptions = {}): Promise<TestServer> {
    const { storage = 'memory' } = options;
    const inMemory = storage === 'memory';
    let dataDir = memoryFolder;
    if (storage === 'folder') dataDir = await mkdtemp(join(tmpdir(), 'tskeeper-'));
    else if (!inMemory) dataDir = storage.dataDir;
    const server = new TestServer(options, inMemory ? new MemoryDisk() : undefined, dataDir);
    try {
      await server.start();
    } catch (error) {
      await server.close();
      throw error;
    }
    return server;
  }

  /** What a client connects to: `127.0.0.1:40123`. The same while the server is stopped, and after it has started again. */
  get connectString(): string {
    return `127.0.0.1:${this.#port}`;
  }

  /** On 127.0.0.1. The same over `restart`. */
  get port(): number {
    return this.#port;
  }

  /** Whether it serves: false between `stop` and `start`, and after `close`. */
  get isRunning(): boolean {
    return this.#server !== undefined;
  }

  /** What the server knows of itself: sessions, connections, watches, znodes, zxids. Throws while it is stopped. */
  get inspect(): Inspect {
    return this.#running.inspect;
  }

  /** Starts a server that was stopped, on the same port, with the data it had. Rejects when the port is taken by then, or the folder cannot be used. */
  async start(): Promise<void> {
    if (this.#isClosed) throw new Error('this server has been closed; start another with TestServer.start()');
    if (this.#server !== undefined) throw new Error('this server is running already');
    const defaults = { '4lw.commands.whitelist': '*', tickTime: tickTimeMsDefault };
    const lines = Object.entries({ ...defaults, ...this.#options.config }).map(([key, value]) => `${key}=${value}`);
    const config = { name: 'the config of this TestServer', text: lines.join('\n') };
    const options = { dataDir: this.#dataDir, clientPort: this.#port, clientAddress: '127.0.0.1', logger: this.#options.logger };
    const network = (real: ConstructorParameters<typeof TroubledNetwork>[0]): TroubledNetwork =>
      (this.#network = new TroubledNetwork(real));
    const disk = new ProcessDisk(this.#disk ?? new FsDisk(), this.#activity);
    this.#server = await startServerWith(startRuntime, options, {
      disk,
      network,
      clock: new ProcessClock(this.#clock),
      memory: inRealTime,
      config,
    });
    this.#port = Number(this.#server.connectString.split(':').at(-1));
  }

  /**
   * Stops serving: connections end, and new ones are refused until `start`. Sessions live on, and have their full timeout again when the
   * server is back. A partition
   * is over. Does nothing when it is stopped already. Rejects when the server fails in ending.
   */
  async stop(): Promise<void> {
    const server = this.#server;
    const network = this.#network;
    this.#server = undefined;
    this.#network = undefined;
    // A server that is cut off would wait for clients to take their last answers.
    network?.heal();
    await server?.close();
  }

  /** `stop` and `start`. Rejects as they do. */
  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  /**
   * Ends a session as if nothing had been heard of its client for too long: its ephemeral znodes go, and the client learns that it has
   * expired. Resolves when that has happened on the server, with false when there was no such session. Throws while it
   * is stopped, and rejects when it ends before.
   */
  expireSession(session: SessionId): Promise<boolean> {
    return this.#running.expireSession(session);
  }

  /** Cuts the connection of a session, or of all; returns how many there were. Sessions live on, and clients may connect again at once. */
  cutConnections(session?: SessionId): number {
    if (session === undefined) return this.#troubled.cut();
    const streams = [...this.inspect.cnxns()].filter((cnxn) => cnxn.session === session).map(({ id }) => id);
    return this.#troubled.cut(streams);
  }

  /**
   * Cuts the server off: until the result is disposed of, no byte gets through in either direction, and nobody is told. Connections stay
   * open and new ones are accepted, as by a machine that stands still; its own clock goes on, so that sessions expire.
   *
   * `{ using silence = server.partition(); ... }`, or call the result's `[Symbol.dispose]()`.
   */
  partition(): Disposable {
    const heal = this.#troubled.silence();
    return { [Symbol.dispose]: heal };
  }

  /**
   * The server's time. Hand it to a client (`connect(server.connectString, { clock: server.clock })`) and it passes for the client as well, which then
   * keeps its session alive over `advance`.
   */
  get clock(): Clock {
    return this.#clock;
  }

  /**
   * Lets so many ms pass for the server, without waiting for them: sessions expire whose clients have been silent for long enough, containers and
   * TTL znodes are looked at. Resolves when what follows from it has happened. Rejects with a RangeError for what is no span of time.
   *
   * Time that has not really passed has not passed for clients: unless they were given `clock`, a session is gone after more than its timeout.
   */
  advance(ms: number): Promise<void> {
    return this.#clock.advance(ms);
  }

  /** Stops for good, and removes a temporary folder. Rejects when the server fails in ending, or the folder cannot be removed. */
  async close(): Promise<void> {
    this.#isClosed = true;
    try {
      await this.stop();
    } finally {
      await this.#activity.close();
      if (this.#options.storage === 'folder') await rm(this.#dataDir, { recursive: true, force: true });
    }
  }

  /** As `close`, for `await using`. Rejects as that does. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  get #running(): Server {
    if (this.#server === undefined) throw new Error('this server is stopped');
    return this.#server;
  }

  get #troubled(): TroubledNetwork {
    if (this.#network === undefined) throw new Error('this server is stopped');
    return this.#network;
  }
}
