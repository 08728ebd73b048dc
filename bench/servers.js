/**
 * The measured servers, each a process with a fresh data folder: Apache ZooKeeper ("java"), this
 * repository's server ("ours") and the bare Node server of ceiling/ ("ceiling").
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open, readFile, statfs, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

import { ensureForeignPrograms, repositoryFolder } from '../scripts/foreign-programs.js';
import { fourLetterWord, freePort } from '../scripts/server-process.js';

export const serverKinds = ['java', 'ours', 'ceiling'];

const entry = path.join(repositoryFolder, 'packages', 'cli', 'bin', 'tskeeper.js');
export const defaultOurCommand = `${process.execPath} ${entry} serve`;

/** Time between two checks of a starting server: short compared with the 0.25 s of a start. */
const pollMs = 5;
const readyTimeoutMs = 120_000;

const running = new Set();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(130));

/** File systems in memory, whose fsync costs nothing: measuring writes on them is useless. */
const memoryFileSystems = new Map([
  [0x01021994, 'tmpfs'],
  [0x858458f6, 'ramfs'],
]);

export async function assertOnDisk(folder) {
  const { type } = await statfs(folder);
  const name = memoryFileSystems.get(type);
  if (name !== undefined) throw new Error(`${folder} is on ${name}, where fsync costs nothing; choose a folder on a disk with --data-dir`);
}

async function javaCommand(heap) {
  const { 'zookeeper-3.9.5': peer } = await ensureForeignPrograms(['zookeeper-3.9.5'], { log: (line) => console.error(line) });
  if (!peer.installed) throw new Error(`ZooKeeper 3.9.5 is not installed: ${peer.reason}`);
  return ['java', `-Xmx${heap}`, '-cp', peer.classpath, 'org.apache.zookeeper.server.quorum.QuorumPeerMain'];
}

async function commandOf(kind, { heap, ourCommand, port, dataDir, configFile }) {
  switch (kind) {
    case 'java':
      return [...(await javaCommand(heap)), configFile];
    case 'ours':
      return [...ourCommand.split(' '), configFile];
    case 'ceiling':
      return [process.execPath, path.join(import.meta.dirname, 'ceiling', 'server.js'), '--port', String(port), '--data-dir', dataDir];
    default:
      throw new Error(`unknown server ${kind}; there are ${serverKinds.join(', ')}`);
  }
}

/** Settles after a connection is accepted or refused. */
async function accepts(port) {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

async function isServing(kind, port) {
  if (kind === 'ceiling') return accepts(port);
  const answer = await fourLetterWord(port, 'srvr').catch(() => '');
  return /^Mode: /m.test(answer);
}

class Server {
  #child;
  #logFile;
  #exited;

  constructor(kind, port, dataDir, child, logFile) {
    this.kind = kind;
    this.port = port;
    this.dataDir = dataDir;
    this.#child = child;
    this.#logFile = logFile;
    this.#exited = once(child, 'exit').finally(() => running.delete(child));
  }

  get pid() {
    return this.#child.pid;
  }

  get alive() {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  async untilServing() {
    const deadline = performance.now() + readyTimeoutMs;
    while (performance.now() < deadline) {
      if (!this.alive) throw new Error(`the server "${this.kind}" ended while starting:\n${await this.#lastWords()}`);
      if (await isServing(this.kind, this.port)) return;
      await delay(pollMs);
    }
    throw new Error(`the server "${this.kind}" does not serve after ${readyTimeoutMs / 1000} s:\n${await this.#lastWords()}`);
  }

  /** The value of one line of mntr. */
  async metric(name) {
    const answer = await fourLetterWord(this.port, 'mntr');
    const line = answer.split('\n').find((one) => one.startsWith(`${name}\t`));
    if (line === undefined) throw new Error(`mntr of "${this.kind}" has no line ${name}`);
    return Number(line.split('\t')[1]);
  }

  /** Megabytes in memory now, and at most so far. */
  async memory() {
    const status = await readFile(`/proc/${this.pid}/status`, 'utf8');
    const megabytes = (key) => Math.round(Number(new RegExp(`^${key}:\\s+(\\d+) kB`, 'm').exec(status)[1]) / 1024);
    return { rssMb: megabytes('VmRSS'), peakRssMb: megabytes('VmHWM') };
  }

  /** Ends the process as a crash does. */
  async kill() {
    this.#child.kill('SIGKILL');
    await this.#exited;
  }

  /** Stops the process, as if its machine had died silently, and continues it. */
  pause() {
    this.#child.kill('SIGSTOP');
  }

  resume() {
    this.#child.kill('SIGCONT');
  }

  /** `leader`, `follower` ..., or undefined while it does not serve. */
  async mode() {
    const answer = await fourLetterWord(this.port, 'srvr', 1000).catch(() => '');
    return /^Mode: (\w+)$/m.exec(answer)?.[1];
  }

  /** The last zxid that it reports as applied. */
  async zxid() {
    return /^Zxid: (\w+)$/m.exec(await fourLetterWord(this.port, 'srvr').catch(() => ''))?.[1];
  }

  /** SIGTERM; SIGKILL if the server does not end within 20 s. */
  async stop() {
    this.#child.kill('SIGTERM');
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), 20_000);
    await this.#exited;
    clearTimeout(timer);
  }

  async #lastWords() {
    return (await readFile(this.#logFile, 'utf8')).slice(-3000);
  }
}

/**
 * Writes zoo.cfg and returns the command line of a server on `folder`, for any number of starts.
 */
export async function prepareServer(kind, folder, { heap = '1g', ourCommand = defaultOurCommand, config = {}, port }) {
  const dataDir = path.join(folder, 'data');
  await mkdir(dataDir, { recursive: true });
  const settings = {
    tickTime: 2000,
    clientPort: port,
    clientPortAddress: '127.0.0.1',
    dataDir,
    maxClientCnxns: 0,
    'admin.enableServer': false,
    '4lw.commands.whitelist': '*',
    ...config,
  };
  const configFile = path.join(folder, 'zoo.cfg');
  await writeFile(
    configFile,
    Object.entries(settings)
      .map(([key, value]) => `${key}=${value}\n`)
      .join(''),
  );
  return { kind, folder, port, dataDir, command: await commandOf(kind, { heap, ourCommand, port, dataDir, configFile }) };
}

/** Starts a prepared server without waiting. */
export async function launch({ kind, folder, port, dataDir, command: [program, ...args] }) {
  const logFile = path.join(folder, 'server.log');
  const log = await open(logFile, 'a');
  const child = spawn(program, args, { cwd: folder, stdio: ['ignore', log.fd, log.fd] });
  running.add(child);
  await log.close();
  return new Server(kind, port, dataDir, child, logFile);
}

/**
 * Starts a server on `folder`, which contains zoo.cfg, server.log and data/. `startSeconds` of the
 * result is the time from the start of the process to its first answer.
 */
export async function startServer(kind, folder, options = {}) {
  const prepared = await prepareServer(kind, folder, { ...options, port: await freePort() });
  const start = performance.now();
  const server = await launch(prepared);
  try {
    await server.untilServing();
  } catch (error) {
    await server.kill();
    throw error;
  }
  server.startSeconds = (performance.now() - start) / 1000;
  return server;
}
