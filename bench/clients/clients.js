/**
 * The measured clients, each a process that receives commands on standard input: ours, those on
 * npm, kazoo, the Java client, and a bare socket.
 */
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { createInterface } from 'node:readline';

import { ensureForeignPrograms, repositoryFolder } from '../../scripts/foreign-programs.js';
import { countDependencies } from './claims.js';

const driversFolder = path.join(import.meta.dirname, 'drivers');

/** In the order of the tables. The others are compared with `ours`. */
export const clientKinds = ['ours', 'node-zookeeper-client', 'zookeeper', 'kazoo', 'java', 'bare'];

const peerOf = { 'node-zookeeper-client': 'node-zookeeper-client', zookeeper: 'zookeeper-npm', kazoo: 'kazoo', java: 'zookeeper-3.9.5' };

function nodeDriver(name, ...args) {
  return (connectString) => [process.execPath, path.join(driversFolder, name), connectString, ...args];
}

async function npmClient({ version, folder, packageFolder }, driver) {
  const dependencies = await countDependencies(packageFolder);
  return { version, dependencies, sourceFolder: packageFolder, command: nodeDriver(driver, folder) };
}

/** Version and command line of a kind of client, given its peer. */
const kinds = {
  ours: async () => {
    const { version } = JSON.parse(await readFile(path.join(repositoryFolder, 'packages', 'client', 'package.json'), 'utf8'));
    return { version, dependencies: 0, command: nodeDriver('tskeeper.js') };
  },
  bare: async () => ({ version: process.version, command: nodeDriver('bare.js') }),
  'node-zookeeper-client': (peer) => npmClient(peer, 'node-zookeeper-client.js'),
  zookeeper: (peer) => npmClient(peer, 'zookeeper.js'),
  kazoo: async (peer) => ({
    version: peer.version,
    sourceFolder: path.join(peer.pythonPath, 'kazoo'),
    command: (connectString) => ['python3', path.join(driversFolder, 'kazoo_driver.py'), connectString],
    environment: { PYTHONPATH: peer.pythonPath },
  }),
  java: async (peer) => ({
    version: '3.9.5',
    // Java compiles the source file when it starts, before anything is measured.
    command: (connectString) => ['java', '-cp', peer.classpath, path.join(driversFolder, 'JavaClient.java'), connectString],
  }),
};

/** The clients that can be measured on this machine, and why the others cannot. */
export async function availableClients(wanted, log) {
  const clients = [];
  const absent = [];
  for (const kind of wanted) {
    const name = peerOf[kind];
    const peer = name === undefined ? undefined : (await ensureForeignPrograms([name], { log }))[name];
    if (peer?.installed === false) absent.push(`${kind}: ${peer.reason}`);
    else clients.push({ kind, ...(await kinds[kind](peer)) });
  }
  return { clients, absent };
}

const running = new Set();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Far above what any command takes. */
const answerTimeoutMs = 60_000;

class ClientProcess {
  #child;
  #answers;
  #lastWords = '';

  constructor(kind, child) {
    this.kind = kind;
    this.#child = child;
    this.#answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    child.stderr.on('data', (text) => {
      this.#lastWords = `${this.#lastWords}${text}`.slice(-2000);
    });
    child.once('exit', () => running.delete(child));
  }

  /** Sends a command, and resolves with the first line of its answer. */
  async ask(command) {
    this.#child.stdin.write(`${JSON.stringify(command)}\n`);
    return this.answer();
  }

  /** Resolves with the next line of an answer. */
  async answer() {
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`timed out waiting for an answer of the client "${this.kind}"`)), answerTimeoutMs);
    });
    try {
      const { value, done } = await Promise.race([this.#answers.next(), late]);
      if (done) throw new Error(`the client "${this.kind}" ended:\n${this.#lastWords}`);
      const answer = JSON.parse(value);
      if (answer.error !== undefined) throw new Error(`the client "${this.kind}": ${answer.error}`);
      return answer;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Megabytes in memory now. */
  async rssMb() {
    const status = await readFile(`/proc/${this.#child.pid}/status`, 'utf8');
    return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)[1]) / 1024;
  }

  async quit() {
    if (this.#child.exitCode !== null) return;
    const exited = new Promise((resolve) => this.#child.once('exit', resolve));
    await this.ask({ do: 'quit' });
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), answerTimeoutMs);
    await exited;
    clearTimeout(timer);
  }

  kill() {
    this.#child.kill('SIGKILL');
  }
}

/** Starts a client and waits until it is connected. */
export async function startClient({ kind, command, environment }, connectString) {
  const [program, ...args] = command(connectString);
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, ...environment } });
  running.add(child);
  const client = new ClientProcess(kind, child);
  try {
    await client.ask({ do: 'open' });
  } catch (error) {
    client.kill();
    throw error;
  }
  return client;
}
