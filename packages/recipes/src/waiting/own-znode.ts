/** Creates znodes that a guid in the name distinguishes from all others. */
import { type Acl, type ClientView, type CreateResult, type Data, KeeperError } from '@tskeeper/client';
import { RecipeError } from '../recipe-error.ts';
import { retryForever } from './next-event.ts';

export interface OwnZnodeSettings {
  readonly mode: 'ephemeral' | 'ephemeralSequential' | 'persistentSequential';
  readonly acl: readonly Acl[] | undefined;
  /** Whether to create missing parents, as containers. Default: no. */
  readonly parents?: 'container' | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Creates one znode or none, whatever replies are lost. Rejects as `Client.create` does; and with a
 * RecipeError, Lost, when the reply was lost, the client has found the znode, and another client
 * has deleted it before it could be read.
 */
export async function createOwnZnode(zk: ClientView, path: string, data: Data, settings: OwnZnodeSettings): Promise<CreateResult> {
  try {
    return await zk.create(path, data, { ...settings, protection: true, ...retryForever });
  } catch (error) {
    // An outcome other than `unknown` is a rejection by the server: a parent is missing.
    if (!KeeperError.is(error, 'NoNode') || error.outcome !== 'unknown') throw error;
    throw new RecipeError('Lost', `another client has deleted the znode of ${path} before this client knew that it was created`, {
      cause: error,
    });
  }
}
