/**
 * Checks the results of changes of values against the history:
 *
 * - changed: a change that was carried out is there once, a refused one never, one with an unknown
 *   outcome at most once; and nothing else is there.
 * - over: a change that depends on the previous value was made from it, and reports that value.
 * - shown: a value that was shown had been written by that txn.
 * - given: no number is handed out twice, and each by the session that has taken its range.
 */
import { KeeperError } from '@tskeeper/client';
import type { SessionId } from '@tskeeper/protocol';
import type { ZnodeHistory, ZnodeWrite } from './znode-history.ts';

/** The change that a write made. `before` is undefined if there was no znode. */
export interface ValueStep {
  readonly before: string | undefined;
  readonly after: string;
}

export interface ValueChange {
  readonly process: string;
  /** For findings: `add 7`. */
  readonly what: string;
  readonly path: string;
  /** Whether a step was made by this call: no other call writes the same. */
  readonly isOwn: (step: ValueStep) => boolean;
  /** Whether the step was made from the right value. Default: it depends on nothing. */
  readonly fits?: ((step: ValueStep) => boolean) | undefined;
  /** Whether it may be written a second time after a lost reply. */
  readonly mayRepeat?: boolean | undefined;
  /** `open` until the call ends, and for good if its outcome is unknown. */
  state: 'open' | 'carried out' | 'not carried out';
  /** The step that the call reports. */
  reported?: ValueStep | undefined;
}

export class ValueChecker {
  readonly #changes: ValueChange[] = [];
  readonly #shown: { readonly process: string; readonly path: string; readonly data: string; readonly mzxid: bigint }[] = [];
  readonly #issued: { readonly process: string; readonly session: SessionId; readonly path: string; readonly value: number }[] = [];

  /** Records the outcome of a change. `outcome` interprets the result. */
  async recordChange<Result>(
    change: ValueChange,
    call: Promise<Result>,
    outcome: (result: Result) => ValueStep | boolean = () => true,
  ): Promise<Result> {
    this.#changes.push(change);
    try {
      const result = await call;
      const received = outcome(result);
      change.state = received === false ? 'not carried out' : 'carried out';
      if (typeof received === 'object') change.reported = received;
      return result;
    } catch (error) {
      if (error instanceof RangeError || (KeeperError.is(error) && error.outcome !== 'unknown')) change.state = 'not carried out';
      throw error;
    }
  }

  recordShown(process: string, path: string, data: string, mzxid: bigint): void {
    this.#shown.push({ process, path, data, mzxid });
  }

  recordIssued(process: string, session: SessionId, path: string, value: number): void {
    this.#issued.push({ process, session, path, value });
  }

  check(history: ZnodeHistory): string[] {
    const paths = new Set(this.#changes.map(({ path }) => path));
    return [
      ...[...paths].flatMap((path) => this.#checkChanges(path, history)),
      ...this.#checkShown(history),
      ...this.#checkIssued(history),
    ];
  }

  #checkChanges(path: string, history: ZnodeHistory): string[] {
    const findings: string[] = [];
    const changes = this.#changes.filter((change) => change.path === path);
    const times = new Map<ValueChange, number>();
    for (const { before, after, zxid } of stepsOf(path, history)) {
      const step = { before, after };
      const own = changes.find(({ isOwn }) => isOwn(step));
      // The znode of a number is created with 0.
      if (own === undefined && before === undefined && after === '0') continue;
      if (own === undefined) {
        findings.push(`changed: ${path} became ${after} from ${before} at ${zxid}, which no process asked for`);
        continue;
      }
      times.set(own, (times.get(own) ?? 0) + 1);
      const { process, what, fits, reported } = own;
      if (fits?.(step) === false) findings.push(`over: ${what} of ${process} made ${after} of ${before} at ${zxid}`);
      if (reported !== undefined && (reported.before !== before || reported.after !== after))
        findings.push(
          `over: ${what} of ${process} made ${after} of ${before} at ${zxid}, but the result was ${reported.after} of ${reported.before}`,
        );
    }
    for (const change of changes) {
      const { process, what, state, mayRepeat } = change;
      const count = times.get(change) ?? 0;
      const isWrong = { open: count > 1 && !mayRepeat, 'carried out': mayRepeat ? count === 0 : count !== 1, 'not carried out': count > 0 };
      if (isWrong[state]) findings.push(`changed: ${what} of ${process} was ${state}, but is in ${path} ${count} times`);
    }
    return findings;
  }

  #checkShown({ writes }: ZnodeHistory): string[] {
    return this.#shown.flatMap(({ process, path, data, mzxid }) => {
      const was = writes.some((write) => write.path === path && BigInt(write.zxid) === mzxid && write.data === data);
      return was ? [] : [`shown: ${process} was shown ${data} of ${mzxid} as ${path}, which never existed`];
    });
  }

  #checkIssued(history: ZnodeHistory): string[] {
    const givenTo = new Map<string, string>();
    return this.#issued.flatMap(({ process, session, path, value }) => {
      const key = `${path} ${value}`;
      const other = givenTo.get(key);
      givenTo.set(key, process);
      if (other !== undefined) return [`given: ${value} of ${path} was handed to ${other} and to ${process}`];
      const isTaken = stepsOf(path, history).some(
        (step) => step.session === session && Number(step.before) <= value && value < Number(step.after),
      );
      return isTaken ? [] : [`given: ${process} was handed ${value} of ${path}, which its session has not taken`];
    });
  }
}

function stepsOf(path: string, { writes }: ZnodeHistory): (ValueStep & Pick<ZnodeWrite, 'zxid' | 'session'>)[] {
  const own = writes.filter((write) => write.path === path);
  return own.map(({ data, zxid, session }, at) => ({ before: own[at - 1]?.data, after: data, zxid, session }));
}
