/**
 * Requests whose reply may be lost: how they are repeated, whether the outcome of one is known, and
 * how a client creates a znode once although it may not learn that it has.
 */
import { type Acl, type ClientView, type CreateResult, type Data, KeeperError } from '@tskeeper/client';
import { RecipeError } from '../recipe-error.ts';

/**
 * Retry options for requests that have to be answered: as long as the session lives and the signal
 * is not aborted, at another server if the client leaves one that does not answer.
 */
export const retryForever = { retry: { maxAttempts: Infinity, maxElapsedMs: Infinity } } as const;

/**
 * The codes of a request whose connection was lost while the session may continue: RequestTimeout
 * if the client itself left a server that took longer than its `requestTimeoutMs`. They apply only
 * to requests without a `timeoutMs` of their own, whose timeout says nothing about the connection.
 */
export const connectionLossCodes = ['ConnectionLoss', 'RequestTimeout'] as const;

/**
 * Whether the request was sent, and the connection was lost before the reply, while the session may
 * continue. Then a read, or the same request again, shows the outcome.
 */
export function isUnanswered(error: unknown): boolean {
  return KeeperError.is(error, ...connectionLossCodes) && error.outcome === 'unknown';
}

const unsettledErrors = new WeakSet<object>();

/**
 * Marks the error of a write whose session ended before its outcome was known. Such a write must
 * not be repeated in the next session.
 */
export function markUnsettled<Failure>(error: Failure): Failure {
  if (typeof error === 'object' && error !== null) unsettledErrors.add(error);
  return error;
}

/** Whether `markUnsettled` has marked it. */
export function isUnsettled(error: unknown): boolean {
  return typeof error === 'object' && error !== null && unsettledErrors.has(error);
}

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
