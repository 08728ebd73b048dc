/** Reads of znodes that may not exist. */
import { KeeperError } from '@tskeeper/client';

/**
 * The result of the read, or undefined if the znode does not exist. Rejects as the read does
 * otherwise.
 */
export async function undefinedIfNoNode<Found>(found: Promise<Found>): Promise<Found | undefined> {
  try {
    return await found;
  } catch (error) {
    if (KeeperError.is(error, 'NoNode')) return undefined;
    throw error;
  }
}
