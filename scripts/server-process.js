/**
 * Runs a ZooKeeper server as a real process, ours or Apache's, behind one interface: written configuration in, a server that answers out.
 *
 * Whoever compares servers (interop, bench, tests) differs only in the kind it names here. A server counts as started when it says its
 * mode over the four letter word `srvr`, never after a guess at how long that takes. Every process started is ended by its own pid, at
 * the latest when the process that started it ends.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open, readFile, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

import { ensurePeers, repositoryFolder } from './peers.js';

/** Between two looks at a server that is starting. Small beside a JVM's start, large beside a connect. */
const pollMs = 25;

/** Processes still running. Invariant: every child started here is in it until it has exited. */
const running = new Set();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM']) {
  // Ending by a signal skips 'exit' handlers, so it is turned into an ordinary exit.
  process.once(signal, () => process.exit(signal === 'SIGINT' ? 130 : 143));
}

/** A port nobody listens on at this moment. */
export async function freePort() {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

const lowestLastingPort = 10_000;
const lastingPortTries = 200;
const lastingPorts = new Set();

/** Where the system begins to take ports of outgoing connections; Linux's own figure where it does not say. */
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
 * A port for a server that comes back to it: free at this moment, given to nobody else by this process, and out of the range from which any
 * dial on the machine may get one while the server is down.
 */
export async function lastingPort() {
  const above = Math.max(lowestLastingPort + 1000, await firstOutgoingPort());
  for (let tries = 0; tries < lastingPortTries; tries++) {
    const port = lowestLastingPort + Math.floor(Math.random() * (above - lowestLastingPort));
    if (lastingPorts.has(port) || !(await isFree(port))) continue;
    lastingPorts.add(port);
    return port;
  }
  throw new Error(`none of ${lastingPortTries} ports between ${lowestLastingPort} and ${above} is free`);
}

/** Asks a four letter word and gives the whole answer as text; rejects when nobody answers. */
export function fourLetterWord(port, word, timeoutMs = 5000) {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    /** @type {Buffer[]} */
    const chunks = [];
    socket.setTimeout(timeoutMs, () => socket.destroy(new Error(`no answer to ${word} from port ${port} within ${timeoutMs} ms`)));
    socket.on('connect', () => socket.write(word));
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('end', () => resolve(Buffer.concat(chunks).toString('utf8')));
    socket.on('error', reject);
    socket.on('close', () => resolve(Buffer.concat(chunks).toString('utf8')));
  });
}

/** The command line of a kind of server. `properties` are Java system properties, which our server takes as -D options too. */
async function commandOf(kind, configFile, { properties = {}, heap = '512m', nodeArguments = [], jvmArguments = [], openFilesMax }) {
  const definitions = Object.entries(properties).map(([name, value]) => `-D${name}=${value}`);
  if (kind === 'ours') {
    const entry = path.join(repositoryFolder, 'packages', 'cli', 'bin', 'tskeeper.js');
    const ours = [process.execPath, ...nodeArguments, entry, 'serve', configFile, ...definitions];
    return limited(ours, openFilesMax);
  }
  const name = `zookeeper-${kind.slice('java-'.length)}`;
  const { [name]: peer } = await ensurePeers([name]);
  if (!peer.installed) throw new Error(`${name} is not installed: ${peer.reason}`);
  const options = [`-Xmx${heap}`, ...jvmArguments, '-cp', peer.classpath, ...definitions];
  return limited(['java', ...options, 'org.apache.zookeeper.server.quorum.QuorumPeerMain', configFile], openFilesMax);
}

function limited([command, ...args], openFilesMax) {
  if (openFilesMax === undefined) return [command, args];
  // The shell is replaced by the server, so that its pid is the server's.
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

  /** Everything it has printed so far, standard output and error. */
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

  /** The clean way: SIGTERM, and SIGKILL for one that does not heed it. */
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

  /** It does nothing any more, and keeps its connections, until `resume`. */
  pause() {
    this.#child.kill('SIGSTOP');
  }

  resume() {
    this.#child.kill('SIGCONT');
  }

  /** What a crash of the process does: nothing is flushed, nothing is told. */
  async kill() {
    this.#child.kill('SIGKILL');
    await this.exited;
  }
}

/**
 * Starts a process whose files live in `folder` (zoo.cfg, server.log, and data/ unless told otherwise), and does not wait for it to answer:
 * one of an ensemble has nobody to serve with before the others are there.
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
 * Starts a server that answers `srvr`. See `launchServer` for where its files are.
 *
 * @param {import('./server-process.js').ServerOptions} options
 */
export async function startServer(options) {
  const { config = {} } = options;
  // A free port may be taken by someone else before the server binds it; that is worth another try, any other failure is not.
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
