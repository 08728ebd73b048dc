/**
 * A machine with a disk, a network and a clock, all virtual and all decided by one seed, on which the production server lives: it is
 * started, paused, stopped, killed and robbed of its power, any number of times.
 */
import { crc32 } from 'node:zlib';
import { type CoreOptions, coreDefaults } from '@tskeeper/core';
import { type Millis, Reader, readTxn } from '@tskeeper/protocol';
import {
  type CrashChoice,
  type DiskCall,
  type Logger,
  type MemoryProbe,
  MemoryDisk,
  numberedFiles,
  readLog,
  runtimeDefaults,
  type RuntimeOptions,
  SeededRandom,
  type SnappyCodec,
} from '@tskeeper/runtime';
import { VirtualWire } from '@tskeeper/runtime/internal';
import { newRecording, type ProcessRecord, type Recording } from './recording.ts';
import { ServerProcess } from './server-process.ts';
import { VirtualClock } from './virtual-clock.ts';

export const serverPort = 2181;
/** A hundred times what a story takes. */
const eventsMax = 200_000;
export const folder = '/data/version-2';

export interface WorldOptions {
  readonly core?: Partial<CoreOptions>;
  readonly options?: Partial<RuntimeOptions>;
  readonly snappy?: SnappyCodec;
  /** What there is of memory. */
  readonly memory?: MemoryProbe;
}

export class VirtualWorld {
  readonly random: SeededRandom;
  readonly clock: VirtualClock;
  readonly disk = new MemoryDisk();
  readonly wire: VirtualWire;
  readonly core: CoreOptions;
  readonly options: RuntimeOptions;
  readonly recording: Recording;
  /** What servers told their operator. */
  readonly lines: string[] = [];
  server: ServerProcess | undefined;
  /** How long the disk takes for a call. */
  diskDelayMs: (call: DiskCall) => Millis = () => 0;
  /** The server has said that it cannot go on. */
  onFailure: (error: unknown) => void = () => undefined;
  /** Over everything that has happened, in order. */
  trace = 0;
  eventCount = 0;
  readonly #snappy: SnappyCodec | undefined;
  readonly #memory: MemoryProbe | undefined;
  readonly #numbers = Buffer.alloc(12);
  #lives = 0;

  constructor(seed: number, { core, options, snappy, memory }: WorldOptions = {}) {
    this.random = new SeededRandom(seed);
    this.clock = new VirtualClock(new SeededRandom(this.random.uint32()));
    this.wire = new VirtualWire(this.clock);
    this.core = { ...coreDefaults, tickTimeMs: 200, minSessionTimeoutMs: 400, maxSessionTimeoutMs: 4000, ...core };
    this.options = {
      ...runtimeDefaults,
      dataDir: '/data',
      dataLogDir: '/data',
      clientPort: serverPort,
      preAllocSizeBytes: 4096,
      purgeIntervalMs: 0,
      ...options,
    };
    this.recording = newRecording(
      this.core.tickTimeMs,
      this.core.requestThrottleLimit > 0,
      this.core.globalOutstandingLimit < coreDefaults.globalOutstandingLimit,
    );
    this.#snappy = snappy;
    this.#memory = memory;
    this.clock.onRun = (what, elapsedMs) => {
      this.eventCount++;
      // A world that does so much has stopped getting anywhere.
      if (this.eventCount > eventsMax) throw new Error(`still busy after ${eventsMax} events, at ${elapsedMs} with ${what}`);
      this.#numbers.writeDoubleLE(elapsedMs, 0);
      this.note(this.#numbers);
      this.trace = crc32(what, this.trace);
    };
    this.disk.deliver = (call, complete) => {
      this.clock.at(this.clock.elapsedMs + this.diskDelayMs(call), call.operation, this.server, complete);
    };
  }

  note(bytes: Uint8Array): void {
    this.trace = crc32(bytes, this.trace);
  }

  // --- The server's life

  /** Turns the server on. It serves when `serving` says so. */
  boot(): ServerProcess {
    const record: ProcessRecord = {
      startedMs: this.clock.elapsedMs,
      servingMs: undefined,
      failedMs: undefined,
      failure: '',
      sentAfterFailure: 0,
      closingMs: undefined,
      endedMs: undefined,
    };
    this.recording.processes.push(record);
    this.#lives++;
    const log = (level: string) => (message: string) => {
      this.lines.push(`${level} ${message}`);
    };
    const logger: Logger = { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') };
    this.server = new ServerProcess({
      clock: this.clock,
      disk: this.disk.attach(),
      network: this.wire.stack(`10.0.${this.#lives >> 8}.${this.#lives & 255}`),
      random: new SeededRandom(this.random.uint32()),
      core: this.core,
      options: this.options,
      logger,
      snappy: this.#snappy,
      memory: this.#memory,
      record,
      arrived: (cnxn, atMs) => {
        const known = this.recording.arrivals.get(cnxn);
        if (known === undefined) this.recording.arrivals.set(cnxn, [atMs]);
        else known.push(atMs);
      },
      isBlocked: (network, stream) => {
        for (const { backward } of this.wire.cnxns) {
          if (backward.from.stack === network && backward.from.stream === stream) return backward.isBlocked;
        }
        return false;
      },
      failed: (error) => this.onFailure(error),
    });
    return this.server;
  }

  /** Boots and waits until it serves; throws what the operator would be told when it does not. */
  async start(): Promise<ServerProcess> {
    const server = this.boot();
    await this.until(server.started, 120_000);
    const error = await server.started;
    if (error !== undefined) throw error;
    return server;
  }

  /** As an operator ends it. */
  async stop(): Promise<void> {
    const { server } = this;
    if (server?.runtime === undefined) return;
    await this.until(server.close(), 120_000);
    // What was sent at the end has left the process by now, and reaches clients before the machine tells them that it is gone.
    await this.run(5);
    this.#bury();
  }

  /** The process ends without warning; what it has written stays in the page cache. */
  kill(): void {
    this.#bury();
    this.disk.kill();
  }

  /** The machine goes dark; of what was not synced, `choice` says what survives. */
  losePower(choice: CrashChoice): void {
    this.#bury();
    this.disk.crash(choice);
  }

  #bury(): void {
    this.server?.end();
    this.server = undefined;
  }

  // --- Time

  /** Lets so much time pass. */
  async run(ms: Millis): Promise<void> {
    const end = this.clock.elapsedMs + ms;
    while (this.clock.step(end) !== undefined) await drained();
  }

  /** Lets time pass until it is so; returns whether it ever was. */
  async runUntil(isSo: () => boolean, atMostMs: Millis): Promise<boolean> {
    const end = this.clock.elapsedMs + atMostMs;
    await drained();
    while (!isSo()) {
      if (this.clock.step(end) === undefined) return isSo();
      await drained();
    }
    return true;
  }

  /**
   * Lets time pass until a promise of the server is kept. When nothing is left to happen in here, it can only be waiting for work that is
   * done outside of the world (zlib has threads of its own), and so do we. A run that must be repeatable has no such work.
   */
  async until<T>(promise: Promise<T>, atMostMs: Millis): Promise<T> {
    const end = this.clock.elapsedMs + atMostMs;
    const progress = { done: false };
    const note = () => {
      progress.done = true;
    };
    const settled = promise.then(note, note);
    for (await drained(); !progress.done; await drained()) {
      if (this.clock.isEmpty) await Promise.race([settled, this.clock.nextEntry()]);
      else if (this.clock.step(end) === undefined) {
        throw new Error(
          `still not done after ${atMostMs} ms of virtual time; the server's last words: ${this.lines.slice(-3).join(' / ')}`,
        );
      }
    }
    return await promise;
  }

  // --- Evidence

  /** Reads the log as the last process left it. */
  async readLog(): Promise<void> {
    const { disk, recording } = this;
    const reading = new MemoryDisk(disk.capture());
    for (const { name } of numberedFiles(await reading.list(folder), 'log')) {
      const file = await reading.open(`${folder}/${name}`, 'existing');
      const end = await readLog(file, 4_000_000, (_zxid, bytes, start, stop) => {
        // A copy, since what is kept are views into it.
        const logged = readTxn(new Reader(Buffer.from(bytes.subarray(start, stop))));
        recording.log.push({ atMs: this.clock.elapsedOf(logged.header.time), logged });
      });
      if (end.reason !== 'end of file' && end.reason !== 'padding') recording.faults.push(`${name} ends with ${end.reason}`);
    }
    recording.endedMs = this.clock.elapsedMs;
  }
}

/** Lets promises that were kept have their effect, all of them and all that follow from them. */
function drained(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
