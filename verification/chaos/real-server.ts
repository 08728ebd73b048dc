/**
 * One server of an ensemble: a process that can be started, stopped, killed and disturbed, and that
 * restarts with the same folder and ports.
 */
import { readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import {
  eventually,
  type FaultyDisk,
  launchServer,
  type ServerExit,
  type ServerMode,
  type ServerProcess,
  type Settings,
} from '@tskeeper/harness';
import type { Recording } from '@tskeeper/simulator';
import { newProcessRecord } from '@tskeeper/simulator/internal';
import type { RealClock } from './real-clock.ts';

export type ProcessRecord = Recording['processes'][number];

/** A server that cannot answer four letter words now must not delay the faults. */
const statusTimeoutMs = 500;

export interface RealServerOptions {
  readonly sid: number;
  readonly folder: string;
  readonly ports: { readonly client: number; readonly quorum: number; readonly election: number };
  /** All of zoo.cfg that does not follow from the fields above. */
  readonly settings: Settings;
  readonly disk: FaultyDisk;
  readonly clock: RealClock;
  readonly recording: Recording;
  /** Called when it accepts connections, and when it no longer does. */
  readonly up: () => Promise<void>;
  readonly down: () => void;
}

export class RealServer {
  readonly name: string;
  readonly options: RealServerOptions;
  readonly dataDir: string;
  /**
   * How often a disk fault was started and not known to be over: it may end by itself, and may not
   * start.
   */
  injectedDiskFaults = 0;
  paused = false;
  /** Unexpected ends. */
  unexpectedExits = 0;
  kills = 0;
  #process: ServerProcess | undefined;
  #record: ProcessRecord | undefined;
  /** The end of the last process, after it was requested. */
  #exited: Promise<unknown> | undefined;
  #starting: Promise<void> | undefined;

  constructor(parts: RealServerOptions) {
    this.options = parts;
    this.name = `server-${parts.sid}`;
    this.dataDir = path.join(parts.folder, 'data');
  }

  get running(): boolean {
    return this.#process !== undefined;
  }

  /** Its address in clients' records and checkers. */
  get address(): string {
    return this.name;
  }

  async prepare(): Promise<void> {
    await mkdir(this.dataDir, { recursive: true });
    await writeFile(path.join(this.dataDir, 'myid'), `${this.options.sid}\n`);
  }

  /** Concurrent calls start one process, and not before the last one has ended. */
  start(): Promise<void> {
    this.#starting ??= this.#start().finally(() => (this.#starting = undefined));
    return this.#starting;
  }

  async #start(): Promise<void> {
    await this.#exited;
    if (this.#process !== undefined) return;
    const { folder, clock, recording, disk, up, settings, ports } = this.options;
    const record = newProcessRecord(this.name, clock.elapsedMs);
    recording.processes.push(record);
    const server = await launchServer({ kind: 'ours', folder, config: settings, environment: disk.environment }, ports.client);
    this.#process = server;
    this.#record = record;
    this.paused = false;
    void server.exited.then((exit) => this.#ended(server, record, exit));
    await up();
    void this.#recordServing(server, record);
  }

  async #recordServing(server: ServerProcess, record: ProcessRecord): Promise<void> {
    const serves = await eventually(async () => this.#process !== server || (await this.mode()) !== undefined, 60_000);
    if (serves && this.#process === server) record.servingMs = this.options.clock.elapsedMs;
  }

  #ended(server: ServerProcess, record: ProcessRecord, { code, signal }: ServerExit): void {
    if (this.#process !== server) return;
    const { clock, recording } = this.options;
    // An unexpected end: a requested one forgets the process first.
    this.#processEnded(record);
    this.unexpectedExits++;
    record.failedMs = clock.elapsedMs;
    record.failure = `it ended by itself with ${code ?? signal}`;
    recording.annotations.push({ atMs: clock.elapsedMs, text: `${this.name} has ended by itself with ${code ?? signal}` });
    if (this.injectedDiskFaults === 0)
      recording.violations.push(`${this.name} has ended by itself with ${code ?? signal}: ${this.logTail()}`);
  }

  #processEnded(record: ProcessRecord): void {
    this.#process = undefined;
    this.paused = false;
    record.endedMs = this.options.clock.elapsedMs;
    this.options.down();
  }

  /** Ends the process as a crash does: it flushes and sends nothing. */
  async kill(): Promise<void> {
    await this.#starting;
    const server = this.#process;
    if (server === undefined) return;
    this.#exited = server.exited;
    this.#processEnded(this.#record!);
    this.kills++;
    await server.kill();
  }

  /** Ends the server cleanly. Returns whether it ended in time. */
  async stop(): Promise<boolean> {
    await this.#starting;
    const server = this.#process;
    if (server === undefined) return true;
    const record = this.#record!;
    record.closingMs = this.options.clock.elapsedMs;
    this.#exited = server.exited;
    this.#process = undefined;
    const isInTime = await server.stop();
    this.#processEnded(record);
    return isInTime;
  }

  pause(): void {
    if (this.#process === undefined || this.paused) return;
    this.paused = true;
    this.#process.pause();
  }

  resume(): void {
    if (this.#process === undefined || !this.paused) return;
    this.paused = false;
    this.#process.resume();
  }

  /** The mode that it reports, bypassing the proxies; undefined while it does not serve. */
  async mode(): Promise<ServerMode | undefined> {
    if (this.#process === undefined || this.paused) return undefined;
    return (await this.#process.status(statusTimeoutMs))?.mode;
  }

  /** The answer to a four letter word; empty without an answer. */
  async ask(word: string, timeoutMs: number): Promise<string> {
    if (this.#process === undefined || this.paused) return '';
    return this.#process.fourLetterWord(word, timeoutMs).catch(() => '');
  }

  async metric(name: string): Promise<number> {
    return this.#process === undefined || this.paused ? NaN : this.#process.metric(name);
  }

  logTail(): string {
    return readFileSync(path.join(this.options.folder, 'server.log'), 'utf8').slice(-1500);
  }
}
