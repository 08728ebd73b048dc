/**
 * Keeps a session's replies in the order of its requests.
 *
 * A write parks here until its txn has been applied, and goes on at once to be prepared, so that a client can have many under way. A
 * read behind an unanswered write of the same connection parks too, as the bytes that came: it must see that write. Other sessions'
 * writes are nobody's business, so a read that waits for nothing is answered on the spot.
 */
import type { Millis } from '@tskeeper/protocol';
import type { Identities } from '../auth/identities.ts';
import type { CnxnId } from '../client-output.ts';
import type { WriteOrigin } from './proposal.ts';

/** A frame that came too early: copied, since its bytes belong to the connection's input. */
export interface ParkedFrame {
  readonly kind: 'frame';
  readonly bytes: Buffer;
  readonly arrivedMs: Millis;
  /** Those of the moment it came: an authentication that arrives behind a request does not reach back to it. */
  readonly identities: Identities;
  /** It waited too long for its turn, and is to be answered ThrottledOp. */
  readonly throttled: boolean;
  /** Its answer may take many steps; see `Reads.isLong`. */
  readonly isLong: boolean;
}

/** A sync that waits to hear that the leader still leads, and that everything it had committed by then has been applied here; or, of a server alone, for its log. */
export interface WaitingSync {
  readonly kind: 'sync';
  readonly cnxn: CnxnId;
  readonly sessionHigh: number;
  readonly sessionLow: number;
  readonly frame: ParkedFrame;
  /** Its identities at a learner, where they are sent to the leader with it; 0 elsewhere. */
  readonly heldBytes: number;
  isDone: boolean;
}

/** What stands in a connection's line. */
export type Waiting = WriteOrigin | WaitingSync | ParkedFrame;

/** Copies a frame so that it can wait. `start` is where its header begins. */
export function parkFrame(
  bytes: Buffer,
  start: number,
  end: number,
  identities: Identities,
  arrivedMs: Millis,
  throttled: boolean,
  isLong = false,
): ParkedFrame {
  // A view would pin the whole chunk that came from the network.
  const copy = Buffer.allocUnsafeSlow(end - start);
  bytes.copy(copy, 0, start, end);
  return { kind: 'frame', bytes: copy, identities, arrivedMs, throttled, isLong };
}
