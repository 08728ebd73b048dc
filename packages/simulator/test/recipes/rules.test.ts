/** The judges of barriers, values, leases, events, caches, kept znodes, those who look on, migrations and queues are shown a history as it should be, and beliefs that do not go with it, which they must notice. */
import type { Txn } from '@tskeeper/protocol';
import { describe, expect, test } from 'vitest';
import { type Gathered, judgeGatherings, judgeWaits } from '../../src/recipes/families/barrier-rules.ts';
import { judgeSights, judgeSurveys, type Sight, type Survey } from '../../src/recipes/families/cache-rules.ts';
import { judgePassages, judgeSettings, type Passage, type Setting } from '../../src/recipes/families/event-rules.ts';
import { judgeKeptInTheEnd, judgeToldOfKept } from '../../src/recipes/families/kept-rules.ts';
import { besides, judgeLeases, type LeaseHold } from '../../src/recipes/families/lease-rules.ts';
import { judgeMigrations, type Run } from '../../src/recipes/families/migration-rules.ts';
import { judgeSightings, none, phasesOfZnode } from '../../src/recipes/families/onlooker-rules.ts';
import { judgeRounds } from '../../src/recipes/families/rounds.ts';
import { History } from '../../src/recipes/history.ts';
import { QueueWitness } from '../../src/recipes/queue-witness.ts';
import { type Change, ValueWitness } from '../../src/recipes/value-witness.ts';
import { newRecording } from '../../src/record/recording.ts';

const limits = {
  tickMs: 200,
  minSessionTimeoutMs: 400,
  maxSessionTimeoutMs: 4000,
  extendedTypesEnabled: true,
  containerMaxNeverUsedIntervalMs: 0,
  txnBytesMax: 1_000_000,
};

/** One line each: the number of the session, what it does, where, and the data. Zxids count from 1, and are tens of milliseconds. */
function historyOf(...lines: readonly string[]): History {
  const recording = newRecording(limits);
  for (const [at, line] of lines.entries()) {
    const zxid = at + 1;
    const [session, ...parts] = line.split(' ');
    const header = { clientHigh: 0, clientLow: Number(session), cxid: 0, zxid, time: 0, type: 0 };
    const txns = parts.join(' ').split(' and ').map(txnOf);
    const txn: Txn = txns.length === 1 ? txns[0]! : { kind: 'multi', txns: txns.map((each) => ({ type: 0, txn: each as never })) };
    recording.log.push({ atMs: zxid * 10, bytes: 0, logged: { header, txn, digest: undefined } });
  }
  return new History(recording);
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

describe('barriers that serve once', () => {
  const gate = historyOf('1 create /gate', '1 delete /gate', '2 create /gate');
  const gathering = historyOf('1 create /hall', '1 ephemeral /hall/a', '2 ephemeral /hall/b', '1 delete /hall/a', '2 delete /hall/b');
  const gathered: Gathered = { process: 'process-1', root: '/hall', enteredZxid: 3n, leavingZxid: 3n, leftZxid: 5n };

  test.each([
    ['a moment without it', 1n, 2n, []],
    ['no such moment', 1n, 1n, ['early: process-1 went on between 1 and 1, and the barrier of 1 was in place']],
    ['another barrier in place', 3n, 9n, ['early: process-1 went on between 3 and 9, and the barrier of 3 was in place']],
  ])('a wait for one to go, with %s', (_what, fromZxid, toZxid, findings) => {
    expect(judgeWaits([{ process: 'process-1', fromZxid, toZxid }], '/gate', gate)).toEqual(findings);
  });

  test.each<[string, Partial<Gathered>, string[]]>([
    ['as it should be', {}, []],
    ['given up inside', { leavingZxid: undefined, leftZxid: undefined }, []],
    ['entered ahead of the others', { enteredZxid: 2n }, ['early: process-1 has entered /hall by 2, where there were never 2 by then']],
    ['left ahead of the others', { leftZxid: 4n }, ['left: process-1 has left /hall by 4, where somebody was at any time since 3']],
  ])('a simple barrier, %s', (_what, other, findings) => {
    expect(judgeGatherings([{ ...gathered, ...other }], 2, gathering)).toEqual(findings);
  });
});

describe('rounds of a double barrier', () => {
  const barrier = '/recipes/barrier';
  /** Two open a round; then one is deleted by hand and `again` happens, the other leaves, and a third comes late. */
  const roundWith = (again: string): History =>
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
    ['the opener that was deleted by hand is made once more', `1 ephemeral ${barrier}/a`, []],
    ['another one is made', `1 ephemeral ${barrier}/d`, [`entered: ${barrier}/c has come late at 9 into a round that was over`]],
  ])('last while %s', (_what, again, findings) => {
    expect(judgeRounds([], 2, roundWith(again))).toEqual(findings);
  });
});

describe('changes of values', () => {
  const add = (delta: number): Change => ({
    process: 'process-1',
    what: `add ${delta}`,
    path: '/n',
    isOwn: ({ before, after }) => Number(after) - Number(before) === delta,
    state: 'open',
  });
  const counted = historyOf('1 create /n 0', '1 set /n 2', '2 set /n 5');

  async function found(history: History, ...changes: readonly (readonly [Change, unknown])[]): Promise<readonly string[]> {
    const witness = new ValueWitness();
    for (const [change, outcome] of changes) {
      const call = outcome instanceof Error ? Promise.reject(outcome) : Promise.resolve(outcome);
      await witness.changes(change, call as Promise<boolean>, (result) => result).catch(() => undefined);
    }
    return witness.judge(history);
  }

  test('that are there once, or perhaps, are as they should be', async () => {
    expect(
      await found(counted, [add(2), true], [add(3), new Error('nobody can say')], [add(7), new RangeError()], [add(8), false]),
    ).toEqual([]);
  });

  test('that are missing, there twice, refused and there, or of nobody, are found', async () => {
    expect(await found(counted, [add(2), true], [add(3), true], [add(7), true])).toEqual([
      'changed: add 7 of process-1 was carried out, and stands in /n 0 times',
    ]);
    const twice = historyOf('1 create /n 0', '1 set /n 2', '1 set /n 4');
    expect(await found(twice, [add(2), new Error('nobody can say')])).toEqual([
      'changed: add 2 of process-1 was open, and stands in /n 2 times',
    ]);
    expect(await found(counted, [add(2), true], [add(3), false])).toEqual([
      'changed: add 3 of process-1 was not carried out, and stands in /n 1 times',
    ]);
    expect(await found(counted, [add(2), true])).toEqual(['changed: /n became 5 from 2 at 3, and nobody has asked for that']);
  });

  test('that were made of something else, or told so, are found', async () => {
    const fits: Change = { ...add(3), fits: ({ before }) => before === '0' };
    expect(await found(counted, [add(2), true], [fits, true])).toEqual(['over: add 3 of process-1 has made 5 of 2 at 3']);
    expect(await found(counted, [add(2), { before: '1', after: '3' }], [add(3), true])).toEqual([
      'over: add 2 of process-1 has made 2 of 0 at 2, and was told 3 of 1',
    ]);
  });

  test('and numbers given out twice, or by others, and values that never were, are found', () => {
    const witness = new ValueWitness();
    witness.gives('process-1', 1n, '/n', 0);
    witness.gives('process-1', 1n, '/n', 1);
    witness.shows('process-1', '/n', '2', 2n);
    expect(witness.judge(counted)).toEqual([]);
    witness.gives('process-2', 2n, '/n', 1);
    witness.gives('process-2', 2n, '/n', 5);
    witness.shows('process-1', '/n', '3', 2n);
    expect(witness.judge(counted)).toEqual([
      'shown: process-1 was shown 3 of 2 as /n, which never was',
      'given: 1 of /n was given to process-1, and to process-2',
      'given: process-2 was given 5 of /n, which its session has not taken',
    ]);
  });
});

describe('leases', () => {
  const names = { 1: '/l/lease-1', 2: '/l/lease-2' } as const;
  const hold = (number: 1 | 2, token: bigint, fromMs: number, beside: readonly LeaseHold[] = [], holder = `host-${number}`): LeaseHold => ({
    process: { name: `process-${number}`, dead: false, pausedUntilMs: 0, nowMs: fromMs },
    holder,
    lease: { path: names[number], fencingToken: token, state: 'held' },
    fromMs,
    beside,
  });
  const taken = [`1 create ${names[1]}`, '1 create /l/lease_holder one'];

  test('that two have at a time are found, unless both have one name, one is over, or one stands still', () => {
    const first = hold(1, 1n, 15);
    expect(besides(hold(2, 3n, 50), [first])).toEqual([first]);
    expect(besides(hold(2, 3n, 50, [], 'host-1'), [first])).toEqual([]);
    expect(besides(hold(2, 3n, 50), [{ ...first, lease: { ...first.lease, state: 'lost' } }])).toEqual([]);
    expect(besides(hold(2, 3n, 50), [{ ...first, process: { ...first.process, pausedUntilMs: 60 } }])).toEqual([]);
    const history = historyOf(...taken, `2 create ${names[2]}`, `2 delete ${names[1]} and set /l/lease_holder two`);
    expect(judgeLeases([first, hold(2, 3n, 50)], history)).toEqual([]);
    expect(judgeLeases([first, hold(2, 3n, 50, [first])], history)).toEqual([
      'two: process-2 has /l/lease-2 at 50.000, and process-1 had /l/lease-1 still',
    ]);
    expect(judgeLeases([hold(2, 3n, 50), hold(1, 1n, 60, [hold(2, 3n, 50)])], history)).toEqual([
      'two: process-1 has /l/lease-1 at 60.000, and process-2 had /l/lease-2 still',
    ]);
  });

  test('that one of the same name had taken over may be had by a third, and not what somebody else took, or nobody', () => {
    const first = hold(1, 1n, 15);
    const took = (holder: string) =>
      historyOf(
        ...taken,
        '1 create /l/lease-1b',
        `1 delete ${names[1]} and set /l/lease_holder {"version":1,"holder":"${holder}","end":"x"}`,
        `2 create ${names[2]}`,
        '2 delete /l/lease-1b and set /l/lease_holder {"version":1,"holder":"host-1","end":"y"}',
      );
    const found = ['two: process-2 has /l/lease-2 at 70.000, and process-1 had /l/lease-1 still'];
    expect(judgeLeases([first, hold(2, 5n, 70, [first])], took('host-1'))).toEqual([]);
    expect(judgeLeases([first, hold(2, 5n, 70, [first])], took('host-11'))).toEqual(found);
    const renewed = historyOf(
      ...taken,
      '1 set /l/lease_holder {"version":1,"holder":"host-1","end":"x"}',
      `2 create ${names[2]}`,
      `2 delete ${names[1]} and set /l/lease_holder two`,
    );
    expect(judgeLeases([first, hold(2, 4n, 70, [first])], renewed)).toEqual(found);
  });

  test('that were broken by hand may be had by two; and what no txn has made is found', () => {
    const first = hold(1, 1n, 15);
    const broken = historyOf(
      ...taken,
      '9 delete /l/lease_holder',
      `2 create ${names[2]}`,
      `2 delete ${names[1]} and create /l/lease_holder two`,
    );
    expect(judgeLeases([first, hold(2, 4n, 60, [first])], broken)).toEqual([]);
    // Process 1 got the lease first, but heard of it after process 2 had.
    expect(judgeLeases([hold(2, 4n, 60), hold(1, 1n, 70, [hold(2, 4n, 60)])], broken)).toEqual([]);
    expect(judgeLeases([hold(2, 3n, 60)], broken)).toEqual(['two: process-2 has /l/lease-2 by 3, which no txn has made']);
  });
});

describe('events', () => {
  const passage = (session: bigint, fromZxid: bigint, toZxid?: bigint): Passage => ({
    process: `process-${session}`,
    session,
    fromZxid,
    toZxid,
  });
  const taken = historyOf('1 create /e/set', '2 ephemeral /e/waiting-1', '2 delete /e/set and set /e/waiting-1 through');

  test('that somebody has taken, or goes through without taking, or takes in silence, or twice', () => {
    expect(judgePassages([passage(2n, 1n, 3n)], '/e', true, taken)).toEqual([]);
    expect(judgePassages([passage(2n, 1n)], '/e', true, taken)).toEqual([]);
    expect(judgePassages([passage(2n, 1n, 3n), passage(3n, 1n, 3n)], '/e', true, taken)).toEqual([
      'through: process-3 went through 1 times of 1, and has taken the event 0 times',
    ]);
    const twice = historyOf(
      '1 create /e/set',
      '2 ephemeral /e/w-1',
      '2 delete /e/set and set /e/w-1 through',
      '1 create /e/set',
      '2 delete /e/set and set /e/w-1 through',
    );
    expect(judgePassages([passage(2n, 1n, 5n)], '/e', true, twice)).toEqual([
      'through: /e/w-1 has taken the event twice',
      'through: process-2 went through 1 times of 1, and has taken the event 2 times',
    ]);
  });

  const setting = (session: bigint, state: Setting['state'], fromZxid: bigint, toZxid?: bigint): Setting => ({
    process: `process-${session}`,
    session,
    fromZxid,
    toZxid,
    state,
  });
  const setOnce = setting(1n, 'carried out', 0n, 1n);

  test('that are set once by each call, or perhaps where nobody can say, or were set already, are as they should be', () => {
    const found = (...settings: readonly Setting[]) => judgeSettings(settings, '/e', true, taken);
    expect(found(setOnce, setting(3n, 'carried out', 1n, 2n), setting(3n, 'not carried out', 2n, 3n))).toEqual([]);
    expect(found(setting(1n, 'open', 0n))).toEqual([]);
    expect(found(setOnce, setting(1n, 'open', 1n))).toEqual([]);
  });

  test('that are set more often than they were to be, or not at all, are found', () => {
    const never = (from: number, to: number) => `set: process-3 was told that the event is set, and it never was between ${from} and ${to}`;
    const tooOften = 'set: session 1 has set the event at 1, which is once more than it was asked to';
    const found = (...settings: readonly Setting[]) => judgeSettings(settings, '/e', true, taken);
    expect(found(setOnce, setting(3n, 'carried out', 3n, 4n), setting(3n, 'carried out', 0n, 0n))).toEqual([never(3, 4), never(0, 0)]);
    expect(found()).toEqual([tooOften]);
    expect(found(setting(1n, 'not carried out', 0n, 1n))).toEqual([tooOften]);
    expect(found(setting(2n, 'open', 0n), setting(1n, 'open', 1n))).toEqual([tooOften]);
    const twice = historyOf('1 create /e/set', '2 delete /e/set', '1 create /e/set');
    expect(judgeSettings([setting(1n, 'carried out', 0n, 3n)], '/e', true, twice)).toEqual([
      'set: session 1 has set the event at 3, which is once more than it was asked to',
    ]);
    // Which of the two was the open one is nobody's to say.
    expect(judgeSettings([setting(1n, 'open', 0n), setting(1n, 'carried out', 1n, 3n)], '/e', true, twice)).toEqual([]);
    expect(judgeSettings([setting(1n, 'carried out', 0n, 3n)], '/e', false, twice)).toEqual([]);
  });

  test('that were not set when somebody went through are found', () => {
    expect(judgePassages([passage(2n, 0n, 1n), passage(3n, 2n, 3n), passage(4n, 3n)], '/e', false, taken)).toEqual([]);
    expect(judgePassages([passage(2n, 3n, 3n)], '/e', false, taken)).toHaveLength(1);
  });
});

describe('caches', () => {
  const history = historyOf('1 create /t/a one', '1 set /t/a two', '1 delete /t/a');
  const sight = (data: string, czxid: bigint, mzxid: bigint, seenZxid?: bigint): Sight => ({
    process: 'process-1',
    path: '/t/a',
    data,
    czxid,
    mzxid,
    seenZxid,
  });

  test('that show what was are as they should be; what never was, or is gone, is found', () => {
    expect(judgeSights([sight('one', 1n, 1n), sight('two', 1n, 2n), sight('two', 1n, 2n, 2n)], history)).toEqual([]);
    expect(judgeSights([sight('one', 1n, 2n)], history)).toHaveLength(1);
    expect(judgeSights([sight('two', 2n, 2n)], history)).toHaveLength(1);
    expect(judgeSights([sight('two', 1n, 2n, 3n)], history)).toEqual([
      'shown: process-1 was shown /t/a in step with 3, and it was gone at 3',
    ]);
  });
});

describe('caches that come into step', () => {
  const history = historyOf('1 create /t/a one', '1 set /t/a two', '1 create /t/b', '1 delete /t/b', '1 set /t/a three');
  const survey = (fromZxid: bigint, ...shown: readonly (readonly [string, bigint])[]): Survey => ({
    process: 'process-1',
    covers: (path) => path.startsWith('/t/'),
    fromZxid,
    toZxid: 5n,
    shown: new Map(shown),
  });

  test('have all that was there and is there still, or later; what is missing or older is found', () => {
    expect(judgeSurveys([survey(2n, ['/t/a', 2n]), survey(2n, ['/t/a', 5n]), survey(3n, ['/t/a', 2n])], history)).toEqual([]);
    expect(judgeSurveys([survey(5n, ['/t/a', 2n])], history)).toEqual([
      'missing: process-1 was in step with 5 at 5, and shown /t/a of 2 instead of 5',
    ]);
    expect(judgeSurveys([survey(1n)], history)).toHaveLength(1);
  });
});

describe('those who look on', () => {
  const history = historyOf('1 create /e/a one', '1 set /e/a two', '1 delete /e/a', '1 create /e/a one');
  const phases = new Map([['/e/a', phasesOfZnode('/e/a', history, (data) => data)]]);
  // A txn is of ten milliseconds.
  const found = (...shown: (readonly [value: string, atMs: number, fromZxid?: bigint])[]) =>
    judgeSightings(
      'process-1',
      shown.map(([value, atMs, fromZxid = 0n]) => ({ values: value === none ? new Map() : new Map([['/e/a', value]]), fromZxid, atMs })),
      phases,
    );

  test('and are shown what was, in its order, whatever they miss in between, are as they should be', () => {
    expect(found([none, 5], ['one', 15], ['two', 25], [none, 35], ['one', 45])).toEqual([]);
    expect(found([none, 15], ['one', 35], ['one', 45, 4n])).toEqual([]);
    expect(found(['one', 19, 1n], ['one', 99])).toEqual([]);
  });

  test.each<[string, Parameters<typeof found>]>([
    ['the future', [['two', 15]]],
    [
      'an earlier moment',
      [
        ['two', 25],
        ['one', 35],
      ],
    ],
    ['what was over when they began to look', [['two', 45, 3n]]],
    ['what never was', [['three', 45]]],
    [
      'the past, when they are to be up to date',
      [
        ['two', 25],
        ['two', 45, 4n],
      ],
    ],
  ])('and are shown %s are found', (_what, shown) => {
    expect(found(...shown)).toHaveLength(1);
  });

  test('and are shown what nobody has made are found', () => {
    const sighting = { values: new Map([['/e/b', 'one']]), fromZxid: 0n, atMs: 45 };
    expect(judgeSightings('process-1', [sighting], phases)).toEqual([
      'observed: process-1 was shown one as /e/b at 45.000, and it was not so at any time since 0',
    ]);
  });
});

describe('migrations', () => {
  const places = { folder: '/m', storePath: '/store' };
  const made = (number: number, session: number) => `${session} set /store change-${number} and create /m/applied/000000000${number} x`;
  const history = historyOf('9 create /store', made(1, 1), made(2, 2));
  const run = (session: bigint, known: number, names: readonly string[], result: Run['result'], seenZxid = 3n): Run => ({
    process: `process-${session}`,
    session,
    known,
    made: names,
    result,
    seenZxid,
  });

  test('that are made once, and told to who has made them, are as they should be', () => {
    const runs = [
      run(1n, 1, ['change-1'], 'up to date', 2n),
      run(2n, 2, [], 'open'),
      run(3n, 1, [], 'too old'),
      run(3n, 2, [], 'up to date'),
    ];
    expect(judgeMigrations(runs, places, history)).toEqual([]);
  });

  test('that are told to another, to two or to nobody, or are not made, are found', () => {
    const second = run(2n, 2, ['change-2'], 'up to date');
    expect(judgeMigrations([run(3n, 1, ['change-1'], 'up to date'), second], places, history)).toEqual([
      'changes: change-1 was made by 1, and told to process-3',
    ]);
    expect(judgeMigrations([second], places, history)).toEqual(['changes: change-1 was made by 1, and told to nobody']);
    const first = run(1n, 1, ['change-1'], 'up to date');
    expect(judgeMigrations([first, first, second], places, history)).toHaveLength(1);
    expect(judgeMigrations([first, { ...second, made: ['change-2', 'change-3'] }], places, history)).toHaveLength(1);
    expect(judgeMigrations([first, { ...second, seenZxid: 2n }, run(3n, 2, [], 'too old')], places, history)).toEqual([
      'changes: process-2 knew 2, had seen 1, and was told that it is up to date',
      'changes: process-3 knew 2, had seen 2, and was told that it is too old',
    ]);
  });

  test('that are made twice, or without a record, are found', () => {
    const first = run(1n, 1, ['change-1'], 'up to date');
    expect(judgeMigrations([first], places, historyOf('9 create /store', made(1, 1), '1 set /store change-1'))).toEqual([
      'changes: change-1 was made at 3, as number 2',
      'changes: change-1 was made at 3, and nothing recorded',
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

  test('whose items are taken out by their id tell how many they were', () => {
    const witness = new QueueWitness(rules);
    const removal = { process: 'process-2', session: 2n, id: 'a', fromZxid: 2n, told: { count: 2, toZxid: 3n } };
    witness.removals.push(removal);
    expect(witness.judge(history)).toEqual([]);
    removal.told = { count: 1, toZxid: 3n };
    expect(witness.judge(history)).toEqual(['removed: process-2 was told that it has taken out 1 of a, and they were 2']);
    removal.told = { count: 0, toZxid: 2n };
    expect(witness.judge(history)).toEqual([
      'lost: /q/queue-|a|1 is gone, and nobody has had it',
      'lost: /q/queue-|a|2 is gone, and nobody has had it',
    ]);
  });

  test('whose items go with their sessions lose them; and an item that is had before its time is found', () => {
    const gone = historyOf('1 ephemeral /q/queue-1 item-1', '1 close');
    expect(new QueueWitness({ ...rules, isEphemeral: true }).judge(gone)).toEqual([]);
    expect(new QueueWitness(rules).judge(gone)).toEqual(['lost: /q/queue-1 is gone, and nobody has had it']);
    const late = new QueueWitness({ ...rules, isEphemeral: true, dueMs: () => 20 });
    expect(late.judge(gone)).toEqual([]);
    const early = new QueueWitness({ ...rules, isEphemeral: true, dueMs: () => 25 });
    expect(early.judge(gone)).toEqual(['early: /q/queue-1 was had at 20, and is due at 25']);
  });
});

describe('kept znodes', () => {
  const rules = { parent: '/k', outlivesSessions: false };
  const history = historyOf('1 ephemeral /k/one text-1', '1 set /k/one text-2', '2 ephemeral /k/two text-3');
  const told = { process: 'process-1', sessions: new Set([1n]), path: '/k/one', text: 'text-2', seenZxid: 2n };
  const last = { process: 'process-1', sessions: new Set([1n]), path: '/k/one', session: 1n, may: new Set(['text-2']), atMs: 100 };

  test('that say what they were told to say are as they should be; others are found', () => {
    expect(judgeToldOfKept([told], rules, history)).toEqual([]);
    expect(judgeToldOfKept([{ ...told, seenZxid: 1n }], rules, history)).toHaveLength(1);
    expect(judgeToldOfKept([{ ...told, path: '/k/two', text: 'text-3', seenZxid: 3n }], rules, history)).toEqual([
      'kept: process-1 was told at 3 that /k/two is there, which is of session 2',
    ]);
  });

  test('of which there is one in the end, of the present session, with the latest data; others are found', () => {
    expect(judgeKeptInTheEnd([last], rules, history)).toEqual([]);
    expect(judgeKeptInTheEnd([{ ...last, session: 2n }], rules, history)).toHaveLength(1);
    const twice = { ...last, sessions: new Set([1n, 2n]), may: new Set(['text-2', 'text-3']) };
    expect(judgeKeptInTheEnd([twice], rules, history)).toHaveLength(1);
    // The other is of an earlier keeper, and on its way out.
    expect(judgeKeptInTheEnd([{ ...twice, may: last.may }], rules, history)).toEqual([]);
    expect(judgeKeptInTheEnd([{ ...last, path: '/k/other' }], rules, history)).toHaveLength(1);
    expect(judgeKeptInTheEnd([{ ...last, may: new Set(['text-1']) }], rules, history)).toEqual([
      'kept: /k/one of process-1 says text-2, and is to say text-1',
    ]);
  });
});
