/** Requests of which nobody knows what has become. */
import { KeeperError } from '@tskeeper/client';

/** Whether it was sent, and the connection was lost ahead of the answer, while the session may go on: then a look, or the same once more, tells. */
export function isUnanswered(error: unknown): boolean {
  return KeeperError.is(error, 'ConnectionLoss') && error.outcome === 'unknown';
}
