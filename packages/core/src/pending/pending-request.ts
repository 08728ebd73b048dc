/**
 * Keeps a session's replies in the order of its requests.
 *
 * A write waits in its connection's queue until its txn has been applied, but is prepared at once,
 * so a client can have many outstanding. A read after an unanswered write of the same connection
 * waits too, as the bytes received: it must see that write. Writes of other sessions do not matter,
 * so a read that need not wait is answered at once.
 */
import type { Millis } from '@tskeeper/protocol';
import type { Identities } from '../auth/identities.ts';
import type { CnxnId } from '../client-output.ts';
import type { WriteOrigin } from './proposal.ts';

/** A frame that must wait: copied, since its bytes belong to the connection's input. */
export interface ParkedFrame {
  readonly kind: 'frame';
  readonly bytes: Buffer;
  readonly arrivedMs: Millis;
  /** The identities at arrival: an authentication has no effect on requests sent before it. */
  readonly identities: Identities;
  /** It waited too long for its turn, and is answered ThrottledOp. */
  readonly isThrottled: boolean;
  /** Its reply may take many steps. */
  readonly isLong: boolean;
}

/**
 * A sync that waits until the leader has confirmed that it still leads, and all that was committed
 * by then has been applied here; on a standalone server, it waits for the log.
 */
export interface PendingSync {
  readonly kind: 'sync';
  readonly cnxn: CnxnId;
  readonly sessionHigh: number;
  readonly sessionLow: number;
  readonly frame: ParkedFrame;
  /** Bytes of its identities at a learner that sends them to the leader; 0 elsewhere. */
  readonly heldBytes: number;
  isDone: boolean;
}

/** An element of a connection's queue. */
export type PendingRequest = WriteOrigin | PendingSync | ParkedFrame;

/** Copies a frame so that it can wait. `start` is the offset of its header. */
export function parkFrame(
  bytes: Buffer,
  start: number,
  end: number,
  identities: Identities,
  arrivedMs: Millis,
  isThrottled: boolean,
  isLong = false,
): ParkedFrame {
  // A view would keep the whole chunk of network input alive.
  const copy = Buffer.allocUnsafeSlow(end - start);
  bytes.copy(copy, 0, start, end);
  return { kind: 'frame', bytes: copy, identities, arrivedMs, isThrottled, isLong };
}
