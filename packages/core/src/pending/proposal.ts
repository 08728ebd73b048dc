import { type ErrorTxn, type Millis, OpCode, type Txn, type TxnDigest, type TxnHeader, type Zxid } from '@tskeeper/protocol';
import { Identities } from '../auth/identities.ts';
import type { Fingerprint } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import type { CnxnId, SessionOwner } from '../client-output.ts';
import { localOwner } from '../session/session-tracker.ts';
import type { NodeId } from '../tree/data-tree.ts';

/** The id of no connection. */
export const noCnxn: CnxnId = -1;

/** The origin of a write. The server's own requests (expiry, sweeps) have no connection. */
export interface WriteOrigin {
  readonly kind: 'write';
  /** `noCnxn` if no connection waits for a reply. */
  readonly cnxn: CnxnId;
  /**
   * The server through which it came. `previousOwner` if the session has since moved to another
   * connection at that server.
   */
  owner: SessionOwner;
  readonly sessionHigh: number;
  readonly sessionLow: number;
  /** The client's xid, 0 for the server's own requests. */
  readonly cxid: number;
  readonly opCode: number;
  /** Cleared once a forwarded request has been validated, so that they can be freed. */
  identities: Identities;
  /**
   * Bytes of its record and its identities at a learner, from forwarding to the reply. 0 elsewhere:
   * a proposal is counted by itself.
   */
  readonly heldBytes: number;
  /** Bytes of its record, if a client of this server sent it; otherwise 0. */
  readonly frameBytes: number;
  /**
   * It creates an ephemeral, but its session is local and may not become global: it is answered
   * EphemeralOnLocalSession.
   */
  readonly isUpgradeRefused: boolean;
  /**
   * The parts of a multi that contains operations of ClickHouse Keeper, which only such a multi may;
   * `partsKnownElsewhere` if another server answers it. undefined for any other write.
   */
  readonly keeperParts: readonly KeeperPart[] | undefined;
  readonly arrivedMs: Millis;
}

/** A part of a multi with operations of Keeper, as far as its result depends on it. */
export interface KeeperPart {
  readonly opCode: number;
  /** The path of a removeRecursive; empty for any other part. */
  readonly path: string;
}

/** For a multi whose client is connected to another server. */
export const partsKnownElsewhere: readonly KeeperPart[] = [];

/**
 * A write that has been validated, has its zxid, and waits for the log (and, in an ensemble, for a
 * quorum).
 */
export interface Proposal {
  readonly zxid: Zxid;
  readonly origin: WriteOrigin;
  readonly header: TxnHeader;
  readonly txn: Txn;
  /**
   * The znode that a setData changes: it was in the tree at validation, and no earlier proposal
   * removes it. 0 if unknown.
   */
  readonly node: NodeId;
  readonly digest: TxnDigest | undefined;
  /** Size of the log entry. */
  readonly bytes: number;
}

/** A txn with its type, or the error code that replaces it. */
export type PrepareResult = TypedTxn | number;

export interface TypedTxn {
  readonly type: number;
  readonly txn: Txn;
  /** The znode that the txn changes, if it is known to be the same when the txn is applied. */
  readonly node?: NodeId;
}

/** A write or sync that another server has forwarded for its client. */
export interface ForwardedRequest {
  readonly owner: SessionOwner;
  readonly sessionHigh: number;
  readonly sessionLow: number;
  readonly cxid: number;
  readonly opCode: number;
  readonly identities: Identities;
  /** The record of the request, owned by the receiver. */
  readonly record: Buffer;
  readonly arrivedMs: Millis;
  /** As in `WriteOrigin`. */
  readonly keeperParts?: readonly KeeperPart[] | undefined;
}

export function errorTxn(err: number): { readonly type: typeof OpCode.error; readonly txn: ErrorTxn } {
  return { type: OpCode.error, txn: { kind: 'error', err } };
}

/** A request of the server itself, for a session or for none (0, 0). */
export function serverOrigin(opCode: number, high: number, low: number, now: Now): WriteOrigin {
  return {
    kind: 'write',
    cnxn: noCnxn,
    owner: localOwner,
    sessionHigh: high,
    sessionLow: low,
    cxid: 0,
    opCode,
    identities: Identities.none,
    heldBytes: 0,
    frameBytes: 0,
    isUpgradeRefused: false,
    keeperParts: undefined,
    arrivedMs: now.elapsedMs,
  };
}

/**
 * Whether the operation takes a zxid. deleteContainer is the server's own; a client that sends it
 * gets an error as for an unknown operation.
 */
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
    case OpCode.transferLeader:
    case OpCode.closeSession:
      return true;
    default:
      return isKeeperWrite(opCode);
  }
}

/** Whether it is a write that only ClickHouse Keeper has, and this project with its option. */
export function isKeeperWrite(opCode: number): boolean {
  return opCode === OpCode.createIfNotExists || opCode === OpCode.removeRecursive || opCode === OpCode.tryRemove;
}

/** Number of znodes that a txn changes, if it can change more than one; otherwise 0. */
export function changeCountOf(txn: Txn): number {
  switch (txn.kind) {
    case 'multi':
      return txn.txns.length;
    case 'closeSession':
      return txn.paths2Delete?.length ?? 0;
    default:
      return 0;
  }
}

/** Number of entries of the ACLs that a txn sets. */
export function aclEntryCountOf(txn: Txn): number {
  if (txn.kind !== 'multi') return 'acl' in txn ? txn.acl.length : 0;
  let entries = 0;
  for (const { txn: part } of txn.txns) if ('acl' in part) entries += part.acl.length;
  return entries;
}

/** Writes an origin for an explorer. The time of arrival is left out: only operators see it. */
export function fingerprintWriteOrigin(to: Fingerprint, origin: WriteOrigin): void {
  const { cnxn, owner, sessionHigh, sessionLow, cxid, opCode, identities, isUpgradeRefused } = origin;
  for (const number of [cnxn, owner, sessionHigh, sessionLow, cxid, opCode, identities.count]) to.number(number);
  to.number(isUpgradeRefused ? 1 : 0);
  to.number(origin.keeperParts?.length ?? -1);
  for (const { scheme, id } of identities.toList()) to.text(`${scheme}:${id}`);
}

export function isCloseSession({ opCode }: WriteOrigin): boolean {
  return opCode === OpCode.closeSession;
}
