/**
 * Runs a ZooKeeper server, ours or Apache's, as a real process behind one interface: configuration
 * in, a server that answers out.
 *
 * Comparisons of servers (interop, bench, tests) differ only in the kind they name here. A server
 * counts as started when it reports its mode for the four letter word `srvr`, not after a fixed
 * time. Every started process is ended by its own pid, at the latest when the process that started
 * it ends.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open, readFile, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

import { ensureForeignPrograms, repositoryFolder } from './foreign-programs.js';

/**
 * Time between two checks of a starting server. Short compared with a JVM's start, long compared
 * with a connect.
 */
const pollMs = 25;

/** Running processes. Invariant: contains every child started here until it has exited. */
const running = new Set();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM']) {
  // A signal skips 'exit' handlers, so it is turned into an ordinary exit.
  process.once(signal, () => process.exit(signal === 'SIGINT' ? 130 : 143));
}

/** A port on which no process listens at this moment. */
export async function freePort() {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

const lowestReservedPort = 10_000;
const reservePortTries = 200;
const reservedPorts = new Set();

/**
 * Where the system's range of ports for outgoing connections begins; Linux's default if the system
 * does not say.
 */
async function firstOutgoingPort() {
  const range = await readFile('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').catch(() => '32768');
  return Number(range.split(/\s+/)[0]);
}

function isFree(port) {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

/**
 * A port for a server that restarts on it: free at this moment, given to no other caller in this
 * process, and outside of the range from which outgoing connections on the machine may take it
 * while the server is down.
 */
export async function reservePort() {
  const above = Math.max(lowestReservedPort + 1000, await firstOutgoingPort());
  for (let tries = 0; tries < reservePortTries; tries++) {
    const port = lowestReservedPort + Math.floor(Math.random() * (above - lowestReservedPort));
    if (reservedPorts.has(port) || !(await isFree(port))) continue;
    reservedPorts.add(port);
    return port;
  }
  throw new Error(`none of ${reservePortTries} ports between ${lowestReservedPort} and ${above} is free`);
}

/** Sends a four letter word and resolves with the whole answer; rejects without an answer. */
export function fourLetterWord(port, word, timeoutMs = 5000) {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    /** @type {Buffer[]} */
    const chunks = [];
    socket.setTimeout(timeoutMs, () =>
      socket.destroy(new Error(`timed out after ${timeoutMs} ms waiting for the answer to ${word} from port ${port}`)),
    );
    socket.on('connect', () => socket.write(word));
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('end', () => resolve(Buffer.concat(chunks).toString('utf8')));
    socket.on('error', reject);
    socket.on('close', () => resolve(Buffer.concat(chunks).toString('utf8')));
  });
}

/**
 * The command line of a kind of server. `properties` are Java system properties, which our server
 * takes as -D options.
 */
async function commandOf(kind, configFile, { properties = {}, heap = '512m', nodeArguments = [], jvmArguments = [], openFilesMax }) {
  const definitions = Object.entries(properties).map(([name, value]) => `-D${name}=${value}`);
  if (kind === 'ours') {
    const entry = path.join(repositoryFolder, 'packages', 'cli', 'bin', 'tskeeper.js');
    const ours = [process.execPath, ...nodeArguments, entry, 'serve', configFile, ...definitions];
    return limited(ours, openFilesMax);
  }
  const name = `zookeeper-${kind.slice('java-'.length)}`;
  const { [name]: peer } = await ensureForeignPrograms([name]);
  if (!peer.installed) throw new Error(`${name} is not installed: ${peer.reason}`);
  const options = [`-Xmx${heap}`, ...jvmArguments, '-cp', peer.classpath, ...definitions];
  return limited(['java', ...options, 'org.apache.zookeeper.server.quorum.QuorumPeerMain', configFile], openFilesMax);
}

function limited([command, ...args], openFilesMax) {
  if (openFilesMax === undefined) return [command, args];
  // The server replaces the shell, so that its pid is the server's.
  return ['sh', ['-c', `ulimit -n ${openFilesMax}; exec "$@"`, 'sh', command, ...args]];
}

class ServerProcess {
  #child;
  #logFile;

  constructor(kind, port, dataDir, child, logFile) {
    this.kind = kind;
    this.port = port;
    this.dataDir = dataDir;
    this.connectString = `127.0.0.1:${port}`;
    this.#child = child;
    this.#logFile = logFile;
    this.exited = once(child, 'exit').then(([code, signal]) => {
      running.delete(child);
      return { code, signal };
    });
  }

  get pid() {
    return this.#child.pid;
  }

  get alive() {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Its output so far, standard output and error. */
  log() {
    return readFile(this.#logFile, 'utf8');
  }

  fourLetterWord(word) {
    return fourLetterWord(this.port, word);
  }

  async untilReady(timeoutMs) {
    const deadline = Date.now() + timeoutMs;
    while (Date.now() < deadline) {
      if (!this.alive) throw new Error(`${this.kind} ended while starting:\n${(await this.log()).slice(-3000)}`);
      const answer = await this.fourLetterWord('srvr').catch(() => '');
      if (/^Mode: /m.test(answer)) return;
      await delay(pollMs);
    }
    await this.kill();
    throw new Error(`${this.kind} did not answer srvr on port ${this.port} within ${timeoutMs} ms:\n${(await this.log()).slice(-3000)}`);
  }

  /** Ends the server cleanly with SIGTERM, and with SIGKILL if it does not end in time. */
  async stop(timeoutMs = 20_000) {
    this.#child.kill('SIGTERM');
    const timeout = new AbortController();
    const late = delay(timeoutMs, undefined, { signal: timeout.signal, ref: false }).catch(() => {});
    await Promise.race([this.exited, late]);
    timeout.abort();
    const heeded = !this.alive;
    if (!heeded) await this.kill();
    return heeded;
  }

  /** Stops the process, which keeps its connections, until `resume`. */
  pause() {
    this.#child.kill('SIGSTOP');
  }

  resume() {
    this.#child.kill('SIGCONT');
  }

  /** Ends the process as a crash does: it flushes and sends nothing. */
  async kill() {
    this.#child.kill('SIGKILL');
    await this.exited;
  }
}

/**
 * Starts a process whose files are in `folder` (zoo.cfg, server.log, and data/ unless `dataDir` is
 * set), without waiting for an answer: one server of an ensemble cannot serve before the others
 * run.
 *
 * @param {import('./server-process.js').ServerOptions} options
 * @param {number} port
 */
export async function launchServer(options, port) {
  const { kind, folder, dataDir, config = {}, environment = {} } = options;
  const data = dataDir ?? path.join(folder, 'data');
  await mkdir(data, { recursive: true });
  const configFile = path.join(folder, 'zoo.cfg');
  const logFile = path.join(folder, 'server.log');
  const settings = {
    tickTime: 2000,
    clientPort: port,
    clientPortAddress: '127.0.0.1',
    dataDir: data,
    maxClientCnxns: 0,
    'admin.enableServer': false,
    '4lw.commands.whitelist': '*',
    ...config,
  };
  await writeFile(
    configFile,
    Object.entries(settings)
      .map(([key, value]) => `${key}=${value}\n`)
      .join(''),
  );
  const [command, args] = await commandOf(kind, configFile, options);
  const log = await open(logFile, 'a');
  const child = spawn(command, args, { cwd: folder, stdio: ['ignore', log.fd, log.fd], env: { ...process.env, ...environment } });
  running.add(child);
  await log.close();
  return new ServerProcess(kind, port, data, child, logFile);
}

/**
 * Starts a server and waits until it answers `srvr`. See `launchServer` for its files.
 *
 * @param {import('./server-process.js').ServerOptions} options
 */
export async function startServer(options) {
  const { config = {} } = options;
  // Another process may take a free port before the server binds it; only then try again.
  for (let attempt = 1; ; attempt++) {
    const server = await launchServer(options, Number(config.clientPort ?? (await freePort())));
    try {
      await server.untilReady(options.readyTimeoutMs ?? 60_000);
      return server;
    } catch (error) {
      if (attempt === 3 || !/address already in use|EADDRINUSE/i.test(String(error))) throw error;
    }
  }
}
