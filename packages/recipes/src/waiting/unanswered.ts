/** Requests whose outcome is unknown. */
import { KeeperError } from '@tskeeper/client';

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

/** Whether `unsettled` has marked it. */
export function isUnsettled(error: unknown): boolean {
  return typeof error === 'object' && error !== null && unsettledErrors.has(error);
}
