/** Where the lines of these stories are, how near to the end of their numbers they begin, and what an operator does to them. */
import { type Client, KeeperError } from '@tskeeper/client';
import type { Millis } from '@tskeeper/protocol';
import type { SeededRandom } from '@tskeeper/runtime';
import type { RecipeStory } from '../family.ts';
import type { RecipeProcess } from '../recipe-process.ts';

export const linePath = '/recipes/line';
export const storePath = '/store';

/** Numbers behind names have 32 bits and a sign. Now and then only a few are left, so that they run over. */
export function drawBeginning(random: SeededRandom): RecipeStory['beginning'] {
  if (random.below(3) > 0) return undefined;
  return [
    { path: '/recipes', creates: 1 },
    { path: linePath, creates: 2 ** 31 - 1 - random.below(12) },
    { path: `${linePath}/last`, creates: 0 },
  ];
}

/** As an operator does: somebody else may have been faster. */
export async function deleteByHand(zk: Client, path: string): Promise<void> {
  try {
    await zk.delete(path);
  } catch (error) {
    if (!KeeperError.is(error, 'NoNode')) throw error;
  }
}

/**
 * Has an ephemeral of that path for a while. Resolves with whether it had; not where somebody else was faster, or where there is no parent. Creates it until
 * that is answered: one that it did not know of would stay for as long as its session lives.
 */
export async function haveForAWhile(operator: RecipeProcess, zk: Client, path: string, msBelow: Millis): Promise<boolean> {
  const retry = { attempts: Infinity, maxElapsedMs: Infinity };
  try {
    await zk.create(path, null, { mode: 'ephemeral', idempotent: true, timeoutMs: Infinity, retry });
  } catch (error) {
    if (!KeeperError.is(error, 'NodeExists', 'NoNode')) throw error;
    return false;
  }
  await operator.pause(operator.below(msBelow));
  await zk.delete(path, { guaranteed: true }).catch((error: unknown) => {
    if (!KeeperError.is(error, 'NoNode')) throw error;
  });
  return true;
}

/** Paths of what is below it, sorted. */
export async function pathsBelow(zk: Client, path: string): Promise<readonly string[]> {
  return (await namesBelow(zk, path)).toSorted().map((name) => `${path}/${name}`);
}

/** What is below it; nothing where there is no such znode: containers are swept when they are empty, at any moment. */
export async function namesBelow(zk: Client, path: string): Promise<readonly string[]> {
  try {
    return (await zk.getChildren(path)).children;
  } catch (error) {
    if (KeeperError.is(error, 'NoNode')) return [];
    throw error;
  }
}
