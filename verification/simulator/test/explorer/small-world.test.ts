/**
 * The explorer itself, and what it finds within a few seconds. `npm run explore` searches further.
 */
import { makeZxid, PacketType, Writer, writeEmptyPacket } from '@tskeeper/protocol';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { breadth, sample } from '../../../../test/breadth.ts';
import {
  type SearchStart,
  runToQuiescence,
  encodeChoice,
  searchPresets,
  buildInitialState,
  ensembleOfInitialState,
  initialStateNames,
  hashOf,
  Invariants,
  MarkCounts,
  marks,
  choicesToServe,
  choicesToSession,
  parseRun,
  replayRun,
  runPreset,
  runText,
  type Scope,
  scopeDefaults,
  search,
  type SearchOptions,
  shrinkRun,
  SmallWorld,
  Violation,
} from '../../src/internal.ts';

/** Small enough for a complete search. */
const tiny: Scope = { ...scopeDefaults, servers: 2, txns: 0, crashes: breadth(0, 1), cuts: 0, wakes: 0 };
/** With requests for another configuration. */
const changing: Scope = { ...scopeDefaults, reconfigs: 2, txns: 1 };
const usual: SearchStart = { scope: scopeDefaults };
const pairsMax = breadth(3, 30);
const ascending = (codes: readonly number[]): number[] => codes.toSorted((a, b) => a - b);
/** A leader that remembers only one txn also uses SNAP, TRUNC and the log. */
const forgetful: Scope = { ...scopeDefaults, committedLog: 1 };

function options(scope: Scope, more: Partial<SearchOptions> = {}): SearchOptions {
  return { scope, prefix: [], order: 'chains', seed: 1, depthMax: 400, shouldStop: () => false, ...more };
}

/** Random walks by a seed: `visit` gets each state and the run that led to it. */
function walk(
  beginning: SearchStart,
  opening: readonly number[],
  seed: number,
  length: number,
  visit: (hash: number, run: readonly number[]) => void,
): void {
  const world = new SmallWorld(beginning.scope, beginning.initialState);
  const run: number[] = [];
  const make = (code: number): void => {
    run.push(code);
    world.apply(code);
  };
  for (const code of opening) make(code);
  let chance = seed;
  for (let step = 0; step < length; step++) {
    const choices = world.choices();
    if (choices.length === 0) return;
    chance = (Math.imul(chance, 1_103_515_245) + 12_345) >>> 0;
    make(choices[(chance >>> 8) % choices.length]!);
    visit(hashOf(world), run);
  }
}

/** The choices until all servers serve, and until a client has a session. */
function openingOf(beginning: SearchStart, hasSession: boolean): readonly number[] {
  if (beginning.scope.elections === 'any') return [];
  return hasSession ? choicesToSession(beginning) : choicesToServe(beginning);
}

afterEach(() => {
  vi.restoreAllMocks();
});

describe('a run', () => {
  test('is the same after it was written as text and parsed', () => {
    const words =
      'notify1>2,packet2#0,break2#1,dial3,log1,file1,wake2,sleep2,write1,crash1.2.1,start1,cut1-2,heal1-2,elect6,refuse1-3,refusal1>3,finalize2>2,crash1.0.0.1,config1,reconfig3.1,transfer3>2,elect15';
    expect(runText(parseRun(words))).toBe(words);
    expect(() => parseRun('packet2#0,hop1')).toThrow('hop1 is not a choice');
  });

  test('leads to the same state each time', () => {
    const opening = choicesToServe(usual);
    expect(hashOf(replayRun(usual, opening).world)).toBe(hashOf(replayRun(usual, opening).world));
  });
});

describe('states', () => {
  test.each([
    { scope: scopeDefaults, initialState: 'empty', kind: 'with the usual scope' },
    { scope: forgetful, initialState: 'lagging server', kind: 'with leaders that remember one txn' },
    {
      scope: { ...scopeDefaults, elections: 'each', wakes: 6 },
      initialState: 'uncommitted tail',
      kind: 'with elections message by message',
    },
    { scope: { ...scopeDefaults, elections: 'any' }, initialState: 'two uncommitted tails', kind: 'with elections that go wrong' },
    { scope: { ...changing, ensemble: 'joining' }, initialState: 'empty', kind: 'with a server that joins' },
    { scope: { ...changing, ensemble: 'demoted' }, initialState: 'empty', kind: 'with a voter that becomes an observer' },
    { scope: { ...changing, servers: 4, ensemble: 'replacing' }, initialState: 'empty', kind: 'with a leader that is replaced' },
    {
      scope: { ...changing, servers: 4, ensemble: 'growing' },
      initialState: 'pending configuration',
      kind: 'with a pending configuration',
    },
  ] as const)('$kind and the same fingerprint have the same next states', ({ scope, initialState }) => {
    const beginning = { scope, initialState: buildInitialState(initialState) };
    const runs = new Map<number, readonly number[]>();
    const pairs: [readonly number[], readonly number[]][] = [];
    const opening = openingOf(beginning, initialState === 'empty' && scope.reconfigs > 0);
    for (let seed = 1; seed <= 600 && pairs.length < pairsMax; seed++) {
      walk(beginning, seed % 2 === 0 ? opening : [], seed, 45, (hash, run) => {
        const known = runs.get(hash);
        if (known === undefined) runs.set(hash, [...run]);
        else if (runText(known) !== runText(run) && pairs.length < pairsMax) pairs.push([known, [...run]]);
      });
    }
    expect(pairs.length).toBe(pairsMax);
    for (const [one, other] of pairs) {
      const { world } = replayRun(beginning, one);
      const { world: twin } = replayRun(beginning, other);
      const choices = world.choices();
      expect(ascending(twin.choices())).toEqual(ascending(choices));
      const code = choices[one.length % Math.max(1, choices.length)];
      if (code === undefined) continue;
      world.apply(code);
      twin.apply(code);
      expect(`${runText([code])} ${hashOf(twin)}`, `${runText(one)} and ${runText(other)}`).toBe(`${runText([code])} ${hashOf(world)}`);
    }
  });

  test('do not differ by where in a tick a clock is, and the next session of a client is the same', () => {
    // Of server 3 one clock is at 3201 ms, the other at 3200 ms; no client has a session yet.
    const end = 'elect7,dial1,packet3#0,file3,packet1#0,file1,packet3#0,file3,packet1#0,packet1#0,file1,packet3#0';
    const { world } = replayRun(
      usual,
      parseRun(`crash3.0.0,crash1.0.0,start3,cut1-2,elect6,wake2,elect6,start1,dial3,wake3,break2#0,sleep2,heal1-2,${end}`),
    );
    const { world: twin } = replayRun(
      usual,
      parseRun(`cut2-3,crash2.0.0,crash1.0.0,start2,start1,heal2-3,elect6,wake2,elect6,sleep2,wake3,${end}`),
    );
    expect(world.servers[2]!.clockMs - twin.servers[2]!.clockMs).toBe(1);
    expect(hashOf(twin)).toBe(hashOf(world));
    for (const each of [world, twin]) each.apply(encodeChoice('write', 3));
    expect(hashOf(twin)).toBe(hashOf(world));
  });

  test('have different fingerprints after each relevant input', () => {
    const world = new SmallWorld(scopeDefaults);
    const seen = [hashOf(world)];
    for (const code of [...choicesToServe(usual), ...parseRun('write1,write3,crash2.0.0,start2,cut1-3,sleep3')]) {
      world.apply(code);
      seen.push(hashOf(world));
    }
    expect(new Set(seen).size).toBe(seen.length);
  });
});

describe('a search', () => {
  test('that is complete visits the same states in every order', () => {
    const chains = search(options(tiny));
    const layers = search(options(tiny, { order: 'breadth', seed: 7 }));
    const complete = search(options(tiny, { order: 'complete' }));
    expect(chains.violation).toBeUndefined();
    expect([chains.isComplete, layers.isComplete, complete.isComplete]).toEqual([true, true, true]);
    expect([layers.states, complete.states]).toEqual([chains.states, chains.states]);
    expect(complete.steps).toBeLessThanOrEqual(chains.steps);
    expect(chains.states).toBeGreaterThan(breadth(10, 200));
  });

  test.each(sample(searchPresets, 4))('$name finds no violation, and the ensemble serves again after the faults', (preset) => {
    const statesMin = breadth(120, 1200);
    const { found } = runPreset(
      { ...preset, statesPercent: 100, quiesceEvery: preset.order === 'walks' ? 1 : breadth(1, 5) },
      statesMin,
      3,
    );
    expect(found.violation?.error.message).toBeUndefined();
    expect(found.quiescences).toBeGreaterThan(0);
    expect(found.states).toBeGreaterThanOrEqual(statesMin);
  });

  test('distributes 100 percent among the presets, and every mark must be hit', () => {
    expect(searchPresets.reduce((sum, { statesPercent }) => sum + statesPercent, 0)).toBe(100);
    const counts = new MarkCounts();
    expect(counts.missing).toEqual(Object.keys(marks));
    counts.add(['SNAP', 'TRUNC']);
    expect([counts.count('SNAP'), counts.missing.includes('TRUNC')]).toEqual([1, false]);
  });

  test('that finds a violation returns the run that leads to it, and the run can be shortened', () => {
    vi.spyOn(Invariants.prototype, 'clientAcknowledged').mockImplementation((name) => {
      throw new Violation('AcknowledgedIsCommitted', `${name}: no client may receive this`);
    });
    const { violation } = search(options(scopeDefaults));
    const { error, run } = violation!;
    expect(error.invariant).toBe('AcknowledgedIsCommitted');
    const shorter = shrinkRun(usual, run, error);
    expect(shorter.length).toBeLessThan(run.length);
    expect(replayRun(usual, shorter)).toMatchObject({ error: { invariant: 'AcknowledgedIsCommitted' }, made: shorter });
    const isNeeded = (at: number) => replayRun(usual, shorter.toSpliced(at, 1)).error?.invariant !== error.invariant;
    expect(shorter.map((_code, at) => at).filter((at) => !isNeeded(at))).toEqual([]);
  });
});

describe('the world', () => {
  test('reports a message that a server must not receive as a violation', () => {
    const { world } = replayRun(usual, choicesToServe(usual));
    const follower = world.servers.find(({ peer }) => peer!.role === 'learning')!;
    const [end] = follower.streams.ends.values();
    const writer = new Writer(64);
    writeEmptyPacket(writer, PacketType.COMMIT, 0x1_0000_0009);
    end!.inbox.push(Buffer.from(writer.written()));
    expect(() => world.apply(encodeChoice('packet', follower.sid, end!.channel))).toThrow('NoProtocolError');
  });

  test('skips choices that are not possible', () => {
    const { made } = replayRun(usual, parseRun('packet1#0,start1,crash1.0.0,start1'));
    expect(runText(made)).toBe('crash1.0.0,start1');
  });
});

describe('an operator', () => {
  const giving: SearchStart = { scope: { ...scopeDefaults, transfers: 2 } };

  test('has the leader give the lead to a follower, which leads without an election', () => {
    const { world } = replayRun(giving, [...choicesToServe(giving), ...parseRun('transfer3>1')]);
    expect([...world.takeHits()]).toContain('lead handed over');
    expect(runToQuiescence(world, 'all')).toBeLessThan(2000);
    expect(world.servers.map(({ peer }) => peer!.role)).toEqual(['leading', 'learning', 'learning']);
    expect([...world.takeHits()]).toEqual(expect.arrayContaining(['leads without an election', 'follows without an election']));
  });

  test('is refused while another transfer is under way, and can ask as often as the scope allows', () => {
    const { world } = replayRun(giving, [...choicesToServe(giving), ...parseRun('write3,transfer3>1,transfer3>2')]);
    expect([...world.takeHits()]).toContain('transfer refused');
    expect(runText(world.choices())).not.toContain('transfer');
  });

  test('a reply that the leader sends before it resigns is to a committed txn', () => {
    const run = 'write3,packet1#0,transfer3>1,log3,log1,packet3#0';
    const { made, error } = replayRun(giving, [...choicesToServe(giving), ...parseRun(run)]);
    expect([made.length - choicesToServe(giving).length, error?.message]).toEqual([6, undefined]);
  });
});

test('a server does not use the stream to its previous leader as a stream to its next leader', () => {
  const beginning = { scope: scopeDefaults, initialState: buildInitialState('later accepted epoch') };
  const run = parseRun(
    'elect3,dial1,packet2#0,file2,packet1#0,file1,packet2#0,file2,packet1#0,packet1#0,file1,elect7,sleep3,elect6,wake2,break1#0,elect5,sleep3,elect6',
  );
  const { made, error } = replayRun(beginning, run, 'all');
  expect(made).toEqual(run);
  expect(error?.message).toBeUndefined();
});

describe('the initial states', () => {
  test.each(initialStateNames)('%s: all servers start from it, and serve without faults', (name) => {
    const world = new SmallWorld({ ...scopeDefaults, ...ensembleOfInitialState(name) }, buildInitialState(name));
    expect(world.servers.every(({ peer }) => peer !== undefined)).toBe(true);
    expect(runToQuiescence(world, 'all')).toBeLessThan(2000);
  });

  const lastOf = (name: (typeof initialStateNames)[number]) =>
    buildInitialState(name)!.disks.map(({ log, snapshot }) => (log.at(-1) ?? snapshot)?.zxid);

  test('have the logs and epochs that their names describe', () => {
    const [a, b, c] = [makeZxid(1, 1), makeZxid(1, 2), makeZxid(2, 1)];
    expect(lastOf('uncommitted tail')).toEqual([a, a, b]);
    expect(lastOf('two uncommitted tails')).toEqual([a, c, b]);
    expect(lastOf('lagging server')).toEqual([a, makeZxid(2, 2), makeZxid(2, 2)]);
    expect(buildInitialState('interrupted join')!.disks[2]).toMatchObject({ acceptedEpoch: 2, currentEpoch: 1 });
    expect(buildInitialState('accepted epoch')!.disks.map(({ acceptedEpoch }) => acceptedEpoch)).toEqual([1, 1, 2]);
    expect(buildInitialState('later accepted epoch')!.disks.map(({ acceptedEpoch }) => acceptedEpoch)).toEqual([1, 1, 3]);
    expect(buildInitialState('uncommitted snapshot')!.disks[2]!.snapshot!.zxid).toBe(c);
    expect(lastOf('pending configuration')).toEqual([a, a, b, b]);
    expect(buildInitialState('pending configuration')!.disks.map(({ configs }) => configs.next?.version)).toEqual([
      undefined,
      undefined,
      b,
      b,
    ]);
    expect(buildInitialState('missed reconfiguration')!.disks.map(({ configs }) => configs.active.version)).toEqual([
      makeZxid(1, 0),
      b,
      b,
      b,
    ]);
  });
});

describe('the end of all faults', () => {
  test('leads to a quorum that serves although one server stays down', () => {
    const { world } = replayRun(usual, parseRun('crash3.0.0'));
    expect(runToQuiescence(world, 'core')).toBeLessThan(2000);
    expect(world.servers[2]!.peer).toBeUndefined();
    expect(runToQuiescence(world, 'all')).toBeLessThan(2000);
    expect(world.servers.every(({ peer }) => peer?.server !== undefined)).toBe(true);
  });

  test('includes the cut between two servers that are a quorum only together', () => {
    const { world } = replayRun({ scope: { ...scopeDefaults, servers: 2 } }, parseRun('cut1-2'));
    expect(runToQuiescence(world, 'core')).toBeLessThan(2000);
  });

  test('is a violation when the ensemble does not serve afterwards', () => {
    const { world } = replayRun(usual, []);
    for (const server of world.servers) server.peer!.deadline = () => undefined;
    expect(() => runToQuiescence(world, 'all')).toThrow('Liveness');
  });
});

/**
 * The early end of the wait before a server settles on its vote: see docs/internals/election.md.
 */
describe('the wait before settling on a vote, message by message', () => {
  const scope: Scope = { ...scopeDefaults, elections: 'each', wakes: 6 };
  /** The marks that the run hits, and which servers look for a leader at its end. */
  const after = (words: string) => {
    const world = new SmallWorld(scope);
    for (const code of parseRun(words)) world.apply(code);
    return { hits: [...world.takeHits()], looking: world.servers.map(({ isLooking }) => isLooking) };
  };

  test('ends as soon as all servers have announced the same vote, and not before', () => {
    const words = 'notify2>1,notify1>2,notify3>1,notify3>2,notify1>3';
    expect(after(words)).toEqual({ hits: [], looking: [true, true, true] });
    expect(after(`${words},notify2>3`)).toEqual({ hits: ['election finalized early'], looking: [true, true, false] });
  });

  test('does not wait for a server that refuses connections, but waits for one that is back', () => {
    const words = 'notify1>3,notify1>2,crash1.0.0,notify3>2,notify2>3';
    expect(after(words)).toEqual({ hits: [], looking: [false, true, true] });
    expect(after(`${words},refusal3>1`)).toEqual({
      hits: ['election finalized early without an unreachable server'],
      looking: [false, true, false],
    });
    expect(after(`${words},start1,notify3>1`)).toEqual({ hits: [], looking: [true, true, true] });
  });

  test('can end for a follower before its leader listens; the follower then dials again', () => {
    const early = 'notify2>1,notify1>2,notify3>1,notify3>2,notify1>3,notify2>1';
    expect(after(early)).toEqual({ hits: ['election finalized early'], looking: [false, true, true] });
    expect(after(`${early},dial1`)).toEqual({
      hits: ['election finalized early', 'refused by a leader not yet leading'],
      looking: [false, true, true],
    });
    expect(after(`${early},dial1,notify2>3,wake1,dial1,packet3#0`)).toMatchObject({ looking: [false, true, false] });
  });

  test('lasts its full time for a server that does not answer', () => {
    const words = 'notify2>1,notify1>2,cut1-3,cut2-3';
    expect(after(words)).toEqual({ hits: [], looking: [true, true, true] });
    expect(after(`${words},wake1`)).toEqual({ hits: ['finalize wait for a silent server'], looking: [false, true, true] });
  });
});
