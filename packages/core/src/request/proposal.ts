import { type Millis, OpCode, type Txn, type TxnDigest, type TxnHeader, type Zxid } from '@tskeeper/protocol';
import { Identities } from '../auth/identities.ts';
import type { Fingerprint } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import type { CnxnId, SessionOwner } from '../client-output.ts';
import { ownerHere } from '../session/session-tracker.ts';
import type { NodeId } from '../tree/data-tree.ts';

/** The number no connection has. */
export const noCnxn: CnxnId = -1;

/** Who asked for a write. The server itself asks for expiry and sweeps: then there is no connection. */
export interface WriteOrigin {
  readonly kind: 'write';
  /** `noCnxn` when no connection waits for a reply. */
  readonly cnxn: CnxnId;
  /** Through which server it came. `ownerBefore` if the session has gone on over another connection to that server since. */
  owner: SessionOwner;
  readonly sessionHigh: number;
  readonly sessionLow: number;
  /** The client's xid, 0 for the server's own requests. */
  readonly cxid: number;
  readonly opCode: number;
  /** Of a request that a learner has passed on, none once it has been judged: nothing else keeps them alive. */
  identities: Identities;
  /** Its record and its identities at a learner, from when it is passed on until it is answered. 0 elsewhere: a proposal counts by itself. */
  readonly heldBytes: number;
  /** Its record, as it came from a client of this server; 0 for others. */
  readonly frameBytes: number;
  readonly arrivedMs: Millis;
}

/** A write that has been judged, has its zxid, and waits for the log (and, in an ensemble, for a quorum). */
export interface Proposal {
  readonly zxid: Zxid;
  readonly origin: WriteOrigin;
  readonly header: TxnHeader;
  readonly txn: Txn;
  /** The znode that a setData changes: it was in the tree when it was judged, and nothing proposed before removes it. 0 for unknown. */
  readonly node: NodeId;
  readonly digest: TxnDigest | undefined;
  /** Size of the log entry. */
  readonly bytes: number;
}

/** A write or sync of a client of another server, which that server has passed on. */
export interface ForwardedRequest {
  readonly owner: SessionOwner;
  readonly sessionHigh: number;
  readonly sessionLow: number;
  readonly cxid: number;
  readonly opCode: number;
  readonly identities: Identities;
  /** The request's record, which is the receiver's. */
  readonly record: Buffer;
  readonly arrivedMs: Millis;
}

/** A request of the server itself, on behalf of a session or of none (0, 0). */
export function serverOrigin(opCode: number, high: number, low: number, now: Now): WriteOrigin {
  return {
    kind: 'write',
    cnxn: noCnxn,
    owner: ownerHere,
    sessionHigh: high,
    sessionLow: low,
    cxid: 0,
    opCode,
    identities: Identities.none,
    heldBytes: 0,
    frameBytes: 0,
    arrivedMs: now.elapsedMs,
  };
}

/** Everything that takes a zxid. deleteContainer is the server's own; a client that sends it is told that there is no such operation. */
export function isWrite(opCode: number): boolean {
  switch (opCode) {
    case OpCode.create:
    case OpCode.create2:
    case OpCode.createContainer:
    case OpCode.createTTL:
    case OpCode.delete:
    case OpCode.setData:
    case OpCode.setACL:
    case OpCode.multi:
    case OpCode.reconfig:
    case OpCode.closeSession:
      return true;
    default:
      return false;
  }
}

/** Znodes a txn changes beyond one. */
export function changesOf(txn: Txn): number {
  switch (txn.kind) {
    case 'multi':
      return txn.txns.length;
    case 'closeSession':
      return txn.paths2Delete?.length ?? 0;
    default:
      return 0;
  }
}

/** Entries of the ACLs that a txn sets. */
export function aclEntriesOf(txn: Txn): number {
  if (txn.kind !== 'multi') return 'acl' in txn ? txn.acl.length : 0;
  let entries = 0;
  for (const { txn: part } of txn.txns) if ('acl' in part) entries += part.acl.length;
  return entries;
}

/** For an explorer. When it arrived is told to operators only. */
export function writeOrigin(to: Fingerprint, origin: WriteOrigin): void {
  const { cnxn, owner, sessionHigh, sessionLow, cxid, opCode, identities } = origin;
  for (const number of [cnxn, owner, sessionHigh, sessionLow, cxid, opCode, identities.count]) to.number(number);
  for (const { scheme, id } of identities.toList()) to.text(`${scheme}:${id}`);
}

export function closesSession({ opCode }: WriteOrigin): boolean {
  return opCode === OpCode.closeSession;
}
