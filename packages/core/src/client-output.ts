import type { Writer } from '@tskeeper/protocol';

/**
 * A connection, numbered by its port: a small integer, which the port uses again only after it has
 * called `disconnected`.
 */
export type CnxnId = number;

/**
 * The server through which a client speaks: a number that its leader has for itself and for each
 * learner.
 */
export type SessionOwner = number;

/** Why the core asks for a connection to be closed. What was written to it before is still sent. */
export type CloseReason =
  | 'closed by the client'
  | 'session expired'
  | 'session refused'
  | 'session moved'
  | 'taken over by another connection of the session'
  | 'authentication failed'
  | 'meant for another ensemble'
  | 'client has seen a later zxid than this server'
  | 'malformed request'
  | 'unknown operation'
  | 'request before the handshake was answered'
  | 'too many connections'
  | 'too many watches'
  | 'too many identities'
  | 'read-only clients only'
  /** So that the client connects to another server. */
  | 'shed'
  | 'session of the ensemble on a read-only server'
  | 'no new sessions on a read-only server'
  | 'not serving';

/**
 * The output to clients, in order. The client port, the simulator and the golden tests each bring
 * one. It never calls back into the core.
 */
export interface ClientOutput {
  /**
   * A writer placed at the end of that connection's output. Whatever is written leaves at the end
   * of the turn, in the order of writing; the caller opens and ends each frame. Writing to a
   * connection that is already gone is harmless.
   */
  reply(cnxn: CnxnId): Writer;

  /**
   * Whether so much output waits for the connection that the core should hold back replies that can
   * wait. After a call that returned true, the port calls `drained` when there is room again.
   */
  isFull(cnxn: CnxnId): boolean;

  /** Closes the connection once its output has been sent. `disconnected` is still called. */
  close(cnxn: CnxnId, reason: CloseReason): void;
}
