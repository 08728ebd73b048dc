/** A delete that is not given up when it cannot be sent, is not answered, or not taken just now: it goes on in the background until the session ends. */
import { isPassing } from '../keeper-error.ts';
import { Bounds, type CallSession, type Limits } from './bounds.ts';
import { failureOf, persistently, reworded } from './retries.ts';

/**
 * Rejects as the delete does; where that leaves open what becomes of the znode, the reason says that it goes on. A refusal (BadVersion,
 * NotEmpty, NoAuth) is the end of it, in the background too: with a version, nothing is deleted but what the caller has seen.
 */
export async function deleteGuaranteed(
  session: CallSession,
  first: () => Promise<void>,
  attempt: (limits: Limits) => Promise<void>,
): Promise<void> {
  try {
    await first();
  } catch (error) {
    const failure = failureOf(error);
    // The signal means "no more of this", and what never was a request will not become one. A server that is too busy, or without its quorum, has not judged it.
    if (failure === undefined || session.isOver || !(failure.outcome === 'unknown' || isPassing(failure.errno))) throw error;
    void goOn(session, attempt);
    const note = 'the delete goes on in the background';
    throw reworded(failure, failure.outcome, failure.reason === undefined ? note : `${failure.reason}; ${note}`);
  }
}

async function goOn(session: CallSession, attempt: (limits: Limits) => Promise<void>): Promise<void> {
  try {
    await persistently(session, new Bounds(session, {}), attempt);
  } catch {
    // Gone (NoNode), refused, or the session is over: in each case there is nothing more to be done, and nobody who waits.
  }
}
