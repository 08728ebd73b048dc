/** Reads of what may not be there. */
import { KeeperError } from '@tskeeper/client';

/** What was read, or undefined when there is no such znode. Rejects as the read does otherwise. */
export async function unlessGone<Found>(found: Promise<Found>): Promise<Found | undefined> {
  try {
    return await found;
  } catch (error) {
    if (KeeperError.is(error, 'NoNode')) return undefined;
    throw error;
  }
}
