/**
 * A multi being validated: all parts or none, under one zxid. A part is validated against the state
 * after the earlier ones.
 */
import { ErrorCode, type MultiMember, type MultiTxn, OpCode, type Reader, readMultiRequestOp, type Zxid } from '@tskeeper/protocol';
import type { Now } from '../now.ts';
import type { KeeperWrites } from './keeper-writes.ts';
import { nothing } from './keeper-writes.ts';
import { type MultiWrite, toMultiWrite } from './multi-parts.ts';
import type { OutstandingChanges } from './outstanding-changes.ts';
import type { PendingRemoval } from './pending-removal.ts';
import { errorTxn, type PrepareResult, type WriteOrigin } from '../pending/proposal.ts';
import { bytesPerUnit, unitsPerPart } from '../step-budget.ts';
import type { WriteValidator } from './write-validator.ts';

export class PendingMulti {
  readonly #origin: WriteOrigin;
  readonly #reader: Reader;
  readonly #zxid: Zxid;
  readonly #now: Now;
  readonly #validator: WriteValidator;
  readonly #keeperWrites: KeeperWrites;
  readonly #outstandingChanges: OutstandingChanges;
  readonly txns: MultiMember[] = [];
  /** The removeRecursive that is being validated. */
  #removal: PendingRemoval | undefined;
  /** Where the deletes of earlier ones are in `txns`, and their bytes. */
  readonly #removals: { readonly start: number; readonly count: number }[] = [];
  #removalBytes = 0;
  hasFailed = false;

  /** `reader` is placed over the record of the multi. */
  constructor(
    origin: WriteOrigin,
    reader: Reader,
    zxid: Zxid,
    now: Now,
    validator: WriteValidator,
    keeperWrites: KeeperWrites,
    outstandingChanges: OutstandingChanges,
  ) {
    this.#origin = origin;
    this.#reader = reader;
    this.#zxid = zxid;
    this.#now = now;
    this.#validator = validator;
    this.#keeperWrites = keeperWrites;
    this.#outstandingChanges = outstandingChanges;
  }

  txn(): MultiTxn {
    return { kind: 'multi', txns: this.txns };
  }

  /**
   * Decodes and validates further parts, for about `budget` units; returns whether none is left.
   * After a part has failed, the others are still decoded: a request that cannot be decoded is
   * refused as such, whatever else is wrong with it.
   */
  validateParts(budget: number): boolean {
    const validator = this.#validator;
    const outstandingChanges = this.#outstandingChanges;
    let left = budget;
    const withKeeper = this.#origin.keeperParts !== undefined;
    while (left > 0 && !validator.isEntryTooLong) {
      if (this.#removal !== undefined) {
        const spentBefore = this.#removal.workUnits;
        if (!this.#removal.advance(left)) return false;
        left -= this.#removal.workUnits - spentBefore;
        this.#endRemoval(this.#removal);
      }
      const op = readMultiRequestOp(this.#reader);
      if (op === undefined) return true;
      const part = toMultiWrite(op, withKeeper);
      left -= unitsPerPart;
      if (this.hasFailed) {
        this.txns.push(errorTxn(ErrorCode.RuntimeInconsistency));
        continue;
      }
      if (part.kind === 'removeRecursive') {
        this.#removal = this.#keeperWrites.removal(this.#origin, part.path!, part.limit, this.#zxid, this.#removalBytes);
        continue;
      }
      const digestedBefore = outstandingChanges.digestedBytes;
      const aclWorkBefore = validator.aclWorkUnits;
      const result = this.#validatePart(part);
      left -= (outstandingChanges.digestedBytes - digestedBefore) / bytesPerUnit + validator.aclWorkUnits - aclWorkBefore;
      if (typeof result === 'number') this.#fail(result);
      else this.txns.push(result as MultiMember);
    }
    return false;
  }

  /** Adds the deletes of a removeRecursive. */
  #endRemoval(removal: PendingRemoval): void {
    this.#removal = undefined;
    this.#removalBytes += removal.bytes;
    const { error, path, deletes } = removal;
    if (error !== undefined) return this.#fail(error);
    if (deletes.length === 0) {
      this.txns.push(nothing(path) as MultiMember);
      return;
    }
    this.#removals.push({ start: this.txns.length, count: deletes.length });
    for (const each of deletes) this.txns.push(each);
  }

  /**
   * The part decoded last is refused, and so is the multi. In the txn of a refused one each part has
   * one place: of the deletes of a removeRecursive the last is left.
   */
  #fail(error: number): void {
    this.hasFailed = true;
    for (const { start, count } of this.#removals.toReversed()) this.txns.splice(start, count - 1);
    this.txns.push(errorTxn(error));
  }

  #validatePart(part: Exclude<MultiWrite, { kind: 'removeRecursive' }>): PrepareResult {
    const validator = this.#validator;
    const keeperWrites = this.#keeperWrites;
    const origin = this.#origin;
    const zxid = this.#zxid;
    const now = this.#now;
    switch (part.kind) {
      case 'create':
      case 'create2':
      case 'createContainer':
        return validator.create(origin, OpCode[part.kind], part, -1, zxid, now);
      case 'createTTL':
        return validator.create(origin, OpCode.createTTL, part, part.ttl, zxid, now);
      case 'delete':
        return validator.delete(origin, part, zxid);
      case 'setData':
        return validator.setData(origin, part, zxid, now);
      case 'check':
        return validator.check(origin, part);
      case 'createIfNotExists':
        return keeperWrites.createIfNotExists(origin, part, zxid, now);
      case 'tryRemove':
        return keeperWrites.tryRemove(origin, part, zxid);
      case 'checkNotExists':
        return keeperWrites.checkNotExists(origin, part);
      case 'checkStat':
        return keeperWrites.checkStat(origin, part);
      default:
        return part satisfies never;
    }
  }
}
