/**
 * A delete that continues in the background until the session ends, if it could not be sent, was
 * not answered, or was rejected temporarily.
 */
import { isRetryable } from '../keeper-error.ts';
import type { RequestLimits } from '../session/request-limits.ts';
import { CallDeadline, type CallSession } from './call-deadline.ts';
import { failureOf, retryUntilSessionEnds, withOutcome } from './retries.ts';

/**
 * Rejects as the delete does; if the fate of the znode is then open, the reason says that the
 * delete continues. A final rejection (BadVersion, NotEmpty, NoAuth) also ends it in the
 * background: with a version, only the znode that the caller has seen is deleted.
 */
export async function deleteGuaranteed(
  session: CallSession,
  first: () => Promise<void>,
  attempt: (limits: RequestLimits) => Promise<void>,
): Promise<void> {
  try {
    await first();
  } catch (error) {
    const failure = failureOf(error);
    // A signal means that the caller no longer wants the delete, and an invalid request will not
    // become valid. A server that is too busy or without quorum has not decided.
    if (failure === undefined || session.hasEnded || !(failure.outcome === 'unknown' || isRetryable(failure.errno))) throw error;
    void deleteInBackground(session, attempt);
    const note = 'the delete continues in the background';
    throw withOutcome(failure, failure.outcome, failure.reason === undefined ? note : `${failure.reason}; ${note}`);
  }
}

async function deleteInBackground(session: CallSession, attempt: (limits: RequestLimits) => Promise<void>): Promise<void> {
  try {
    await retryUntilSessionEnds(session, new CallDeadline(session, {}), attempt);
  } catch {
    // Gone (NoNode), rejected, or the session has ended: nothing is left to do, and no caller
    // waits.
  }
}
