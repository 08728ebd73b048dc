/**
 * A multi being validated: all parts or none, under one zxid. A part is validated against the state
 * after the earlier ones.
 */
import { ErrorCode, type MultiMember, type MultiTxn, OpCode, type Reader, readMultiRequestOp, type Zxid } from '@tskeeper/protocol';
import type { Now } from '../now.ts';
import { type MultiWrite, toMultiWrite } from './multi-parts.ts';
import type { OutstandingChanges } from './outstanding-changes.ts';
import { errorTxn, type PrepareResult, type WriteOrigin } from '../pending/proposal.ts';
import { bytesPerUnit, unitsPerPart } from '../step-budget.ts';
import type { WriteValidator } from './write-validator.ts';

export class PendingMulti {
  readonly #origin: WriteOrigin;
  readonly #reader: Reader;
  readonly #zxid: Zxid;
  readonly #now: Now;
  readonly #validator: WriteValidator;
  readonly #outstandingChanges: OutstandingChanges;
  readonly txns: MultiMember[] = [];
  hasFailed = false;

  /** `reader` is placed over the record of the multi. */
  constructor(
    origin: WriteOrigin,
    reader: Reader,
    zxid: Zxid,
    now: Now,
    validator: WriteValidator,
    outstandingChanges: OutstandingChanges,
  ) {
    this.#origin = origin;
    this.#reader = reader;
    this.#zxid = zxid;
    this.#now = now;
    this.#validator = validator;
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
    while (left > 0 && !validator.isEntryTooLong) {
      const op = readMultiRequestOp(this.#reader);
      if (op === undefined) return true;
      const part = toMultiWrite(op);
      left -= unitsPerPart;
      if (this.hasFailed) {
        this.txns.push(errorTxn(ErrorCode.RuntimeInconsistency));
        continue;
      }
      const digestedBefore = outstandingChanges.digestedBytes;
      const aclWorkBefore = validator.aclWorkUnits;
      const result = this.#validatePart(part);
      left -= (outstandingChanges.digestedBytes - digestedBefore) / bytesPerUnit + validator.aclWorkUnits - aclWorkBefore;
      if (typeof result === 'number') this.hasFailed = true;
      this.txns.push(typeof result === 'number' ? errorTxn(result) : (result as MultiMember));
    }
    return false;
  }

  #validatePart(part: MultiWrite): PrepareResult {
    const validator = this.#validator;
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
      default:
        return part satisfies never;
    }
  }
}
