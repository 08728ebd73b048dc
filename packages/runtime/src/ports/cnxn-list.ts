import type { CnxnContext, CnxnInfo } from '@tskeeper/core';
import type { Millis, SessionId } from '@tskeeper/protocol';

/** A connection as shown to an operator. */
export interface CnxnView {
  readonly context: CnxnContext;
  /** 1: it is being read; 4: output waits for it; 0: a four letter word is being answered. */
  readonly interest: number;
  readonly packetsReceived: number;
  /** The core's information; undefined before the handshake. */
  readonly info: CnxnInfo | undefined;
}

/** All connections of the client ports, including those that the core does not know yet. */
export interface CnxnList {
  readonly cnxnCount: number;
  cnxns(): Iterable<CnxnView>;
  /**
   * Connections by the time at which they are closed if nothing arrives from them, earliest first.
   */
  expiry(): { readonly dueMs: Millis; readonly cnxns: readonly { readonly context: CnxnContext; readonly session: SessionId }[] }[];
}
