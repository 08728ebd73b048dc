/**
 * Why a call failed, in ZooKeeper's words.
 *
 * The class is branded, so that `KeeperError.is` also knows the errors of a second copy of this package in the same program.
 */
import { ErrorCode, type ErrorName, errorName, keeperErrorMessage } from '@tskeeper/protocol';

/** `NoNode`, `BadVersion`, `ConnectionLoss` ...; `Unknown` for a number that no release of ZooKeeper has given a meaning. */
export type KeeperErrorCode = Exclude<ErrorName, 'Ok'> | 'Unknown';

/**
 * What became of the request.
 * - `refused`: a server has judged it, and nothing was changed.
 * - `notSent`: it never left this process, so it was certainly not carried out.
 * - `unknown`: it was sent and not answered; it may or may not have been carried out, or may still be.
 */
export type Outcome = 'refused' | 'notSent' | 'unknown';

/** What became of one operation of a multi that failed. */
export interface OperationOutcome {
  /** `Ok` before the operation that failed, `RuntimeInconsistency` behind it; nothing was carried out in either case. */
  readonly code: KeeperErrorCode | 'Ok';
  /** ZooKeeper's number for it; 0 for `Ok`. */
  readonly errno: number;
}

/** Why a request failed, before anyone has put it into words for the caller. Thrown by decoders and kept off the stack machinery, which is dear. */
export class Refusal {
  readonly errno: number;
  readonly outcome: Outcome;
  /** One clause that says more than the code; undefined when the code says all. */
  readonly reason: string | undefined;
  readonly cause: unknown;
  readonly failedIndex: number | undefined;
  readonly results: readonly OperationOutcome[] | undefined;

  constructor(
    errno: number,
    outcome: Outcome,
    reason?: string,
    more: { readonly cause?: unknown; readonly failedIndex?: number; readonly results?: readonly OperationOutcome[] } = {},
  ) {
    this.errno = errno;
    this.outcome = outcome;
    this.reason = reason;
    this.cause = more.cause;
    this.failedIndex = more.failedIndex;
    this.results = more.results;
  }
}

/** Shared by all copies of this package that a program may have loaded. */
const brand: unique symbol = Symbol.for('tskeeper.KeeperError') as never;

/** Errors whose cause may pass, so that the same call on the same client may succeed later. */
const passing: ReadonlySet<number> = new Set<number>([
  ErrorCode.ConnectionLoss,
  ErrorCode.OperationTimeout,
  ErrorCode.RequestTimeout,
  ErrorCode.NewConfigNoQuorum,
  ErrorCode.ReconfigInProgress,
  ErrorCode.SessionMoved,
  ErrorCode.ThrottledOp,
  // The client goes on to a server with a quorum as soon as there is one.
  ErrorCode.NotReadOnly,
]);

export function isPassing(errno: number): boolean {
  return passing.has(errno);
}

export function codeOf(errno: number): KeeperErrorCode {
  const name = errorName(errno);
  return name === undefined || name === 'Ok' ? 'Unknown' : name;
}

/** Why a call failed (KeeperException). Told apart by `code`, and known by `KeeperError.is`, also across two copies of this package. */
export class KeeperError extends Error {
  override readonly name = 'KeeperError';
  /** Match on this. */
  readonly code: KeeperErrorCode;
  /** ZooKeeper's number for it: -101 for NoNode. */
  readonly errno: number;
  /** The method that was called: `create`. */
  readonly op: string;
  /** As the caller gave it, that is without the chroot; undefined for a call without a path, and for a multi that failed as a whole. */
  readonly path: string | undefined;
  /**
   * Whether the cause may pass, so that the same call may succeed when it is made again on this client. Whether repeating is *safe* is
   * another question: with `outcome` `unknown` the first call may have been carried out.
   */
  readonly retryable: boolean;
  /** What became of the request: what to know before repeating a write. */
  readonly outcome: Outcome;
  /** One clause that says more than the code, for people; undefined when the code says all. Part of `message`. */
  readonly reason: string | undefined;
  /** Of a multi: which operation failed, counted from 0. */
  readonly failedIndex: number | undefined;
  /** Of a multi: what became of each operation. */
  readonly results: readonly OperationOutcome[] | undefined;

  constructor(op: string, path: string | undefined, refusal: Refusal) {
    const { errno, outcome, reason, cause, failedIndex, results } = refusal;
    super(keeperErrorMessage(errno, path) + (reason === undefined ? '' : ` (${reason})`), cause === undefined ? undefined : { cause });
    this.code = codeOf(errno);
    this.errno = errno;
    this.op = op;
    this.path = path;
    this.retryable = isPassing(errno);
    this.outcome = outcome;
    this.reason = reason;
    this.failedIndex = failedIndex;
    this.results = results;
  }

  /** What `is` looks for. */
  get [brand](): true {
    return true;
  }

  /** Whether something thrown is a KeeperError, with one of these codes if any are given. Throws a TypeError for a word that is not a code. */
  static is<Code extends KeeperErrorCode = KeeperErrorCode>(
    error: unknown,
    ...codes: readonly Code[]
  ): error is KeeperError & { readonly code: Code } {
    if (codes.length > 0) checkErrorCodes(codes);
    if (typeof error !== 'object' || error === null || !(brand in error)) return false;
    return codes.length === 0 || codes.includes((error as unknown as KeeperError).code as Code);
  }
}

const errorCodes: ReadonlySet<string> = new Set([...Object.keys(ErrorCode), 'Unknown']);

/** Throws a TypeError for a word that is not an error code of ZooKeeper: an error would never have it. */
function checkErrorCodes(codes: readonly unknown[]): void {
  for (const code of codes) {
    if (typeof code === 'string' && errorCodes.has(code)) continue;
    const plain = String(code).toLowerCase().replaceAll('_', '');
    const near = [...errorCodes].find((each) => each.toLowerCase() === plain);
    const remedy = near === undefined ? "codes are ZooKeeper's, as in NoNode" : `write ${near}`;
    throw new TypeError(`KeeperError.is: unknown code ${JSON.stringify(code)}; ${remedy}`);
  }
}
