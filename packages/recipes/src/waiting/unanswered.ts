/** Requests of which nobody knows what has become. */
import { KeeperError } from '@tskeeper/client';

/**
 * What a request fails with whose connection was lost while the session may go on; RequestTimeout where the client itself gave the connection up, since a server took longer than its
 * `requestTimeoutMs`. Only of requests without a `timeoutMs` of their own, as the time-out of those says nothing of the connection.
 */
export const lossCodes = ['ConnectionLoss', 'RequestTimeout'] as const;

/** Whether it was sent, and the connection was lost ahead of the answer, while the session may go on: then a look, or the same once more, tells. */
export function isUnanswered(error: unknown): boolean {
  return KeeperError.is(error, ...lossCodes) && error.outcome === 'unknown';
}

const unsettledErrors = new WeakSet<object>();

/** Marks what a write failed with whose session ended before it was known whether it was carried out: it must not be made again in the next session. */
export function unsettled<Failure>(error: Failure): Failure {
  if (typeof error === 'object' && error !== null) unsettledErrors.add(error);
  return error;
}

/** Whether it was marked by `unsettled`. */
export function isUnsettled(error: unknown): boolean {
  return typeof error === 'object' && error !== null && unsettledErrors.has(error);
}
