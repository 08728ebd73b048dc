/**
 * The rules one by one; sync-histories.test.ts checks them in combination.
 */
import { makeZxid } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { CommittedLog } from '../../src/zab/committed-log.ts';
import { logBytesMax, LogWalk, type OpenedPlan, planSync, type SnapshotPlan, type SyncPlan } from '../../src/zab/sync-plan.ts';

/** `1:5` is txn 5 of epoch 1, `1:0` the beginning of epoch 1. */
function z(text: string): number {
  const [epoch, counter] = text.split(':').map(Number);
  return makeZxid(epoch!, counter!);
}

/** `1:1-1:3 2:1` is four txns. */
function list(text: string): number[] {
  return text
    .split(' ')
    .filter((part) => part !== '')
    .flatMap((part) => {
      const [first, last = first] = part.split('-').map(z);
      return Array.from({ length: last! - first! + 1 }, (_, i) => first! + i);
    });
}

function show(zxid: number): string {
  return `${Math.floor(zxid / 2 ** 32)}:${zxid >>> 0}`;
}

function received(plan: SyncPlan): string {
  switch (plan.kind) {
    case 'snap':
      return `SNAP, ${plan.reason}`;
    case 'readLog':
      return `read the log from ${show(plan.from)}`;
    default:
      return `${plan.kind.toUpperCase()} ${show(plan.zxid)} and all above ${show(plan.from)}`;
  }
}

function committedLog(text: string): CommittedLog {
  const log = new CommittedLog({ countMax: 500, bytesMax: 1 << 20 });
  for (const zxid of list(text)) log.append(zxid, Buffer.alloc(10));
  return log;
}

interface Case {
  readonly learner: string;
  readonly leader: string;
  readonly memory: string;
  readonly plan: string;
  readonly force?: boolean;
  readonly noLog?: boolean;
}

const noLog = 'the learner has no txn from which the committed txns in memory go on, and the log may not be read';
const beyond = 'the learner stands at the beginning of an epoch that the leader has no txn of';
const uncuttable = 'the learner has no txn after which to truncate its log';
const undecided = 'the last txn of the learner is not in the history, and nothing says where it left it';

describe('planSync', () => {
  const rule1: Case[] = [
    { learner: '1:5', leader: '1:5', memory: '1:1-1:5', force: true, plan: 'SNAP, forceSnapshotSync is set' },
    { learner: '1:3', leader: '1:5', memory: '1:1-1:5', force: true, plan: 'SNAP, forceSnapshotSync is set' },
  ];
  const rule2: Case[] = [
    { learner: '1:5', leader: '1:5', memory: '1:1-1:5', plan: 'DIFF 1:5 and all above 1:5' },
    { learner: '1:5', leader: '1:5', memory: '', plan: 'DIFF 1:5 and all above 1:5' },
    { learner: '0:0', leader: '0:0', memory: '', plan: 'DIFF 0:0 and all above 0:0' },
    { learner: '2:0', leader: '2:0', memory: '1:1-1:5', plan: 'DIFF 2:0 and all above 2:0' },
  ];
  const rule3: Case[] = [
    { learner: '1:6', leader: '1:5', memory: '1:1-1:5', plan: 'TRUNC 1:5 and all above 1:5' },
    { learner: '2:3', leader: '1:5', memory: '1:1-1:5', plan: 'TRUNC 1:5 and all above 1:5' },
    { learner: '1:6', leader: '1:5', memory: '', plan: 'TRUNC 1:5 and all above 1:5' },
    { learner: '2:3', leader: '2:0', memory: '1:1-1:5', plan: 'TRUNC 1:5 and all above 1:5' },
    { learner: '3:0', leader: '2:0', memory: '1:1-1:5', plan: `SNAP, ${beyond}` },
    { learner: '2:0', leader: '3:0', memory: '1:1-1:5', plan: `SNAP, ${beyond}` },
    { learner: '2:0', leader: '1:5', memory: '', plan: `SNAP, ${beyond}` },
    { learner: '2:1', leader: '2:0', memory: '', plan: `SNAP, ${uncuttable}` },
    { learner: '0:4', leader: '0:0', memory: '', plan: `SNAP, ${uncuttable}` },
  ];
  const rule4: Case[] = [
    { learner: '1:4', leader: '1:5', memory: '1:1-1:5', plan: 'DIFF 1:5 and all above 1:4' },
    { learner: '1:2', leader: '1:5', memory: '1:2-1:5', plan: 'DIFF 1:5 and all above 1:2' },
    { learner: '1:5', leader: '2:0', memory: '1:1-1:5', plan: 'DIFF 1:5 and all above 1:5' },
    { learner: '1:5', leader: '3:2', memory: '1:1-1:5 3:1-3:2', plan: 'DIFF 3:2 and all above 1:5' },
    { learner: '2:0', leader: '3:2', memory: '1:1-1:5 3:1-3:2', plan: 'DIFF 3:2 and all above 2:0' },
    { learner: '3:0', leader: '3:2', memory: '1:1-1:5 3:1-3:2', plan: 'DIFF 3:2 and all above 3:0' },
    { learner: '1:6', leader: '3:2', memory: '1:1-1:5 3:1-3:2', plan: `SNAP, ${undecided}` },
    { learner: '2:1', leader: '3:2', memory: '1:1-1:5 3:1-3:2', plan: `SNAP, ${undecided}` },
  ];
  const rule5: Case[] = [
    { learner: '1:1', leader: '1:5', memory: '1:2-1:5', plan: 'read the log from 1:1' },
    { learner: '1:4', leader: '1:5', memory: '', plan: 'read the log from 1:4' },
    { learner: '1:0', leader: '1:5', memory: '1:1-1:5', plan: 'read the log from 1:0' },
    { learner: '0:0', leader: '1:5', memory: '1:1-1:5', plan: 'read the log from 0:0' },
  ];
  const rule6: Case[] = [
    { learner: '1:1', leader: '1:5', memory: '1:2-1:5', noLog: true, plan: `SNAP, ${noLog}` },
    { learner: '1:4', leader: '1:5', memory: '', noLog: true, plan: `SNAP, ${noLog}` },
  ];

  function check({ learner, leader, memory, plan, force = false, noLog: forbidden = false }: Case): void {
    const facts = {
      learnerLast: z(learner),
      leaderLast: z(leader),
      forceSnapshotSync: force,
      logBytesMax: forbidden ? undefined : 1000,
    };
    expect(received(planSync(facts, committedLog(memory)))).toBe(plan);
  }

  it.each(rule1)('A52: sends a snapshot to every learner if configured: learner at $learner', check);
  it.each(rule2)("A52: sends an empty DIFF to a learner with the leader's last zxid: $learner, memory [$memory]", check);
  it.each(rule3)(
    'A52: truncates txns that the leader does not have: learner at $learner, leader at $leader, memory [$memory]: $plan',
    check,
  );
  it.each(rule4)('A52: uses the committed txns in memory: learner at $learner, memory [$memory]: $plan', check);
  it.each(rule5)('A52: reads the log if the txns in memory begin too late: learner at $learner, memory [$memory]', check);
  it.each(rule6)('A52: sends a snapshot if the log may not be read: learner at $learner, memory [$memory]', check);

  it('sends a snapshot to a learner without a zxid', () => {
    const facts = { learnerLast: -1, leaderLast: z('1:5'), forceSnapshotSync: false, logBytesMax: Infinity };
    expect(received(planSync(facts, committedLog('1:1-1:5')))).toBe('SNAP, the learner has no data');
  });

  it('returns how much of the log may be read', () => {
    const facts = { learnerLast: z('1:1'), leaderLast: z('1:5'), forceSnapshotSync: false };
    expect(planSync({ ...facts, logBytesMax: 330 }, committedLog('1:3-1:5'))).toEqual({ kind: 'readLog', from: z('1:1'), bytesMax: 330 });
  });
});

describe('logBytesMax', () => {
  it.each([
    [0.33, 1000, 330],
    [0.33, 1001, 330],
    [1, 1000, 1000],
    [0, 1000, Infinity],
    [0.33, 0, Infinity],
    [0.33, 3, Infinity],
    [0.33, 4, 1],
    [-1, 1000, undefined],
    [-0.1, 0, undefined],
  ])('for a snapshotSizeFactor of %d and a snapshot of %d bytes is %d', (factor, snapshotBytes, expected) => {
    expect(logBytesMax(factor, snapshotBytes)).toBe(expected);
  });
});

interface Walked {
  /** Txns sent to the learner from the log; those from memory are above the result's `from`. */
  readonly sent: string;
  readonly result: string;
}

function walk(options: { learner: string | number; log: string; memory: string; wholeFrom?: string }): Walked {
  const { learner, log, memory, wholeFrom = '0:0' } = options;
  const committed = list(memory);
  const [min, max] = [committed[0]!, committed.at(-1)!];
  const walker = new LogWalk(typeof learner === 'number' ? learner : z(learner), z(wholeFrom));
  const sent: number[] = [];
  for (const zxid of list(log)) {
    const step = walker.next(zxid, min, max);
    if (step === 'send') sent.push(zxid);
    if (step === 'met' || step === 'refused') break;
  }
  walker.end(min);
  return { sent: sent.map(show).join(' '), result: received(walker.result!) };
}

const short = 'SNAP, the log ends before the committed txns in memory begin';
const notBack = 'SNAP, the log does not reach back to the last txn of the learner';
const doubtful = 'SNAP, the log may lack txns';

describe('LogWalk', () => {
  it.each([
    { learner: '1:3', log: '1:1-1:9', memory: '1:6-1:9', sent: '1:4 1:5 1:6', result: 'DIFF 1:9 and all above 1:6' },
    { learner: '1:3', log: '1:3-1:9', memory: '1:6-1:9', sent: '1:4 1:5 1:6', result: 'DIFF 1:9 and all above 1:6' },
    { learner: '1:3', log: '1:3-1:6', memory: '1:6-1:9', sent: '1:4 1:5 1:6', result: 'DIFF 1:9 and all above 1:6' },
    { learner: '1:3', log: '1:1-1:5 2:1-2:4', memory: '2:2-2:4', sent: '1:4 1:5 2:1 2:2', result: 'DIFF 2:4 and all above 2:2' },
    { learner: '1:5', log: '1:1-1:5 2:1-2:4', memory: '2:2-2:4', sent: '2:1 2:2', result: 'DIFF 2:4 and all above 2:2' },
    { learner: '2:0', log: '1:1-1:5 2:1-2:4', memory: '2:2-2:4', sent: '2:1 2:2', result: 'DIFF 2:4 and all above 2:2' },
    { learner: '2:0', log: '1:1-1:5 3:1-3:4', memory: '3:2-3:4', sent: '3:1 3:2', result: 'DIFF 3:4 and all above 3:2' },
  ])('sends the txns between the learner and memory, and none twice: learner at $learner, log [$log]', ({ sent, result, ...given }) => {
    expect(walk(given)).toEqual({ sent, result });
  });

  it.each([
    { learner: '1:5', log: '1:4 1:6-1:9', memory: '1:8-1:9', sent: '1:6 1:7 1:8', result: 'TRUNC 1:4 and all above 1:8' },
    { learner: '1:5', log: '1:3 1:4 1:3 1:6-1:9', memory: '1:8-1:9', sent: '1:6 1:7 1:8', result: 'TRUNC 1:4 and all above 1:8' },
    { learner: '1:5', log: '1:4 1:6-1:9', memory: '1:8-1:9', wholeFrom: '1:4', sent: '1:6 1:7 1:8', result: 'TRUNC 1:4 and all above 1:8' },
    { learner: '1:5', log: '1:4 1:6-1:9', memory: '1:8-1:9', wholeFrom: '1:5', sent: '', result: doubtful },
  ])('truncates a txn that the history skips within its epoch: whole from $wholeFrom', ({ sent, result, ...given }) => {
    expect(walk(given)).toEqual({ sent, result });
  });

  it.each([
    { learner: '1:6', log: '1:1-1:5 2:1-2:4', memory: '2:2-2:4', result: `SNAP, ${undecided}` },
    { learner: '2:1', log: '1:1-1:5 3:1-3:4', memory: '3:2-3:4', result: `SNAP, ${undecided}` },
    { learner: '1:3', log: '1:4-1:9', memory: '1:6-1:9', result: notBack },
    { learner: '1:0', log: '1:1-1:9', memory: '1:6-1:9', result: notBack },
    { learner: '1:3', log: '', memory: '1:6-1:9', result: short },
    { learner: '1:3', log: '1:1-1:2', memory: '1:6-1:9', result: short },
    { learner: '2:0', log: '1:1-1:2', memory: '2:6-2:9', result: short },
  ])('chooses a snapshot if nothing can be decided: learner at $learner, log [$log]', ({ result, ...given }) => {
    expect(walk(given)).toEqual({ sent: '', result });
  });

  it.each([
    // The log ends too early, or is read up to the start of memory (ZOOKEEPER-2418).
    { learner: '1:3', log: '1:1-1:5', memory: '1:6-1:9', sent: '1:4 1:5', result: short },
    { learner: '1:3', log: '1:1-1:5 1:7-1:9', memory: '1:6-1:9', sent: '1:4 1:5', result: short },
    // It has a hole, like the log of a server that was sent a snapshot.
    { learner: '1:3', log: '1:1-1:5 1:7-1:9', memory: '1:8-1:9', sent: '1:4 1:5', result: doubtful },
    { learner: '1:3', log: '1:1-1:5 2:2-2:9', memory: '2:8-2:9', sent: '1:4 1:5', result: doubtful },
  ])(
    'chooses a snapshot at a visible gap, though some txns were to be sent: log [$log], memory [$memory]',
    ({ sent, result, ...given }) => {
      expect(walk(given)).toEqual({ sent, result });
    },
  );

  it.each([
    { learner: '1:3', wholeFrom: '1:5', sent: '1:4 1:5 2:1 2:2', result: 'DIFF 2:4 and all above 2:2' },
    { learner: '1:3', wholeFrom: '1:6', sent: '1:4 1:5', result: doubtful },
    { learner: '1:3', wholeFrom: '2:0', sent: '1:4 1:5', result: doubtful },
    { learner: '1:5', wholeFrom: '2:0', sent: '', result: doubtful },
    { learner: '2:0', wholeFrom: '2:0', sent: '2:1 2:2', result: 'DIFF 2:4 and all above 2:2' },
    { learner: '2:0', wholeFrom: '2:3', sent: '2:1 2:2', result: 'DIFF 2:4 and all above 2:2' },
    { learner: '2:1', wholeFrom: '2:3', sent: '2:2', result: 'DIFF 2:4 and all above 2:2' },
  ])(
    'trusts a step between epochs only where the log is known to be complete, from $wholeFrom on (ZOOKEEPER-2846): learner at $learner',
    ({ sent, result, ...given }) => {
      expect(walk({ ...given, log: '1:1-1:5 2:1-2:4', memory: '2:2-2:4' })).toEqual({ sent, result });
    },
  );

  it('does not take the beginning of an epoch as proof that the next txn in the log follows it', () => {
    expect(walk({ learner: '2:0', log: '1:1-1:5 3:1-3:4', memory: '3:2-3:4', wholeFrom: '3:0' })).toEqual({ sent: '', result: doubtful });
  });

  it('skips zxids that do not increase, as in logs of ZooKeeper', () => {
    expect(walk({ learner: '1:3', log: '1:3 1:3 1:4 1:4 1:2 1:5-1:9', memory: '1:6-1:9' })).toEqual({
      sent: '1:4 1:5 1:6',
      result: 'DIFF 1:9 and all above 1:6',
    });
  });

  it('continues to read while memory drops txns', () => {
    const walker = new LogWalk(z('1:3'), 0);
    const steps = list('1:3-1:9').map((zxid) => walker.next(zxid, zxid < z('1:5') ? z('1:4') : z('1:7'), z('1:9')));
    expect(steps).toEqual(['pass', 'send', 'send', 'send', 'send', 'met', 'met']);
    expect(received(walker.result!)).toBe('DIFF 1:9 and all above 1:7');
  });

  it('has no result before it has reached memory, and then keeps it', () => {
    const walker = new LogWalk(z('1:3'), 0);
    const results: (OpenedPlan | SnapshotPlan | undefined)[] = [];
    for (const zxid of list('1:3-1:6')) {
      walker.next(zxid, z('1:5'), z('1:9'));
      results.push(walker.result);
    }
    expect(results.map((result) => result?.kind)).toEqual([undefined, undefined, undefined, 'diff']);
    expect([walker.end(z('1:9')), walker.next(z('1:7'), z('1:5'), z('1:9'))]).toEqual(['met', 'met']);
    const refused = new LogWalk(z('1:3'), 0);
    expect([refused.next(z('1:4'), z('1:5'), z('1:9')), refused.next(z('1:3'), z('1:5'), z('1:9')), refused.end(z('1:1'))]).toEqual([
      'refused',
      'refused',
      'refused',
    ]);
  });
});
