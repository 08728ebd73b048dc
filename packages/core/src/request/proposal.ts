import type { Millis, Txn, TxnDigest, TxnHeader, Zxid } from '@tskeeper/protocol';
import type { Identity } from '../auth/identity.ts';
import type { CnxnId } from '../out.ts';

/** Who asked for a write. The server itself asks for expiry and sweeps: then there is no connection. */
export interface WriteOrigin {
  /** -1 when no connection waits for a reply. */
  readonly cnxn: CnxnId;
  readonly sessionHigh: number;
  readonly sessionLow: number;
  /** The client's xid, 0 for the server's own requests. */
  readonly cxid: number;
  readonly opCode: number;
  readonly identities: readonly Identity[];
  readonly arrivedMs: Millis;
}

/** A write that has been judged, has its zxid, and waits for the log (and, in an ensemble, for a quorum). */
export interface Proposal {
  readonly kind: 'proposal';
  readonly zxid: Zxid;
  readonly origin: WriteOrigin;
  readonly header: TxnHeader;
  readonly txn: Txn;
  readonly digest: TxnDigest | undefined;
  /** Size of the log entry, which is about what the proposal holds in memory. */
  readonly bytes: number;
}
