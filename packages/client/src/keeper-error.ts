/**
 * Why a call failed, with ZooKeeper's codes.
 *
 * The class has a brand, so that `KeeperError.is` also recognises errors of another copy of this
 * package in the same program.
 */
import { ErrorCode, type ErrorName, errorName, keeperErrorMessage } from '@tskeeper/protocol';

/**
 * `NoNode`, `BadVersion`, `ConnectionLoss` ...; `Unknown` for a number that is not defined by any
 * release of ZooKeeper.
 */
export type KeeperErrorCode = Exclude<ErrorName, 'Ok'> | 'Unknown';

/**
 * What is known about the effect of a request.
 *
 * - `refused`: a server has rejected it; nothing was changed.
 * - `notSent`: the client did not send it; it was certainly not applied.
 * - `unknown`: the client sent it and received no answer; it may have been applied, or may still
 *   be.
 */
export type Outcome = 'refused' | 'notSent' | 'unknown';

/** The result of one operation of a failed multi. */
export interface OperationOutcome {
  /** `Ok` before the failed operation, `RuntimeInconsistency` after it; neither was applied. */
  readonly code: KeeperErrorCode | 'Ok';
  /** ZooKeeper's number; 0 for `Ok`. */
  readonly errno: number;
}

/**
 * Why a request failed, without the call's method and path. Decoders throw it instead of an Error,
 * as capturing a stack is expensive.
 */
export class RequestFailure {
  readonly errno: number;
  readonly outcome: Outcome;
  /** One clause that adds to the code; undefined if the code says everything. */
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

/** Shared by all copies of this package in a program. */
const brand: unique symbol = Symbol.for('tskeeper.KeeperError') as never;

/** Codes with a temporary cause: the same call on the same client may succeed later. */
const retryableErrors: ReadonlySet<number> = new Set<number>([
  ErrorCode.ConnectionLoss,
  ErrorCode.OperationTimeout,
  ErrorCode.RequestTimeout,
  ErrorCode.NewConfigNoQuorum,
  ErrorCode.ReconfigInProgress,
  ErrorCode.SessionMoved,
  ErrorCode.ThrottledOp,
  // The client moves to a server with a quorum as soon as it finds one.
  ErrorCode.NotReadOnly,
]);

/** What some codes do not say. */
const explanations: ReadonlyMap<number, string> = new Map([
  [
    ErrorCode.EphemeralOnLocalSession,
    'the servers keep sessions local: set localSessionsUpgradingEnabled=true on all of them, or do without ephemerals',
  ],
]);

export function isRetryable(errno: number): boolean {
  return retryableErrors.has(errno);
}

export function codeOf(errno: number): KeeperErrorCode {
  const name = errorName(errno);
  return name === undefined || name === 'Ok' ? 'Unknown' : name;
}

/**
 * Why a call failed (KeeperException). Compare `code`; `KeeperError.is` recognises it, also across
 * two copies of this package.
 */
export class KeeperError extends Error {
  override readonly name = 'KeeperError';
  /** The name of the error, to compare with. */
  readonly code: KeeperErrorCode;
  /** ZooKeeper's number: -101 for NoNode. */
  readonly errno: number;
  /** The method that was called: `create`. */
  readonly op: string;
  /**
   * The path that the caller passed, without the chroot; undefined for a call without a path, and
   * for a multi that failed as a whole.
   */
  readonly path: string | undefined;
  /**
   * Whether the cause is temporary, so that the same call may succeed later on this client. This
   * does not mean that a repetition is *safe*: with the `outcome` `unknown` the first call may have
   * been applied.
   */
  readonly retryable: boolean;
  /** What is known about the effect of the request. Check it before you repeat a write. */
  readonly outcome: Outcome;
  /**
   * One readable clause that adds to the code; undefined if the code says everything. Part of
   * `message`.
   */
  readonly reason: string | undefined;
  /** For a multi: index of the failed operation, from 0. */
  readonly failedIndex: number | undefined;
  /** For a multi: the result of each operation. */
  readonly results: readonly OperationOutcome[] | undefined;

  constructor(op: string, path: string | undefined, failure: RequestFailure) {
    const { errno, outcome, cause, failedIndex, results } = failure;
    const reason = failure.reason ?? explanations.get(errno);
    super(keeperErrorMessage(errno, path) + (reason === undefined ? '' : ` (${reason})`), cause === undefined ? undefined : { cause });
    this.code = codeOf(errno);
    this.errno = errno;
    this.op = op;
    this.path = path;
    this.retryable = isRetryable(errno);
    this.outcome = outcome;
    this.reason = reason;
    this.failedIndex = failedIndex;
    this.results = results;
  }

  /** The property that `is` looks for. */
  get [brand](): true {
    return true;
  }

  /**
   * Whether `error` is a KeeperError, and has one of the `codes` if any are given. Throws a
   * TypeError for an unknown code.
   */
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

/**
 * Throws a TypeError for a word that is not an error code of ZooKeeper: no error would ever match
 * it.
 */
function checkErrorCodes(codes: readonly unknown[]): void {
  for (const code of codes) {
    if (typeof code === 'string' && errorCodes.has(code)) continue;
    const plain = String(code).toLowerCase().replaceAll('_', '');
    const near = [...errorCodes].find((each) => each.toLowerCase() === plain);
    const remedy = near === undefined ? "use one of ZooKeeper's codes, such as NoNode" : `write ${near}`;
    throw new TypeError(`KeeperError.is: unknown code ${JSON.stringify(code)}; ${remedy}`);
  }
}
