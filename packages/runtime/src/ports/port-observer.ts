import type { Millis } from '@tskeeper/protocol';

/** Hears what happens at a client port outside the core: the port's half of the bookkeeping, under the rules of the core's Observer. */
export interface PortObserver {
  /** A frame or a four letter word has arrived as a whole; its length prefix counts. */
  packetReceived(bytes: number): void;
  /** A ConnectRequest has arrived, and this many tokens of the connection throttle were missing then. */
  handshakeReceived(tokenDeficit: number): void;
  /** A connection was turned away: too many of them, too little memory, or the throttle. */
  cnxnRejected(): void;
  /** A connection was closed because nothing came from it for too long. */
  cnxnExpired(): void;
  /** The client went away without closing its session. */
  cnxnDropped(): void;
  /** A connection was closed because large requests took too much memory. */
  largeRequestRejected(): void;
  /** A connection that we closed is gone; how long that took. */
  socketClosed(closingMs: Millis): void;
  /** Something was written to a connection that is gone. */
  staleReply(): void;
}
