/**
 * One server of an ensemble: a process that can be started, stopped, killed and disturbed, and that
 * restarts with the same folder and ports.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { closeSync, openSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { Recording } from '@tskeeper/simulator';
import { newProcessRecord } from '@tskeeper/simulator/internal';
import { repositoryFolder } from '../../scripts/foreign-programs.js';
import { fourLetterWord } from '../../scripts/server-process.js';
import type { FaultyDisk } from './disk-faults.ts';
import { eventually, type RealClock } from './real-clock.ts';

export type ProcessRecord = Recording['processes'][number];

const entry = path.join(repositoryFolder, 'packages', 'cli', 'bin', 'tskeeper.js');

/**
 * Running processes. Each is ended by its own pid, at the latest when the process that started it
 * ends.
 */
const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

export interface RealServerOptions {
  readonly sid: number;
  readonly folder: string;
  readonly ports: { readonly client: number; readonly quorum: number; readonly election: number };
  /** All of zoo.cfg that does not follow from the fields above. */
  readonly settings: Readonly<Record<string, string | number | boolean>>;
  readonly disk: FaultyDisk;
  readonly clock: RealClock;
  readonly recording: Recording;
  /** Called when it accepts connections, and when it no longer does. */
  readonly up: () => Promise<void>;
  readonly down: () => void;
}

export type Mode = 'leader' | 'follower' | 'observer' | 'standalone';

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
  #child: ChildProcess | undefined;
  #record: ProcessRecord | undefined;
  /** The end of the last process, after it was requested. */
  #exited: Promise<unknown> | undefined;

  constructor(parts: RealServerOptions) {
    this.options = parts;
    this.name = `server-${parts.sid}`;
    this.dataDir = path.join(parts.folder, 'data');
  }

  get running(): boolean {
    return this.#child !== undefined;
  }

  /** Its address in clients' records and checkers. */
  get address(): string {
    return this.name;
  }

  async prepare(): Promise<void> {
    const { folder, sid, settings, ports } = this.options;
    await mkdir(this.dataDir, { recursive: true });
    await writeFile(path.join(this.dataDir, 'myid'), `${sid}\n`);
    const all = { dataDir: this.dataDir, clientPort: ports.client, clientPortAddress: '127.0.0.1', ...settings };
    const lines = Object.entries(all).map(([key, value]) => `${key}=${value}\n`);
    await writeFile(path.join(folder, 'zoo.cfg'), lines.join(''));
  }

  /** Concurrent calls start one process, and not before the last one has ended. */
  async start(): Promise<void> {
    await this.#exited;
    if (this.#child !== undefined) return;
    const { folder, clock, recording, disk, up } = this.options;
    const record = newProcessRecord(this.name, clock.elapsedMs);
    recording.processes.push(record);
    const log = openSync(path.join(folder, 'server.log'), 'a');
    const child = spawn(process.execPath, [entry, 'serve', path.join(folder, 'zoo.cfg')], {
      cwd: folder,
      stdio: ['ignore', log, log],
      env: { ...process.env, ...disk.environment },
    });
    closeSync(log);
    running.add(child);
    this.#child = child;
    this.#record = record;
    this.paused = false;
    child.once('exit', (code, signal) => this.#ended(child, record, code, signal));
    await up();
    void this.#recordServing(child, record);
  }

  async #recordServing(child: ChildProcess, record: ProcessRecord): Promise<void> {
    const serves = await eventually(async () => this.#child !== child || (await this.mode()) !== undefined, 60_000);
    if (serves && this.#child === child) record.servingMs = this.options.clock.elapsedMs;
  }

  #ended(child: ChildProcess, record: ProcessRecord, code: number | null, signal: string | null): void {
    running.delete(child);
    if (this.#child !== child) return;
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
    this.#child = undefined;
    this.paused = false;
    record.endedMs = this.options.clock.elapsedMs;
    this.options.down();
  }

  /** Ends the process as a crash does: it flushes and sends nothing. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    const gone = (this.#exited = once(child, 'exit'));
    this.#processEnded(this.#record!);
    this.kills++;
    child.kill('SIGKILL');
    await gone;
  }

  /** Ends the server cleanly. Returns whether it ended in time. */
  async stop(): Promise<boolean> {
    const child = this.#child;
    if (child === undefined) return true;
    const record = this.#record!;
    record.closingMs = this.options.clock.elapsedMs;
    const gone = once(child, 'exit');
    this.#exited = gone;
    this.#child = undefined;
    child.kill('SIGTERM');
    const late = setTimeout(() => child.kill('SIGKILL'), 20_000);
    const [, signal] = (await gone) as [number | null, string | null];
    clearTimeout(late);
    this.#processEnded(record);
    return signal !== 'SIGKILL';
  }

  pause(): void {
    if (this.#child === undefined || this.paused) return;
    this.paused = true;
    this.#child.kill('SIGSTOP');
  }

  resume(): void {
    if (this.#child === undefined || !this.paused) return;
    this.paused = false;
    this.#child.kill('SIGCONT');
  }

  /** The mode that it reports; undefined while it does not serve. */
  async mode(): Promise<Mode | undefined> {
    const answer = await this.fourLetterWord('srvr');
    return /^Mode: (\w+)$/m.exec(answer)?.[1] as Mode | undefined;
  }

  /** The answer to a four letter word, bypassing the proxies; empty without an answer. */
  async fourLetterWord(word: string, timeoutMs = 500): Promise<string> {
    if (this.#child === undefined || this.paused) return '';
    return fourLetterWord(this.options.ports.client, word, timeoutMs).catch(() => '');
  }

  async metric(name: string): Promise<number> {
    const line = (await this.fourLetterWord('mntr', 5000)).split('\n').find((each) => each.startsWith(`${name}\t`));
    return line === undefined ? NaN : Number(line.split('\t')[1]);
  }

  logTail(): string {
    return readFileSync(path.join(this.options.folder, 'server.log'), 'utf8').slice(-1500);
  }

  async log(): Promise<string> {
    return readFile(path.join(this.options.folder, 'server.log'), 'utf8');
  }
}
