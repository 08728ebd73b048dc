/**
 * The ground of recipe checks: peers of each kind on one server, and the server's own view of them.
 */
import { type Client, KeeperError } from '@tskeeper/client';

import type { ServerProcess } from '@tskeeper/harness';
import type { Handle, RecipeClient, RecipeClientKind } from './recipe-client.ts';

export interface RecipeCheckContext {
  readonly server: ServerProcess;
  /** One of each kind, for all checks. */
  readonly clients: Readonly<Record<RecipeClientKind, RecipeClient>>;
  /** A further peer, with its own session. */
  startClient(kind: RecipeClientKind): Promise<RecipeClient>;
  /** Ends a peer like a crash of its machine: its session expires a while later. */
  killClient(peer: RecipeClient): Promise<void>;
  /** An observer. */
  readonly zk: Client;
  /** The znode of the check: it exists if the check says so. */
  readonly root: string;
}

export interface Check {
  readonly name: string;
  /**
   * The root exists, and stays. For checks with kazoo, which creates the znode of a recipe once and
   * assumes that it exists from then on, while a container created by ours would be deleted when it
   * is empty.
   */
  readonly hasRoot?: boolean;
  run(context: RecipeCheckContext): Promise<void>;
}

/** Polling interval; short compared with everything awaited. */
const pollMs = 10;
export const waitTimeoutMs = 20_000;

export async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + waitTimeoutMs;
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`timed out after ${waitTimeoutMs} ms waiting for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}

/** Names of the znodes below `path`; none if it does not exist. */
export async function childrenOf(zk: Client, path: string): Promise<readonly string[]> {
  try {
    return (await zk.getChildren(path)).children;
  } catch (error) {
    if (KeeperError.is(error, 'NoNode')) return [];
    throw error;
  }
}

/** The sequential znodes below `path`, in the order of their numbers. */
export async function waitQueueAt(zk: Client, path: string): Promise<string[]> {
  const numberOf = (name: string) => name.slice(-10);
  return (await childrenOf(zk, path))
    .filter((name) => /\d{10}$/.test(name))
    .toSorted((one, other) => (numberOf(one) < numberOf(other) ? -1 : 1));
}

/** Which sessions watch which paths, as the server reports. */
export async function watchersByPath(server: ServerProcess): Promise<Map<string, Set<string>>> {
  const watchers = new Map<string, Set<string>>();
  let path = '';
  for (const line of (await server.fourLetterWord('wchp')).split('\n')) {
    if (line.startsWith('/')) watchers.set((path = line), new Set());
    else if (line.trim() !== '') watchers.get(path)?.add(line.trim());
  }
  return watchers;
}

/**
 * Resolves when this many are in the queue, and the last of them waits: its session watches one
 * before it.
 */
export async function untilLastWaits({ server, zk }: RecipeCheckContext, path: string, count: number): Promise<void> {
  await until(`${count} in the queue at ${path}, the last of which watches one before it`, async () => {
    const line = await waitQueueAt(zk, path);
    if (line.length !== count) return false;
    const stat = await zk.exists(`${path}/${line.at(-1)}`);
    if (stat === null) return false;
    const session = `0x${BigInt.asUintN(64, stat.ephemeralOwner).toString(16)}`;
    const watchers = await watchersByPath(server);
    return line.slice(0, -1).some((name) => watchers.get(`${path}/${name}`)?.has(session));
  });
}

/** The answers in their order: which contender got what it requested. */
export class Journal {
  readonly lines: string[] = [];

  /** Sends a request to a handle, and records when it is answered. */
  recordAnswer(line: string, answer: Promise<unknown>): Promise<void> {
    const noted = answer.then(() => void this.lines.push(line));
    noted.catch(() => undefined);
    return noted;
  }
}

/** A contender, with a name for people. */
export interface Contender {
  readonly who: string;
  readonly handle: Handle;
}
