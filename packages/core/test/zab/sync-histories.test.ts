/**
 * The rules of sync-plan.ts in combination: over histories that Zab can produce, a learner always
 * ends with the leader's, and nothing committed is truncated. Each canary breaks one rule, and the
 * same property must detect it.
 */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { CommittedLog } from '../../src/zab/committed-log.ts';
import type { LogStep, OpenedPlan, SnapshotPlan, SyncFacts, SyncPlan } from '../../src/zab/sync-plan.ts';
import { Ensemble, type Happening, type Rules, rules, type Walk } from './histories.ts';

const happening: fc.Arbitrary<Happening> = fc.record({
  what: fc.constantFrom(
    ...([
      'elect',
      'elect',
      'elect',
      'propose',
      'propose',
      'propose',
      'propose',
      'join',
      'join',
      'join',
      'restart',
      'lose',
      'newcomer',
    ] as const),
  ),
  who: fc.nat({ max: 59 }),
  bits: fc.nat({ max: 2 ** 30 }),
});

/** The runs are the same each time, so that coverage can be checked. */
function tellStories(tested: Rules, seen = new Map<string, number>(), numRuns = 300): void {
  fc.assert(
    fc.property(fc.constantFrom(4, 4, 6), fc.array(happening, { minLength: 10, maxLength: 50, size: 'max' }), (count, story) => {
      const ensemble = new Ensemble(count, tested, seen);
      for (const each of story) ensemble.happens(each);
    }),
    { numRuns, seed: 20260, endOnFailure: tested !== rules, includeErrorInReport: true },
  );
}

/** Like ZooKeeper's walk through its log: it trusts everything. */
class TrustingWalk implements Walk {
  result: OpenedPlan | SnapshotPlan | undefined;
  readonly #learnerLast: number;
  #opened: OpenedPlan | undefined;
  #last: number;
  #any = false;

  constructor(learnerLast: number) {
    this.#learnerLast = this.#last = learnerLast;
  }

  next(zxid: number, min: number, max: number): LogStep {
    if (zxid > min) return this.end(min);
    const isFirst = !this.#any;
    this.#any = true;
    if (isFirst && zxid > this.#learnerLast) return this.#refuse();
    if (zxid < this.#learnerLast) return 'pass';
    this.#opened ??= { kind: 'diff', zxid: max, from: this.#learnerLast };
    if (zxid <= this.#last) return 'pass';
    this.#last = zxid;
    return 'send';
  }

  end(min: number): 'met' | 'refused' {
    if (this.#opened === undefined || this.#last < min) return this.#refuse();
    this.result = { ...this.#opened, from: this.#last };
    return 'met';
  }

  #refuse(): 'refused' {
    this.result = { kind: 'snap', reason: 'the log may lack txns' };
    return 'refused';
  }
}

function replanned(replace: (plan: SyncPlan, facts: SyncFacts, committed: CommittedLog) => SyncPlan): Rules {
  return { ...rules, plan: (facts, committed) => replace(rules.plan(facts, committed), facts, committed) };
}

describe('the synchronisation of a learner', () => {
  it("ends with the leader's history, in whatever form the leader has it, and drops nothing committed", () => {
    const seen = new Map<string, number>();
    tellStories(rules, seen);
    // Otherwise this proves less than it claims.
    expect([...seen].filter(([, times]) => times >= 5).map(([way]) => way)).toEqual(
      expect.arrayContaining([
        'diff',
        'trunc',
        'the learner has no txn after which to truncate its log',
        'the last txn of the learner is not in the history, and nothing says where it left it',
        'the learner has no txn from which the committed txns in memory go on, and the log may not be read',
        'the learner stands at the beginning of an epoch that the leader has no txn of',
        'log: diff',
        'log: the log does not reach back to the last txn of the learner',
        'log: the last txn of the learner is not in the history, and nothing says where it left it',
        'log: the log may lack txns',
        'log: the log ends before the committed txns in memory begin',
      ]),
    );
  });

  it.each<[string, Rules, RegExp]>([
    [
      'a learner with a later history keeps it (ZOOKEEPER-1154)',
      replanned((plan) => (plan.kind === 'trunc' ? { ...plan, kind: 'diff' } : plan)),
      /became/,
    ],
    [
      'memory is assumed to follow any history of a learner (ZOOKEEPER-2418)',
      replanned((plan, { leaderLast }, committed) =>
        plan.kind === 'readLog' ? { kind: 'diff', zxid: committed.max(leaderLast), from: committed.min(leaderLast) - 1 } : plan,
      ),
      /became|are missing/,
    ],
    [
      'a log that ends too early is assumed to reach memory (ZOOKEEPER-2418)',
      {
        ...rules,
        walk: (learnerLast, wholeFrom) => {
          const walk = rules.walk(learnerLast, wholeFrom);
          return {
            get result(): Walk['result'] {
              const { result } = walk;
              const hidden = result?.kind === 'snap' && result.reason === 'the log ends before the committed txns in memory begin';
              return hidden ? { kind: 'diff', zxid: 0, from: Number.MAX_SAFE_INTEGER } : result;
            },
            next: (zxid, min, max) => walk.next(zxid, min, max),
            end: (min) => walk.end(min),
          };
        },
      },
      /became/,
    ],
    [
      'every step between epochs is trusted (ZOOKEEPER-2846)',
      { ...rules, walk: (learnerLast) => rules.walk(learnerLast, 0) },
      /became|lost the committed txn/,
    ],
    ['everything in the log is trusted, as in ZooKeeper', { ...rules, walk: (learnerLast) => new TrustingWalk(learnerLast) }, /became/],
    [
      'a learner is sent a TRUNC to the beginning of an epoch',
      replanned((plan, { leaderLast }, committed) =>
        plan.kind === 'snap' && plan.reason === 'the learner has no txn after which to truncate its log'
          ? { kind: 'trunc', zxid: committed.max(leaderLast), from: leaderLast }
          : plan,
      ),
      /which .* has not/,
    ],
    [
      'a learner whose last txn is missing is assumed to have the next one',
      replanned((plan, { learnerLast, leaderLast }, committed) =>
        plan.kind === 'snap' && plan.reason.startsWith('the last txn of the learner is not in the history')
          ? { kind: 'diff', zxid: committed.max(leaderLast), from: learnerLast }
          : plan,
      ),
      /became/,
    ],
    ['memory is sent one txn too late', replanned((plan) => (plan.kind === 'diff' ? { ...plan, from: plan.from + 1 } : plan)), /became/],
    [
      'a learner is truncated by one txn too many',
      replanned((plan) => (plan.kind === 'trunc' ? { ...plan, zxid: plan.zxid - 1 } : plan)),
      /which .* has not|became|lost the committed txn/,
    ],
  ])('would fail and be detected if %s', (_, broken, message) => {
    expect(() => tellStories(broken)).toThrow(message);
  });
});
