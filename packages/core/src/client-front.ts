import type { Millis, Reader } from '@tskeeper/protocol';
import type { CnxnId } from './client-output.ts';
import type { CnxnContext } from './cnxn-context.ts';
import type { Inspector } from './inspector.ts';
import type { Now } from './now.ts';

/**
 * The part of a server that a client port delivers to. `Server` implements it; a server of an
 * ensemble that serves no clients has a front too, which closes every connection
 * (roles/closed-front.ts). So the port calls one object, whatever the role.
 */
export interface ClientFront {
  /** A client has sent its first bytes; its ConnectRequest follows as the first frame. */
  connect(cnxn: CnxnId, context: CnxnContext, now: Now): void;
  /**
   * One frame without its length prefix. The reader and its bytes are valid only during the call.
   * `arrivedMs`: the arrival of the frame, which may have waited.
   */
  frame(cnxn: CnxnId, reader: Reader, now: Now, arrivedMs?: Millis): void;
  /**
   * Bytes have arrived that are not a whole frame yet, or a frame that has to wait: its client is
   * alive.
   */
  bytesReceived(cnxn: CnxnId, now: Now): void;
  /** A first frame has arrived and has to wait; the core does not know the connection yet. */
  handshakeDelayed(reader: Reader, now: Now): void;
  /**
   * A frame that had arrived, and had not been delivered, when its connection broke. `disconnected`
   * follows. Called even while `isBusy`.
   */
  lastFrame(cnxn: CnxnId, reader: Reader, now: Now, arrivedMs?: Millis): void;
  /** The last call for a connection; its number may be used again by a later `connect`. */
  disconnected(cnxn: CnxnId, now: Now): void;
  /** There is room again in the output of a connection that was reported as full. */
  drained(cnxn: CnxnId, now: Now): void;
  /**
   * The next leader is known and about to serve: new connections wait, with their first frame, for
   * the front that replaces this one.
   */
  readonly isHolding: boolean;
  /** A long job is in progress: no frames before it ends. */
  readonly isBusy: boolean;
  /** The connection that the long job is for; undefined when it is for none of this port. */
  readonly busyCnxn: CnxnId | undefined;
  /** Units of work done so far, long jobs included: its growth is the cost of a request. */
  readonly workUnits: number;
  /**
   * False while the connection has to wait: for the reply to its handshake, or because too many
   * requests are outstanding.
   */
  wantsInput(cnxn: CnxnId): boolean;
  readonly inspect: Inspector;
}
