/** A client of any kind, as a story sees it: it can be given work, and harmed. */
import type { Millis, OperationName } from '@tskeeper/protocol';
import type { VirtualCnxn } from '@tskeeper/runtime/internal';

/** One thing to ask for. `record` is what the operation's codec writes. */
export interface Ask {
  readonly name: OperationName;
  readonly record: unknown;
}

export interface Actor {
  readonly name: string;
  /** Its session is open, and a server at work for it. */
  readonly ready: boolean;
  /** It can be given work, if only to keep it until there is a server again. */
  readonly takesCalls: boolean;
  /** What it has asked for and not been answered. */
  readonly outstandingCount: number;
  /** The wire under its connection, for whoever wants to harm it. */
  readonly wire: VirtualCnxn | undefined;
  ask(ask: Ask): void;
  /** Drops its connection. */
  reset(): void;
  /** Says that it will send nothing more, and goes on listening. */
  halfClose(): void;
  /** Dials anew and lets the old connection lie. */
  moveOn(): void;
  /** Falls off the net for a while, without a word. */
  sleep(ms: Millis): void;
  /** Comes back no more. Its connections stay as they are. */
  retire(): void;
}
