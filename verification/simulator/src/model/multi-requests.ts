/** Multi, whose operations succeed together or not at all, and multiRead. */
import { CreateMode, ErrorCode, OpCode } from '@tskeeper/protocol';
import { type Admitted, isKeeperOperation } from './admitted-request.ts';
import type { ModelOptions } from './model-options.ts';
import type { Connections } from './connections.ts';
import type { ModelTree } from './model-tree.ts';
import type { Body, MultiResult, ReadStep, WriteStep } from './operation-types.ts';
import type { Outbox } from './outbox.ts';
import type { QuotaRule } from './quota-rule.ts';
import type { ReadRequests } from './read-requests.ts';
import { Refusal } from './refusal.ts';
import type { WriteRequests } from './write-requests.ts';

type Step = WriteStep | ReadStep;

function isReadStep(step: Step): step is ReadStep {
  return step.kind === 'getData' || step.kind === 'getChildren';
}

/**
 * A step as the decoder reads it: stricter than outside a multi, and the flags choose the opcode.
 */
function decodedStep(step: Step, withKeeper: boolean): WriteStep {
  const marshalling = new Refusal(ErrorCode.MarshallingError);
  if (isKeeperOperation(step) && !withKeeper) throw marshalling;
  if (isReadStep(step)) throw marshalling;
  if (step.kind === 'createTTL') {
    const { flags, path, data, acl } = step;
    if (flags === CreateMode.persistentWithTtl || flags === CreateMode.persistentSequentialWithTtl) return step;
    return { kind: flags === CreateMode.container ? 'createContainer' : 'create', path, data, acl, flags };
  }
  if (step.kind === 'create' || step.kind === 'create2' || step.kind === 'createContainer') {
    if (step.flags < 0 || step.flags > CreateMode.container || step.acl === null) throw marshalling;
    return step.flags === CreateMode.container ? { ...step, kind: 'createContainer' } : step;
  }
  return step;
}

/** What a multi changes, and puts back if it fails. */
interface MultiState {
  readonly tree: ModelTree;
  readonly connections: Connections;
  readonly outbox: Outbox;
  readonly quotaRule: QuotaRule;
}

export class MultiRequests {
  readonly #javaCompatible: boolean;
  readonly #keeperExtensions: boolean;
  readonly #state: MultiState;
  readonly #writes: WriteRequests;
  readonly #reads: ReadRequests;

  constructor(
    { javaCompatible, keeperExtensions }: Pick<ModelOptions, 'javaCompatible' | 'keeperExtensions'>,
    state: MultiState,
    writes: WriteRequests,
    reads: ReadRequests,
  ) {
    this.#javaCompatible = javaCompatible;
    this.#keeperExtensions = keeperExtensions;
    this.#state = state;
    this.#writes = writes;
    this.#reads = reads;
  }

  multi(steps: readonly Step[], request: Admitted): MultiResult[] {
    const writes = steps.map((step) => decodedStep(step, this.#keeperExtensions));
    if (writes.some(({ path }) => path === null)) throw new Refusal(ErrorCode.MarshallingError);
    const { tree, connections, outbox, quotaRule } = this.#state;
    const treeBefore = tree.copy();
    const cnxnsBefore = connections.save();
    const sentBefore = outbox.length;
    const results: MultiResult[] = [];
    try {
      // Each step is validated against the tree after the steps before it, but quotas against what
      // was applied when the multi arrived.
      for (const [part, step] of writes.entries()) {
        quotaRule.beginPart(treeBefore, part);
        results.push(this.#writes.perform(step, request));
      }
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      tree.restore(treeBefore);
      connections.restore(cnxnsBefore);
      outbox.truncate(sentBefore);
      const failed = results.length;
      return writes.map((_, at) => {
        const err = at < failed ? ErrorCode.Ok : at === failed ? error.code : ErrorCode.RuntimeInconsistency;
        return { type: OpCode.error, err, body: { err } };
      });
    } finally {
      quotaRule.endMulti();
    }
    return results;
  }

  multiRead(steps: readonly Step[], request: Admitted): { err: number; body: Body | null } {
    // Java fails at a null path when it reaches it, and sends the results so far; we refuse the
    // request as a whole.
    if (!this.#javaCompatible && steps.some(({ path }) => path === null)) throw new Refusal(ErrorCode.MarshallingError);
    const reads = steps.filter(isReadStep);
    if (reads.length > 0 && reads.length < steps.length) throw new Refusal(ErrorCode.MarshallingError);
    // Java notices writes only at their turn, and then sends an empty list of results.
    if (reads.length < steps.length) {
      for (const step of steps) decodedStep(step, false);
      return { err: ErrorCode.MarshallingError, body: { results: [] } };
    }
    const results: MultiResult[] = [];
    for (const step of reads) {
      if (step.path === null) return { err: ErrorCode.MarshallingError, body: { results } };
      try {
        const type = step.kind === 'getData' ? OpCode.getData : OpCode.getChildren;
        results.push({ type, err: ErrorCode.Ok, body: this.#reads.perform(step, request, false) });
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        results.push({ type: OpCode.error, err: error.code, body: { err: error.code } });
      }
    }
    return { err: ErrorCode.Ok, body: { results } };
  }
}
