/**
 * The measured servers, each a process with a fresh data folder: Apache ZooKeeper ("java"), this
 * repository's server ("ours"), another build of it ("before", with --before-command) and the bare
 * Node server of ceiling/ ("ceiling"). An ensemble has ZooKeeper's default settings.
 */
import { statfs } from 'node:fs/promises';
import path from 'node:path';
import { createConnection } from 'node:net';
import { once } from 'node:events';
import { freePort, launchServer, peersOf, ProcessEnsemble } from '@tskeeper/harness';
import { repositoryFolder } from '../scripts/foreign-programs.js';

export const serverKinds = ['java', 'ours', 'before', 'ceiling'];

const entry = path.join(repositoryFolder, 'packages', 'cli', 'bin', 'tskeeper.js');
export const defaultOurCommand = `${process.execPath} ${entry} serve`;
const ceilingCommand = [process.execPath, path.join(import.meta.dirname, 'ceiling', 'server.js')];

/** Time between two checks of a starting server: short compared with the 0.25 s of a start. */
const pollMs = 5;
const readyTimeoutMs = 120_000;

/** As in zoo_sample.cfg. */
const ensembleDefaults = { tickTime: 2000, initLimit: 10, syncLimit: 5 };

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

/**
 * What the harness starts for a kind of this benchmark.
 *
 * @param {string} kind
 * @param {{ ourCommand?: string, beforeCommand?: string }} commands
 */
function programOf(kind, { ourCommand = defaultOurCommand, beforeCommand }) {
  switch (kind) {
    case 'java':
      return { kind: 'java-3.9.5' };
    case 'ours':
      return { kind: 'ours', command: ourCommand.split(' ') };
    case 'before':
      if (beforeCommand === undefined) throw new Error('"before" is another build of this server: name its command with --before-command');
      return { kind: 'ours', command: beforeCommand.split(' ') };
    case 'ceiling':
      return { kind: 'ours', command: ceilingCommand };
    default:
      throw new Error(`unknown server ${kind}; there are ${serverKinds.join(', ')}`);
  }
}

/** Whether a port accepts connections: the ceiling answers no four letter word. */
async function accepts(port) {
  const socket = createConnection(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/**
 * Starts a server on `folder`, which contains zoo.cfg, server.log and data/. `startSeconds` of the
 * result is the time from the start of the process to its first answer.
 */
export async function startServer(kind, folder, { heap = '1g', config = {}, ...commands } = {}) {
  const port = await freePort();
  const server = await launchServer({ ...programOf(kind, commands), folder, heap, config }, port);
  const isReady = kind === 'ceiling' ? { isReady: () => accepts(port) } : {};
  await server.untilReady({ timeoutMs: readyTimeoutMs, everyMs: pollMs, ...isReady });
  server.startSeconds = (performance.now() - server.startedMs) / 1000;
  return server;
}

/** Starts `count` servers in folders below `folder`. The first `members` of them are the ensemble; default: all. */
export function startEnsemble(kind, folder, { count = 3, members = count, heap = '1g', config = {}, ...commands }) {
  const { kind: harnessKind, command } = programOf(kind, commands);
  const peers = peersOf(harnessKind, count);
  const firstMembers = members < count ? peers.slice(0, members).map(({ sid }) => sid) : undefined;
  return ProcessEnsemble.start(peers, { folder, heap, command, firstMembers, config: { ...ensembleDefaults, ...config } });
}
