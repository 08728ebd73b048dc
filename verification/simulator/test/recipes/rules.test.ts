/**
 * The checkers of barriers, values, leases, events, caches, kept znodes, onlookers, migrations and
 * queues get a correct history, and beliefs that contradict the history, which they must find.
 */
import type { Txn } from '@tskeeper/protocol';
import { describe, expect, test } from 'vitest';
import { type SimpleBarrierPassage, checkSimpleBarriers, checkBarrierWaits } from '../../src/recipes/families/barrier-rules.ts';
import {
  checkEntriesShown,
  checkContentsShown,
  type CacheEntryShown,
  type CacheContentsShown,
} from '../../src/recipes/families/cache-rules.ts';
import { checkWaitCalls, checkSetCalls, type WaitCall, type SetCall } from '../../src/recipes/families/event-rules.ts';
import { checkFinalNodes, checkReportedNodes } from '../../src/recipes/families/persistent-node-rules.ts';
import { concurrentHolds, checkLeases, type LeaseHold } from '../../src/recipes/families/lease-rules.ts';
import { checkMigrations, type MigrateCall } from '../../src/recipes/families/migration-rules.ts';
import { checkObservations, none, phasesOfZnode } from '../../src/recipes/families/observation-rules.ts';
import { checkRounds } from '../../src/recipes/families/double-barrier-rules.ts';
import { ZnodeHistory } from '../../src/recipes/znode-history.ts';
import { QueueChecker } from '../../src/recipes/queue-checker.ts';
import { type ValueChange, ValueChecker } from '../../src/recipes/value-checker.ts';
import { newRecording } from '../../src/record/recording.ts';

const limits = {
  tickMs: 200,
  minSessionTimeoutMs: 400,
  maxSessionTimeoutMs: 4000,
  extendedTypesEnabled: true,
  containerMaxNeverUsedIntervalMs: 0,
  txnBytesMax: 1_000_000,
};

/**
 * One line per txn: the number of the session, the operation, the path, and the data. Zxids count
 * from 1; a zxid is ten milliseconds.
 */
function historyOf(...lines: readonly string[]): ZnodeHistory {
  const recording = newRecording(limits);
  for (const [at, line] of lines.entries()) {
    const zxid = at + 1;
    const [session, ...parts] = line.split(' ');
    const header = { clientHigh: 0, clientLow: Number(session), cxid: 0, zxid, time: 0, type: 0 };
    const txns = parts.join(' ').split(' and ').map(txnOf);
    const txn: Txn = txns.length === 1 ? txns[0]! : { kind: 'multi', txns: txns.map((each) => ({ type: 0, txn: each as never })) };
    recording.log.push({ atMs: zxid * 10, bytes: 0, logged: { header, txn, digest: undefined } });
  }
  return new ZnodeHistory(recording);
}

function txnOf(text: string): Txn {
  const [kind, path = '', data = ''] = text.split(' ');
  switch (kind) {
    case 'create':
    case 'ephemeral':
      return { kind: 'create', path, data: Buffer.from(data), acl: [], ephemeral: kind === 'ephemeral', parentCVersion: -1 };
    case 'set':
      return { kind: 'setData', path, data: Buffer.from(data), version: 1 };
    case 'delete':
      return { kind: 'delete', path };
    default:
      return { kind: 'closeSession', paths2Delete: null };
  }
}

describe('the rule of one-time barriers', () => {
  const gate = historyOf('1 create /gate', '1 delete /gate', '2 create /gate');
  const gathering = historyOf('1 create /hall', '1 ephemeral /hall/a', '2 ephemeral /hall/b', '1 delete /hall/a', '2 delete /hall/b');
  const gathered: SimpleBarrierPassage = { process: 'process-1', root: '/hall', enteredZxid: 3n, leavingZxid: 3n, leftZxid: 5n };

  test.each([
    ['a moment between two barriers', 1n, 2n, []],
    ['the barrier in place throughout', 1n, 1n, ['early: process-1 continued between 1 and 1, while the barrier of 1 was in place']],
    ['another barrier in place throughout', 3n, 9n, ['early: process-1 continued between 3 and 9, while the barrier of 3 was in place']],
  ])('accepts a wait for a removal only if there was a moment without the barrier: %s', (_what, fromZxid, toZxid, findings) => {
    expect(checkBarrierWaits([{ process: 'process-1', fromZxid, toZxid }], '/gate', gate)).toEqual(findings);
  });

  test.each<[string, Partial<SimpleBarrierPassage>, string[]]>([
    ['a correct passage', {}, []],
    ['a passage given up inside', { leavingZxid: undefined, leftZxid: undefined }, []],
    ['an early entry', { enteredZxid: 2n }, ['early: process-1 entered /hall by 2, which never had 2 participants by then']],
    ['an early exit', { leftZxid: 4n }, ['left: process-1 left /hall by 4, which was never empty since 3']],
  ])('accepts only an entry into a full barrier and an exit from an empty one: %s', (_what, other, findings) => {
    expect(checkSimpleBarriers([{ ...gathered, ...other }], 2, gathering)).toEqual(findings);
  });
});

describe('the rule of double-barrier rounds', () => {
  const barrier = '/recipes/barrier';
  /**
   * Two processes open a round. Then one of their znodes is deleted by hand and `again` happens,
   * the other process leaves, and a third one comes late.
   */
  const roundWith = (again: string): ZnodeHistory =>
    historyOf(
      `1 create ${barrier}`,
      `1 ephemeral ${barrier}/a`,
      `2 ephemeral ${barrier}/b`,
      `2 create ${barrier}/ready ["a","b"]`,
      `9 delete ${barrier}/a`,
      again,
      `2 delete ${barrier}/b`,
      `3 ephemeral ${barrier}/c`,
      `3 set ${barrier}/c`,
    );

  test.each([
    ['the deleted znode of an opener is created again', `1 ephemeral ${barrier}/a`, []],
    ['another znode is created instead', `1 ephemeral ${barrier}/d`, [`entered: ${barrier}/c joined late at 9 a round that was over`]],
  ])('accepts a late participant only while its round lasts: %s', (_what, again, findings) => {
    expect(checkRounds([], 2, roundWith(again))).toEqual(findings);
  });
});

describe('changes of values', () => {
  const add = (delta: number): ValueChange => ({
    process: 'process-1',
    what: `add ${delta}`,
    path: '/n',
    isOwn: ({ before, after }) => Number(after) - Number(before) === delta,
    state: 'open',
  });
  const counted = historyOf('1 create /n 0', '1 set /n 2', '2 set /n 5');

  async function found(history: ZnodeHistory, ...changes: readonly (readonly [ValueChange, unknown])[]): Promise<readonly string[]> {
    const witness = new ValueChecker();
    for (const [change, outcome] of changes) {
      const call = outcome instanceof Error ? Promise.reject(outcome) : Promise.resolve(outcome);
      await witness.recordChange(change, call as Promise<boolean>, (result) => result).catch(() => undefined);
    }
    return witness.check(history);
  }

  test('that were applied once, or perhaps, are correct', async () => {
    expect(
      await found(counted, [add(2), true], [add(3), new Error('unknown outcome')], [add(7), new RangeError()], [add(8), false]),
    ).toEqual([]);
  });

  test('that are missing, applied twice, applied although refused, or not requested are findings', async () => {
    expect(await found(counted, [add(2), true], [add(3), true], [add(7), true])).toEqual([
      'changed: add 7 of process-1 was carried out, but is in /n 0 times',
    ]);
    const twice = historyOf('1 create /n 0', '1 set /n 2', '1 set /n 4');
    expect(await found(twice, [add(2), new Error('unknown outcome')])).toEqual([
      'changed: add 2 of process-1 was open, but is in /n 2 times',
    ]);
    expect(await found(counted, [add(2), true], [add(3), false])).toEqual([
      'changed: add 3 of process-1 was not carried out, but is in /n 1 times',
    ]);
    expect(await found(counted, [add(2), true])).toEqual(['changed: /n became 5 from 2 at 3, which no process asked for']);
  });

  test('that were made from another value, or reported so, are findings', async () => {
    const fits: ValueChange = { ...add(3), fits: ({ before }) => before === '0' };
    expect(await found(counted, [add(2), true], [fits, true])).toEqual(['over: add 3 of process-1 made 5 of 2 at 3']);
    expect(await found(counted, [add(2), { before: '1', after: '3' }], [add(3), true])).toEqual([
      'over: add 2 of process-1 made 2 of 0 at 2, but the result was 3 of 1',
    ]);
  });

  test('with numbers handed out twice or not taken by the session, and values that never existed, are findings', () => {
    const witness = new ValueChecker();
    witness.recordIssued('process-1', 1n, '/n', 0);
    witness.recordIssued('process-1', 1n, '/n', 1);
    witness.recordShown('process-1', '/n', '2', 2n);
    expect(witness.check(counted)).toEqual([]);
    witness.recordIssued('process-2', 2n, '/n', 1);
    witness.recordIssued('process-2', 2n, '/n', 5);
    witness.recordShown('process-1', '/n', '3', 2n);
    expect(witness.check(counted)).toEqual([
      'shown: process-1 was shown 3 of 2 as /n, which never existed',
      'given: 1 of /n was handed to process-1 and to process-2',
      'given: process-2 was handed 5 of /n, which its session has not taken',
    ]);
  });
});

describe('leases', () => {
  const names = { 1: '/l/lease-1', 2: '/l/lease-2' } as const;
  const hold = (
    number: 1 | 2,
    token: bigint,
    fromMs: number,
    concurrent: readonly LeaseHold[] = [],
    holder = `host-${number}`,
  ): LeaseHold => ({
    process: { name: `process-${number}`, isDead: false, pausedUntilMs: 0, nowMs: fromMs },
    holder,
    lease: { path: names[number], fencingToken: token, state: 'held' },
    fromMs,
    concurrent,
  });
  const taken = [`1 create ${names[1]}`, '1 create /l/lease_holder one'];

  test('held by two processes at a time are findings, unless both have the same name, one is lost, or one process is paused', () => {
    const first = hold(1, 1n, 15);
    expect(concurrentHolds(hold(2, 3n, 50), [first])).toEqual([first]);
    expect(concurrentHolds(hold(2, 3n, 50, [], 'host-1'), [first])).toEqual([]);
    expect(concurrentHolds(hold(2, 3n, 50), [{ ...first, lease: { ...first.lease, state: 'lost' } }])).toEqual([]);
    expect(concurrentHolds(hold(2, 3n, 50), [{ ...first, process: { ...first.process, pausedUntilMs: 60 } }])).toEqual([]);
    const history = historyOf(...taken, `2 create ${names[2]}`, `2 delete ${names[1]} and set /l/lease_holder two`);
    expect(checkLeases([first, hold(2, 3n, 50)], history)).toEqual([]);
    expect(checkLeases([first, hold(2, 3n, 50, [first])], history)).toEqual([
      'two: process-2 has /l/lease-2 at 50.000, while process-1 still had /l/lease-1',
    ]);
    expect(checkLeases([hold(2, 3n, 50), hold(1, 1n, 60, [hold(2, 3n, 50)])], history)).toEqual([
      'two: process-1 has /l/lease-1 at 60.000, while process-2 still had /l/lease-2',
    ]);
  });

  test('may have two holders if a process with the same name took the lease over before, but not if another one or none did', () => {
    const first = hold(1, 1n, 15);
    const took = (holder: string) =>
      historyOf(
        ...taken,
        '1 create /l/lease-1b',
        `1 delete ${names[1]} and set /l/lease_holder {"version":1,"holder":"${holder}","end":"x"}`,
        `2 create ${names[2]}`,
        '2 delete /l/lease-1b and set /l/lease_holder {"version":1,"holder":"host-1","end":"y"}',
      );
    const found = ['two: process-2 has /l/lease-2 at 70.000, while process-1 still had /l/lease-1'];
    expect(checkLeases([first, hold(2, 5n, 70, [first])], took('host-1'))).toEqual([]);
    expect(checkLeases([first, hold(2, 5n, 70, [first])], took('host-11'))).toEqual(found);
    const renewed = historyOf(
      ...taken,
      '1 set /l/lease_holder {"version":1,"holder":"host-1","end":"x"}',
      `2 create ${names[2]}`,
      `2 delete ${names[1]} and set /l/lease_holder two`,
    );
    expect(checkLeases([first, hold(2, 4n, 70, [first])], renewed)).toEqual(found);
  });

  test('may have two holders after a deletion by hand, and a lease that no txn created is a finding', () => {
    const first = hold(1, 1n, 15);
    const broken = historyOf(
      ...taken,
      '9 delete /l/lease_holder',
      `2 create ${names[2]}`,
      `2 delete ${names[1]} and create /l/lease_holder two`,
    );
    expect(checkLeases([first, hold(2, 4n, 60, [first])], broken)).toEqual([]);
    // Process 1 got the lease first, but learned of it after process 2 got its own.
    expect(checkLeases([hold(2, 4n, 60), hold(1, 1n, 70, [hold(2, 4n, 60)])], broken)).toEqual([]);
    expect(checkLeases([hold(2, 3n, 60)], broken)).toEqual(['two: process-2 has /l/lease-2 by token 3, which no txn created']);
  });
});

describe('events', () => {
  const passage = (session: bigint, fromZxid: bigint, toZxid?: bigint): WaitCall => ({
    process: `process-${session}`,
    session,
    fromZxid,
    toZxid,
  });
  const taken = historyOf('1 create /e/set', '2 ephemeral /e/waiting-1', '2 delete /e/set and set /e/waiting-1 through');

  test('are taken once by each process that passes: not taking one and taking one twice are findings', () => {
    expect(checkWaitCalls([passage(2n, 1n, 3n)], '/e', true, taken)).toEqual([]);
    expect(checkWaitCalls([passage(2n, 1n)], '/e', true, taken)).toEqual([]);
    expect(checkWaitCalls([passage(2n, 1n, 3n), passage(3n, 1n, 3n)], '/e', true, taken)).toEqual([
      'through: process-3 passed 1 times of 1, but took the event 0 times',
    ]);
    const twice = historyOf(
      '1 create /e/set',
      '2 ephemeral /e/w-1',
      '2 delete /e/set and set /e/w-1 through',
      '1 create /e/set',
      '2 delete /e/set and set /e/w-1 through',
    );
    expect(checkWaitCalls([passage(2n, 1n, 5n)], '/e', true, twice)).toEqual([
      'through: /e/w-1 took the event twice',
      'through: process-2 passed 1 times of 1, but took the event 2 times',
    ]);
  });

  const setting = (session: bigint, state: SetCall['state'], fromZxid: bigint, toZxid?: bigint): SetCall => ({
    process: `process-${session}`,
    session,
    fromZxid,
    toZxid,
    state,
  });
  const setOnce = setting(1n, 'carried out', 0n, 1n);

  test('that are set once by each call, perhaps by a call of unknown outcome, or were already set, are correct', () => {
    const found = (...settings: readonly SetCall[]) => checkSetCalls(settings, '/e', true, taken);
    expect(found(setOnce, setting(3n, 'carried out', 1n, 2n), setting(3n, 'not carried out', 2n, 3n))).toEqual([]);
    expect(found(setting(1n, 'open', 0n))).toEqual([]);
    expect(found(setOnce, setting(1n, 'open', 1n))).toEqual([]);
  });

  test('that are set more often than requested, or not at all, are findings', () => {
    const never = (from: number, to: number) => `set: process-3 observed the event as set, but it never was between ${from} and ${to}`;
    const tooOften = 'set: session 1 set the event at 1, once more than it was asked to';
    const found = (...settings: readonly SetCall[]) => checkSetCalls(settings, '/e', true, taken);
    expect(found(setOnce, setting(3n, 'carried out', 3n, 4n), setting(3n, 'carried out', 0n, 0n))).toEqual([never(3, 4), never(0, 0)]);
    expect(found()).toEqual([tooOften]);
    expect(found(setting(1n, 'not carried out', 0n, 1n))).toEqual([tooOften]);
    expect(found(setting(2n, 'open', 0n), setting(1n, 'open', 1n))).toEqual([tooOften]);
    const twice = historyOf('1 create /e/set', '2 delete /e/set', '1 create /e/set');
    expect(checkSetCalls([setting(1n, 'carried out', 0n, 3n)], '/e', true, twice)).toEqual([
      'set: session 1 set the event at 3, once more than it was asked to',
    ]);
    // It is unknown which of the two calls has the unknown outcome.
    expect(checkSetCalls([setting(1n, 'open', 0n), setting(1n, 'carried out', 1n, 3n)], '/e', true, twice)).toEqual([]);
    expect(checkSetCalls([setting(1n, 'carried out', 0n, 3n)], '/e', false, twice)).toEqual([]);
  });

  test('that were not set when a process passed are findings', () => {
    expect(checkWaitCalls([passage(2n, 0n, 1n), passage(3n, 2n, 3n), passage(4n, 3n)], '/e', false, taken)).toEqual([]);
    expect(checkWaitCalls([passage(2n, 3n, 3n)], '/e', false, taken)).toHaveLength(1);
  });
});

describe('caches', () => {
  const history = historyOf('1 create /t/a one', '1 set /t/a two', '1 delete /t/a');
  const sight = (data: string, czxid: bigint, mzxid: bigint, seenZxid?: bigint): CacheEntryShown => ({
    process: 'process-1',
    path: '/t/a',
    data,
    czxid,
    mzxid,
    seenZxid,
  });

  test('that show past states are correct; a state that never existed, or that was already deleted, is a finding', () => {
    expect(checkEntriesShown([sight('one', 1n, 1n), sight('two', 1n, 2n), sight('two', 1n, 2n, 2n)], history)).toEqual([]);
    expect(checkEntriesShown([sight('one', 1n, 2n)], history)).toHaveLength(1);
    expect(checkEntriesShown([sight('two', 2n, 2n)], history)).toHaveLength(1);
    expect(checkEntriesShown([sight('two', 1n, 2n, 3n)], history)).toEqual([
      'shown: process-1 showed /t/a while complete up to 3, but it was deleted at 3',
    ]);
  });
});

describe('caches that become complete', () => {
  const history = historyOf('1 create /t/a one', '1 set /t/a two', '1 create /t/b', '1 delete /t/b', '1 set /t/a three');
  const survey = (fromZxid: bigint, ...shown: readonly (readonly [string, bigint])[]): CacheContentsShown => ({
    process: 'process-1',
    covers: (path) => path.startsWith('/t/'),
    fromZxid,
    toZxid: 5n,
    shown: new Map(shown),
  });

  test('have every znode that still exists, in its current state or a later one; a missing znode or an older state is a finding', () => {
    expect(checkContentsShown([survey(2n, ['/t/a', 2n]), survey(2n, ['/t/a', 5n]), survey(3n, ['/t/a', 2n])], history)).toEqual([]);
    expect(checkContentsShown([survey(5n, ['/t/a', 2n])], history)).toEqual([
      'missing: process-1 was complete up to 5 at 5, but showed /t/a of 2 instead of 5',
    ]);
    expect(checkContentsShown([survey(1n)], history)).toHaveLength(1);
  });
});

describe('observations', () => {
  const history = historyOf('1 create /e/a one', '1 set /e/a two', '1 delete /e/a', '1 create /e/a one');
  const phases = new Map([['/e/a', phasesOfZnode('/e/a', history, (data) => data)]]);
  // A txn takes ten milliseconds.
  const found = (...shown: (readonly [value: string, atMs: number, fromZxid?: bigint])[]) =>
    checkObservations(
      'process-1',
      shown.map(([value, atMs, fromZxid = 0n]) => ({ values: value === none ? new Map() : new Map([['/e/a', value]]), fromZxid, atMs })),
      phases,
    );

  test('of past values in their order are correct, even if some values are missed', () => {
    expect(found([none, 5], ['one', 15], ['two', 25], [none, 35], ['one', 45])).toEqual([]);
    expect(found([none, 15], ['one', 35], ['one', 45, 4n])).toEqual([]);
    expect(found(['one', 19, 1n], ['one', 99])).toEqual([]);
  });

  test.each<[string, Parameters<typeof found>]>([
    ['a value before it was written', [['two', 15]]],
    [
      'an earlier value',
      [
        ['two', 25],
        ['one', 35],
      ],
    ],
    ['a value from before the observation began', [['two', 45, 3n]]],
    ['a value that never existed', [['three', 45]]],
    [
      'a past value where the latest one is required',
      [
        ['two', 25],
        ['two', 45, 4n],
      ],
    ],
  ])('of %s are findings', (_what, shown) => {
    expect(found(...shown)).toHaveLength(1);
  });

  test('of a znode that no process created are findings', () => {
    const sighting = { values: new Map([['/e/b', 'one']]), fromZxid: 0n, atMs: 45 };
    expect(checkObservations('process-1', [sighting], phases)).toEqual([
      'observed: process-1 was shown one for /e/b at 45.000, which was not its value at any time since 0',
    ]);
  });
});

describe('migrations', () => {
  const places = { folder: '/m', storePath: '/store' };
  const made = (number: number, session: number) => `${session} set /store change-${number} and create /m/applied/000000000${number} x`;
  const history = historyOf('9 create /store', made(1, 1), made(2, 2));
  const run = (session: bigint, known: number, names: readonly string[], result: MigrateCall['result'], seenZxid = 3n): MigrateCall => ({
    process: `process-${session}`,
    session,
    known,
    made: names,
    result,
    seenZxid,
  });

  test('that are made once and reported to the process that made them are correct', () => {
    const runs = [
      run(1n, 1, ['change-1'], 'up to date', 2n),
      run(2n, 2, [], 'open'),
      run(3n, 1, [], 'too old'),
      run(3n, 2, [], 'up to date'),
    ];
    expect(checkMigrations(runs, places, history)).toEqual([]);
  });

  test('that are reported to another process, to two or to none, or are not made, are findings', () => {
    const second = run(2n, 2, ['change-2'], 'up to date');
    expect(checkMigrations([run(3n, 1, ['change-1'], 'up to date'), second], places, history)).toEqual([
      'changes: change-1 was made by 1, but reported to process-3',
    ]);
    expect(checkMigrations([second], places, history)).toEqual(['changes: change-1 was made by 1, but reported to no process']);
    const first = run(1n, 1, ['change-1'], 'up to date');
    expect(checkMigrations([first, first, second], places, history)).toHaveLength(1);
    expect(checkMigrations([first, { ...second, made: ['change-2', 'change-3'] }], places, history)).toHaveLength(1);
    expect(checkMigrations([first, { ...second, seenZxid: 2n }, run(3n, 2, [], 'too old')], places, history)).toEqual([
      'changes: process-2 knew 2 and had seen 1, but the result was up to date',
      'changes: process-3 knew 2 and had seen 2, but the result was too old',
    ]);
  });

  test('that are made twice, or without a record, are findings', () => {
    const first = run(1n, 1, ['change-1'], 'up to date');
    expect(checkMigrations([first], places, historyOf('9 create /store', made(1, 1), '1 set /store change-1'))).toEqual([
      'changes: change-1 was made at 3, as number 2',
      'changes: change-1 was made at 3, but nothing was recorded',
    ]);
  });
});

describe('queues', () => {
  const rules = { path: '/q', parents: ['/q'], store: '/done', maxItems: undefined, isEphemeral: false } as const;
  const history = historyOf(
    '1 create /q/queue-|a|1 item-1',
    '1 create /q/queue-|a|2 item-2',
    '2 delete /q/queue-|a|1 and delete /q/queue-|a|2',
  );

  test('whose items are removed by their id report the number of removed items', () => {
    const witness = new QueueChecker(rules);
    const removal = { process: 'process-2', session: 2n, id: 'a', fromZxid: 2n, reported: { count: 2, toZxid: 3n } };
    witness.removals.push(removal);
    expect(witness.check(history)).toEqual([]);
    removal.reported = { count: 1, toZxid: 3n };
    expect(witness.check(history)).toEqual(['removed: process-2 received the count 1 for items of a, but removed 2']);
    removal.reported = { count: 0, toZxid: 2n };
    expect(witness.check(history)).toEqual([
      'lost: /q/queue-|a|1 is gone, but no process has taken it',
      'lost: /q/queue-|a|2 is gone, but no process has taken it',
    ]);
  });

  test('whose items are ephemeral may lose them with their session; an item that is taken before its time is a finding', () => {
    const gone = historyOf('1 ephemeral /q/queue-1 item-1', '1 close');
    expect(new QueueChecker({ ...rules, isEphemeral: true }).check(gone)).toEqual([]);
    expect(new QueueChecker(rules).check(gone)).toEqual(['lost: /q/queue-1 is gone, but no process has taken it']);
    const late = new QueueChecker({ ...rules, isEphemeral: true, dueMs: () => 20 });
    expect(late.check(gone)).toEqual([]);
    const early = new QueueChecker({ ...rules, isEphemeral: true, dueMs: () => 25 });
    expect(early.check(gone)).toEqual(['early: /q/queue-1 was taken at 20, before it was due at 25']);
  });
});

describe('kept znodes', () => {
  const rules = { parent: '/k', outlivesSessions: false };
  const history = historyOf('1 ephemeral /k/one text-1', '1 set /k/one text-2', '2 ephemeral /k/two text-3');
  const delivered = { process: 'process-1', sessions: new Set([1n]), path: '/k/one', text: 'text-2', seenZxid: 2n };
  const last = { process: 'process-1', sessions: new Set([1n]), path: '/k/one', session: 1n, allowedTexts: new Set(['text-2']), atMs: 100 };

  test('with the data and the session of their owner are correct; others are findings', () => {
    expect(checkReportedNodes([delivered], rules, history)).toEqual([]);
    expect(checkReportedNodes([{ ...delivered, seenZxid: 1n }], rules, history)).toHaveLength(1);
    expect(checkReportedNodes([{ ...delivered, path: '/k/two', text: 'text-3', seenZxid: 3n }], rules, history)).toEqual([
      'kept: process-1 observed at 3 that /k/two exists, but it belongs to session 2',
    ]);
  });

  test('are correct at the end if there is exactly one, of the current session and with the latest data; others are findings', () => {
    expect(checkFinalNodes([last], rules, history)).toEqual([]);
    expect(checkFinalNodes([{ ...last, session: 2n }], rules, history)).toHaveLength(1);
    const twice = { ...last, sessions: new Set([1n, 2n]), allowedTexts: new Set(['text-2', 'text-3']) };
    expect(checkFinalNodes([twice], rules, history)).toHaveLength(1);
    // The other one belongs to an earlier keeper and will be deleted.
    expect(checkFinalNodes([{ ...twice, allowedTexts: last.allowedTexts }], rules, history)).toEqual([]);
    expect(checkFinalNodes([{ ...last, path: '/k/other' }], rules, history)).toHaveLength(1);
    expect(checkFinalNodes([{ ...last, allowedTexts: new Set(['text-1']) }], rules, history)).toEqual([
      'kept: /k/one of process-1 has text-2, expected text-1',
    ]);
  });
});
