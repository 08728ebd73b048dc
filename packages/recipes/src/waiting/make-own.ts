/** Makes znodes that are told from all others by a guid in their names. */
import { type Acl, type ClientView, type CreateResult, type Data, KeeperError } from '@tskeeper/client';
import { RecipeError } from '../recipe-error.ts';
import { untilTheEnd } from './next-event.ts';

export interface OwnSettings {
  readonly mode: 'ephemeral' | 'ephemeralSequential' | 'persistentSequential';
  readonly acl: readonly Acl[] | undefined;
  /** Whether what is missing above it is made, as containers. Default: false. */
  readonly parents?: 'container' | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * One, or none, whatever answers are lost. Rejects as `Client.create` does, but with a RecipeError, Lost, when the answer was lost and the client has found the znode, and
 * somebody has deleted it before it could be read.
 */
export async function makeOwn(zk: ClientView, path: string, data: Data, settings: OwnSettings): Promise<CreateResult> {
  try {
    return await zk.create(path, data, { ...settings, protection: true, ...untilTheEnd });
  } catch (error) {
    // Refused it was not: that is how a missing parent is told.
    if (!KeeperError.is(error, 'NoNode') || error.outcome !== 'unknown') throw error;
    throw new RecipeError('Lost', `the znode of ${path} was deleted by somebody before its making was known here`, { cause: error });
  }
}
