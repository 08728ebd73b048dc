import type { Millis } from '@tskeeper/protocol';

/**
 * Receives the events of a client port outside the core: the port's half of the bookkeeping, under
 * the rules of the core's Observer.
 */
export interface PortObserver {
  /** A frame or a four letter word is complete; its length prefix counts. */
  packetReceived(bytes: number): void;
  /**
   * A ConnectRequest has arrived, when this many tokens of the connection throttle were missing.
   */
  handshakeReceived(tokenDeficit: number): void;
  /** A connection was refused: too many of them, too little memory, or the throttle. */
  cnxnRejected(): void;
  /** A connection was closed because nothing arrived from it for too long. */
  cnxnExpired(): void;
  /** The client closed the connection without closing its session. */
  cnxnDropped(): void;
  /** A connection was closed because large requests took too much memory. */
  largeRequestRejected(): void;
  /** A connection closed here is gone; how long that took. */
  socketClosed(closingMs: Millis): void;
  /** A reply was written to a connection that is gone. */
  staleReply(): void;
}
