/**
 * The wait queue's path in these runs, how near to the end of its counter it begins, and what an
 * operator does to it.
 */
import { type Client, KeeperError } from '@tskeeper/client';
import type { Millis } from '@tskeeper/protocol';
import type { SeededRandom } from '@tskeeper/runtime';
import type { FamilyRun } from '../family.ts';
import type { RecipeProcess } from '../recipe-process.ts';

export const waitQueuePath = '/recipes/line';
export const storePath = '/store';

/**
 * Sequence numbers have 32 bits and a sign. Sometimes only a few are left, so that they overflow.
 */
export function drawSeedZnodes(random: SeededRandom): FamilyRun['seedZnodes'] {
  if (random.below(3) > 0) return undefined;
  return [
    { path: '/recipes', creates: 1 },
    { path: waitQueuePath, creates: 2 ** 31 - 1 - random.below(12) },
    { path: `${waitQueuePath}/last`, creates: 0 },
  ];
}

/** Deletes as an operator does: the znode may be gone already. */
export async function deleteAsOperator(zk: Client, path: string): Promise<void> {
  try {
    await zk.delete(path);
  } catch (error) {
    if (!KeeperError.is(error, 'NoNode')) throw error;
  }
}

/**
 * Has an ephemeral at that path for a while. Resolves with whether it had; false if the znode
 * existed already or has no parent. Repeats the create until it has a reply: otherwise an unknown
 * ephemeral could stay as long as its session.
 */
export async function holdEphemeralBriefly(operator: RecipeProcess, zk: Client, path: string, msBelow: Millis): Promise<boolean> {
  const retry = { maxAttempts: Infinity, maxElapsedMs: Infinity };
  try {
    await zk.create(path, null, { mode: 'ephemeral', idempotent: true, timeoutMs: Infinity, retry });
  } catch (error) {
    if (!KeeperError.is(error, 'NodeExists', 'NoNode')) throw error;
    return false;
  }
  await operator.sleep(operator.below(msBelow));
  await zk.delete(path, { guaranteed: true }).catch((error: unknown) => {
    if (!KeeperError.is(error, 'NoNode')) throw error;
  });
  return true;
}

/** Paths of the children, sorted. */
export async function childPaths(zk: Client, path: string): Promise<readonly string[]> {
  return (await childNames(zk, path)).toSorted().map((name) => `${path}/${name}`);
}

/**
 * Names of the children; none if there is no such znode: empty containers are swept at any moment.
 */
export async function childNames(zk: Client, path: string): Promise<readonly string[]> {
  try {
    return (await zk.getChildren(path)).children;
  } catch (error) {
    if (KeeperError.is(error, 'NoNode')) return [];
    throw error;
  }
}
