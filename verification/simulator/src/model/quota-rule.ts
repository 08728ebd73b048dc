/**
 * The check of a write against the quotas. It compares with the tree as it was when the request
 * arrived; for the operations of a multi that is the tree before the first of them.
 */
import { ErrorCode } from '@tskeeper/protocol';
import { Refusal } from './refusal.ts';
import type { ModelTree } from './model-tree.ts';
import { exceedsQuota, type QuotaCheck, type Quotas } from './quotas.ts';

export class QuotaRule {
  readonly #isEnforced: boolean;
  readonly #tree: ModelTree;
  /** While a multi is validated: the tree before its first operation. */
  #treeBeforeMulti: ModelTree | undefined;
  /** The operation of the multi that is validated; 0 outside a multi. */
  #part = 0;
  /**
   * If set, it decides instead of the model whether a request exceeds a quota. A server compares
   * the request with its tree, which may lag the last proposal.
   */
  oracle: ((question: QuotaCheck) => boolean) | undefined;

  constructor(isEnforced: boolean, tree: ModelTree) {
    this.#isEnforced = isEnforced;
    this.#tree = tree;
  }

  /** Refuses a request that would add more to `path` than a hard limit permits. */
  require(path: string, bytes: number, count: number): void {
    if (!this.#isEnforced) return;
    const question: QuotaCheck = { path, bytes, count, part: this.#part };
    const isExceeded = this.oracle ?? ((each) => exceedsQuota(this.quotas(), each));
    if (isExceeded(question)) throw new Refusal(ErrorCode.QuotaExceeded);
  }

  /** The quotas that apply to requests now. */
  quotas(): Quotas {
    return (this.#treeBeforeMulti ?? this.#tree).quotas();
  }

  beginPart(treeBeforeMulti: ModelTree, part: number): void {
    this.#treeBeforeMulti = treeBeforeMulti;
    this.#part = part;
  }

  endMulti(): void {
    this.#treeBeforeMulti = undefined;
    this.#part = 0;
  }
}
