/** Where the lines of these stories are, how near to the end of their numbers they begin, and what an operator does to them. */
import { type Client, KeeperError } from '@tskeeper/client';
import type { SeededRandom } from '@tskeeper/runtime';
import type { RecipeStory } from '../family.ts';

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

/** What is below it; nothing where there is no such znode: containers are swept when they are empty, at any moment. */
export async function namesBelow(zk: Client, path: string): Promise<readonly string[]> {
  try {
    return (await zk.getChildren(path)).children;
  } catch (error) {
    if (KeeperError.is(error, 'NoNode')) return [];
    throw error;
  }
}
