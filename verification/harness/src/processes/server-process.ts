/**
 * Runs a ZooKeeper server, ours or Apache's, as a real process behind one interface: configuration
 * in, a server that answers out.
 *
 * A server counts as started when it reports its mode for the four letter word `srvr`, not after a
 * fixed time. Every started process is ended by its own pid, at the latest when the process that
 * started it ends.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, open, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ensureForeignPrograms, repositoryFolder } from '../../../../scripts/foreign-programs.js';
import { lostWakeupPorts } from '../wire/raw-client.ts';
import { fourLetterWord } from './four-letter-word.ts';
import { freePort } from './ports.ts';
import { eventually } from './until.ts';

export type ServerKind = 'ours' | 'java-3.9.5' | 'java-3.8.0' | 'java-3.5.10';
export type ServerMode = 'leader' | 'follower' | 'observer' | 'standalone';
export type Settings = Readonly<Record<string, string | number | boolean>>;

/** What every start of a server needs besides its folder and port. */
export interface ServerSettings {
  /**
   * Keys of zoo.cfg, in addition to the defaults of `launchServer`. With its own clientPort a server
   * has the same port in each life.
   */
  readonly config?: Settings;
  /** Java system properties; our server takes them as -D options. */
  readonly properties?: Settings;
  /** The JVM's heap, as for -Xmx. */
  readonly heap?: string;
  /** For ZooKeeper: further options of the JVM. */
  readonly jvmArguments?: readonly string[];
  /**
   * For our server: arguments before the program on node's command line, such as
   * --max-old-space-size=64.
   */
  readonly nodeArguments?: readonly string[];
  /** For our server: the program and its arguments before the file name of zoo.cfg. */
  readonly command?: readonly string[];
  /** The limit of open files, as `ulimit -n` sets it. */
  readonly openFilesMax?: number;
  /** Variables in addition to those of this process. */
  readonly environment?: Readonly<Record<string, string>>;
}

export interface ServerOptions extends ServerSettings, Readiness {
  readonly kind: ServerKind;
  /** Contains zoo.cfg, server.log and, unless `dataDir` is set, data/. */
  readonly folder: string;
  readonly dataDir?: string;
  /**
   * zoo.cfg elsewhere, which the server may rewrite: it is written only if it does not exist. Default:
   * a new one in `folder`.
   */
  readonly configFile?: string;
}

/** Interval between two checks of a starting server, which costs a connection each. */
const pollMs = 25;
/** How much of a server's output a failure shows. */
const evidenceCharacters = 3000;

/** Running processes. Invariant: contains every child started here until it has exited. */
const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  // A signal skips 'exit' handlers, so it is turned into an ordinary exit.
  process.once(signal, () => process.exit(signal === 'SIGINT' ? 130 : 143));
}

/** When a started server counts as ready. */
export interface Readiness {
  /** Default: 60 s. */
  readonly timeoutMs?: number;
  readonly everyMs?: number;
  /** Default: it reports its mode. */
  readonly isReady?: () => Promise<boolean>;
}

export interface ServerExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export class ServerProcess {
  readonly kind: ServerKind;
  readonly dataDir: string;
  /** When the process was started, as `performance.now()`. */
  readonly startedMs = performance.now();
  readonly exited: Promise<ServerExit>;
  readonly #child: ChildProcess;
  readonly #logFile: string;
  #port: number;

  constructor(kind: ServerKind, port: number, dataDir: string, child: ChildProcess, logFile: string) {
    this.kind = kind;
    this.dataDir = dataDir;
    this.#port = port;
    recordForgetfulness(kind, port);
    this.#child = child;
    this.#logFile = logFile;
    running.add(child);
    this.exited = once(child, 'exit').then(([code, signal]): ServerExit => {
      running.delete(child);
      return { code, signal };
    });
  }

  /** Of its clients. */
  get port(): number {
    return this.#port;
  }

  get connectString(): string {
    return `127.0.0.1:${this.#port}`;
  }

  /** A reconfiguration has moved it. */
  movedTo(port: number): void {
    this.#port = port;
    recordForgetfulness(this.kind, port);
  }

  get pid(): number {
    return this.#child.pid!;
  }

  get alive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Its output so far, standard output and error. */
  log(): Promise<string> {
    return readFile(this.#logFile, 'utf8');
  }

  fourLetterWord(word: string, timeoutMs?: number): Promise<string> {
    return fourLetterWord(this.#port, word, timeoutMs);
  }

  /** The mode and the last zxid that it reports; undefined while it does not serve. */
  async status(timeoutMs?: number): Promise<{ readonly mode: ServerMode; readonly zxid: string } | undefined> {
    // A server that loses its leader aborts pending requests.
    const answer = await this.fourLetterWord('srvr', timeoutMs).catch(() => '');
    const mode = /^Mode: (\w+)$/m.exec(answer)?.[1] as ServerMode | undefined;
    return mode === undefined ? undefined : { mode, zxid: /^Zxid: (\w+)$/m.exec(answer)?.[1] ?? '' };
  }

  /** The value of one line of mntr; NaN if there is none. */
  async metric(name: string): Promise<number> {
    const answer = await this.fourLetterWord('mntr').catch(() => '');
    return Number(new RegExp(`^${name}\\t(.*)$`, 'm').exec(answer)?.[1] ?? NaN);
  }

  /** Megabytes in memory now, and at most so far. */
  async memory(): Promise<{ readonly rssMb: number; readonly peakRssMb: number }> {
    const status = await readFile(`/proc/${this.pid}/status`, 'utf8').catch(() => '');
    const megabytes = (key: string): number => Math.round(Number(new RegExp(`^${key}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0) / 1024);
    return { rssMb: megabytes('VmRSS'), peakRssMb: megabytes('VmHWM') };
  }

  /** Waits until it serves; a server that does not in time is killed. */
  async untilReady({ timeoutMs = 60_000, everyMs = pollMs, isReady }: Readiness = {}): Promise<void> {
    const serves = isReady ?? (async () => (await this.status()) !== undefined);
    if (await eventually(async () => !this.alive || (await serves()), timeoutMs, everyMs)) {
      if (this.alive) return;
      throw new Error(`${this.kind} ended while starting:\n${await this.#lastOutput()}`);
    }
    await this.kill();
    throw new Error(`${this.kind} does not serve on port ${this.port} after ${timeoutMs} ms:\n${await this.#lastOutput()}`);
  }

  async #lastOutput(): Promise<string> {
    return (await this.log()).slice(-evidenceCharacters);
  }

  /**
   * Ends the server cleanly with SIGTERM, and with SIGKILL if it does not end in time. Resolves with
   * whether it ended in time.
   */
  async stop(timeoutMs = 20_000): Promise<boolean> {
    this.#child.kill('SIGTERM');
    const timeout = new AbortController();
    const late = delay(timeoutMs, undefined, { signal: timeout.signal, ref: false }).catch(() => undefined);
    await Promise.race([this.exited, late]);
    timeout.abort();
    const heeded = !this.alive;
    if (!heeded) await this.kill();
    return heeded;
  }

  /** Stops the process, which keeps its connections, until `resume`. */
  pause(): void {
    this.#child.kill('SIGSTOP');
    const endsMs = performance.now() + stoppedMsMax;
    while (!hasStopped(this.#child.pid!) && performance.now() < endsMs);
  }

  resume(): void {
    this.#child.kill('SIGCONT');
  }

  /** Ends the process as a crash does: it flushes and sends nothing. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.exited;
  }
}

/** A thread that waits for its disk stops only after that. */
const stoppedMsMax = 5000;

/** The threads of a process stop one after the other, and may still read and write until then. */
function hasStopped(pid: number): boolean {
  try {
    const states = readdirSync(`/proc/${pid}/task`).map((task) => readFileSync(`/proc/${pid}/task/${task}/stat`, 'latin1'));
    return states.every((stat) => /\) [TtXZ] /.test(stat));
  } catch {
    // A thread has ended meanwhile; or the process has, or this system has no such files.
    return !existsSync(`/proc/${pid}/task`);
  }
}

/**
 * Starts a process whose files are in `folder` (zoo.cfg, server.log, and data/ unless `dataDir` is
 * set), without waiting for an answer: one server of an ensemble cannot serve before the others
 * run.
 */
export async function launchServer(options: ServerOptions, port: number): Promise<ServerProcess> {
  const { kind, folder, config = {}, environment = {} } = options;
  const dataDir = options.dataDir ?? path.join(folder, 'data');
  await mkdir(dataDir, { recursive: true });
  const configFile = options.configFile ?? path.join(folder, 'zoo.cfg');
  const logFile = path.join(folder, 'server.log');
  const settings: Settings = {
    tickTime: 2000,
    clientPort: port,
    clientPortAddress: '127.0.0.1',
    dataDir,
    maxClientCnxns: 0,
    'admin.enableServer': false,
    '4lw.commands.whitelist': '*',
    ...config,
  };
  const lines = Object.entries(settings).map(([key, value]) => `${key}=${value}\n`);
  // A kept file has been rewritten by a reconfiguration, and wins.
  await writeFile(configFile, lines.join(''), { flag: options.configFile === undefined ? 'w' : 'wx' }).catch(ignoreExisting);
  const [command, ...args] = limited(await commandOf(kind, configFile, options), options.openFilesMax);
  const log = await open(logFile, 'a');
  const child = spawn(command!, args, { cwd: folder, stdio: ['ignore', log.fd, log.fd], env: { ...process.env, ...environment } });
  const server = new ServerProcess(kind, port, dataDir, child, logFile);
  await log.close();
  return server;
}

function recordForgetfulness(kind: ServerKind, port: number): void {
  if (kind === 'java-3.8.0') lostWakeupPorts.add(port);
  else lostWakeupPorts.delete(port);
}

function ignoreExisting(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error;
}

/** Starts a server and waits until it answers `srvr`. See `launchServer` for its files. */
export async function startServer(options: ServerOptions): Promise<ServerProcess> {
  const { config = {} } = options;
  // Another process may take a free port before the server binds it; only then try again.
  for (let attempt = 1; ; attempt++) {
    const server = await launchServer(options, Number(config['clientPort'] ?? (await freePort())));
    try {
      await server.untilReady(options);
      return server;
    } catch (error) {
      if (attempt === 3 || !/address already in use|EADDRINUSE/i.test(String(error))) throw error;
    }
  }
}

async function commandOf(kind: ServerKind, configFile: string, settings: ServerSettings): Promise<readonly string[]> {
  const { properties = {}, heap = '512m', nodeArguments = [], jvmArguments = [], command } = settings;
  const definitions = Object.entries(properties).map(([name, value]) => `-D${name}=${value}`);
  if (kind === 'ours') {
    const entry = path.join(repositoryFolder, 'packages', 'cli', 'bin', 'tskeeper.js');
    return [...(command ?? [process.execPath, ...nodeArguments, entry, 'serve']), configFile, ...definitions];
  }
  const name = `zookeeper-${kind.slice('java-'.length)}` as 'zookeeper-3.9.5';
  const { [name]: program } = await ensureForeignPrograms([name]);
  if (!program.installed) throw new Error(`${name} is not installed: ${program.reason}`);
  const options = [`-Xmx${heap}`, ...jvmArguments, '-cp', program.classpath, ...definitions];
  return ['java', ...options, 'org.apache.zookeeper.server.quorum.QuorumPeerMain', configFile];
}

function limited(command: readonly string[], openFilesMax: number | undefined): readonly string[] {
  if (openFilesMax === undefined) return command;
  // The server replaces the shell, so that its pid is the server's.
  return ['sh', '-c', `ulimit -n ${openFilesMax}; exec "$@"`, 'sh', ...command];
}
