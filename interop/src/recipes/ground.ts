/** Where checks of recipes stand: peers of each kind on one server, and what the server itself knows of them. */
import { type Client, KeeperError } from '@tskeeper/client';

import type { ServerProcess } from '../../../scripts/server-process.js';
import type { Handle, Peer, PeerKind } from './peer.ts';

export interface Ground {
  readonly server: ServerProcess;
  /** One of each kind, for all checks. */
  readonly peers: Readonly<Record<PeerKind, Peer>>;
  /** One more, with a session of its own. */
  another(kind: PeerKind): Promise<Peer>;
  /** As a crash of its machine: nobody else ends its session, which is over a while later. */
  kill(peer: Peer): Promise<void>;
  /** Looks on. */
  readonly zk: Client;
  /** The znode of the check: it is there if the check says so. */
  readonly root: string;
}

export interface Check {
  readonly name: string;
  /**
   * The root is there, and stays. For what kazoo takes part in: it makes the znode of a recipe once and takes it for granted from then on, and a container that ours has
   * made would go when it has been empty for a moment.
   */
  readonly hasRoot?: boolean;
  run(ground: Ground): Promise<void>;
}

/** Between two looks. Small beside everything that is waited for. */
const pollMs = 10;
export const patienceMs = 20_000;

export async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + patienceMs;
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`not after ${patienceMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}

/** Names of the znodes below `path`; none if it is not there. */
export async function childrenOf(zk: Client, path: string): Promise<readonly string[]> {
  try {
    return (await zk.getChildren(path)).children;
  } catch (error) {
    if (KeeperError.is(error, 'NoNode')) return [];
    throw error;
  }
}

/** The znodes below `path` that are sequential, in the order of their numbers. */
export async function lineAt(zk: Client, path: string): Promise<string[]> {
  const numberOf = (name: string) => name.slice(-10);
  return (await childrenOf(zk, path))
    .filter((name) => /\d{10}$/.test(name))
    .toSorted((one, other) => (numberOf(one) < numberOf(other) ? -1 : 1));
}

/** Which sessions watch which paths, as the server says. */
export async function watchersByPath(server: ServerProcess): Promise<Map<string, Set<string>>> {
  const watchers = new Map<string, Set<string>>();
  let path = '';
  for (const line of (await server.fourLetterWord('wchp')).split('\n')) {
    if (line.startsWith('/')) watchers.set((path = line), new Set());
    else if (line.trim() !== '') watchers.get(path)?.add(line.trim());
  }
  return watchers;
}

/** Resolves when so many stand in line, and the last of them waits: its session watches somebody ahead of it. */
export async function lastWaits({ server, zk }: Ground, path: string, count: number): Promise<void> {
  await until(`${count} in line at ${path}, the last of whom watches somebody ahead`, async () => {
    const line = await lineAt(zk, path);
    if (line.length !== count) return false;
    const stat = await zk.exists(`${path}/${line.at(-1)}`);
    if (stat === null) return false;
    const session = `0x${BigInt.asUintN(64, stat.ephemeralOwner).toString(16)}`;
    const watchers = await watchersByPath(server);
    return line.slice(0, -1).some((name) => watchers.get(`${path}/${name}`)?.has(session));
  });
}

/** What has been answered, in its order: who got what it asked for. */
export class Journal {
  readonly lines: string[] = [];

  /** Tells a handle something, and notes when it is answered. */
  note(line: string, answer: Promise<unknown>): Promise<void> {
    const noted = answer.then(() => void this.lines.push(line));
    noted.catch(() => undefined);
    return noted;
  }
}

/** Who contends, under a name for people. */
export interface Contender {
  readonly who: string;
  readonly handle: Handle;
}
