/** A client of any kind, as a run sees it: it accepts work and faults. */
import type { Millis, OperationName } from '@tskeeper/protocol';
import type { VirtualCnxn } from '@tskeeper/runtime/internal';

/** One request. `record` is what the operation's codec writes. */
export interface ClientRequest {
  readonly name: OperationName;
  readonly record: unknown;
}

export interface Actor {
  readonly name: string;
  /** Its session is open and a server serves it. */
  readonly ready: boolean;
  /** It accepts requests, even if it only keeps them until there is a server again. */
  readonly acceptsRequests: boolean;
  /** Number of requests without a reply. */
  readonly outstandingCount: number;
  /** The wire of its connection, for faults. */
  readonly wire: VirtualCnxn | undefined;
  submit(ask: ClientRequest): void;
  /** Drops its connection. */
  reset(): void;
  /** Ends its direction of the connection, and keeps receiving. */
  halfClose(): void;
  /** Opens a new connection without closing the old one. */
  redial(): void;
  /** Loses its network for a while, silently. */
  goOffline(ms: Millis): void;
  /** Never connects again. Its connections stay as they are. */
  abandon(): void;
}
