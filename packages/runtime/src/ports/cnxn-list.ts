import type { CnxnContext, CnxnInfo } from '@tskeeper/core';
import type { Millis, SessionId } from '@tskeeper/protocol';

/** A connection as an operator sees it. */
export interface CnxnView {
  readonly context: CnxnContext;
  /** 1: it is being read; 4: output waits for it; 0: it is being answered a four letter word. */
  readonly interest: number;
  readonly packetsReceived: number;
  /** What the core knows of it; undefined before the handshake. */
  readonly info: CnxnInfo | undefined;
}

/** All connections of the client ports, those included that the core has not heard of. */
export interface CnxnList {
  readonly cnxnCount: number;
  cnxns(): Iterable<CnxnView>;
  /** Connections by the moment at which they are closed if nothing comes from them, soonest first. */
  expiry(): { readonly dueMs: Millis; readonly cnxns: readonly { readonly context: CnxnContext; readonly session: SessionId }[] }[];
}
