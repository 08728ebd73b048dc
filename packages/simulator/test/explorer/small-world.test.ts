/** The explorer itself, and what it says of the machines in a few seconds. `npm run explore` goes on from there. */
import { PacketType, Writer, writeEmptyPacket } from '@tskeeper/protocol';
import { afterEach, describe, expect, test, vi } from 'vitest';
import {
  choice,
  chosen,
  hashOf,
  Invariants,
  openingToServe,
  parseRun,
  replayRun,
  runText,
  type Scope,
  scopeDefaults,
  search,
  type SearchOptions,
  shorten,
  SmallWorld,
  Violation,
} from '../../src/internal.ts';

/** Small enough to be seen as a whole. */
const tiny: Scope = { ...scopeDefaults, servers: 2, txns: 1, crashes: 1, cuts: 0, wakes: 0 };
const pairsMax = 100;
const ascending = (codes: readonly number[]): number[] => codes.toSorted((a, b) => a - b);
/** SNAP, TRUNC and the log come into play when a leader remembers one txn. */
const forgetful: Scope = { ...scopeDefaults, committedLog: 1 };

function options(scope: Scope, more: Partial<SearchOptions> = {}): SearchOptions {
  return { scope, opening: [], order: 'chains', seed: 1, depthMax: 400, isEnough: () => false, ...more };
}

const until =
  (count: number): SearchOptions['isEnough'] =>
  ({ states }) =>
    states >= count;

/** Some walks down, by a seed: each state with the run that has led to it. */
function walk(
  scope: Scope,
  opening: readonly number[],
  seed: number,
  length: number,
  visit: (hash: number, run: readonly number[]) => void,
): void {
  const world = new SmallWorld(scope);
  const run: number[] = [];
  const make = (code: number): void => {
    run.push(code);
    world.make(code);
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

afterEach(() => {
  vi.restoreAllMocks();
});

describe('a run', () => {
  test('is written and read back', () => {
    const words = 'notify1>2,packet2#0,break2#1,dial3,log1,file1,wake2,sleep2,write1,crash1.2.1,start1,cut1-2,heal1-2,elect6';
    expect(runText(parseRun(words))).toBe(words);
    expect(() => parseRun('packet2#0,hop1')).toThrow('hop1 is no choice');
  });

  test('leads to the same state each time', () => {
    const opening = openingToServe(scopeDefaults);
    expect(hashOf(replayRun(scopeDefaults, opening).world)).toBe(hashOf(replayRun(scopeDefaults, opening).world));
  });
});

describe('states', () => {
  test.each([
    { scope: scopeDefaults, kind: 'of the usual scope' },
    { scope: forgetful, kind: 'of leaders that remember one txn' },
  ])('$kind with the same fingerprint do the same for each next choice', ({ scope }) => {
    const runs = new Map<number, readonly number[]>();
    const pairs: [readonly number[], readonly number[]][] = [];
    const opening = openingToServe(scope);
    for (let seed = 1; seed <= 150 && pairs.length < pairsMax; seed++) {
      walk(scope, seed % 2 === 0 ? opening : [], seed, 45, (hash, run) => {
        const known = runs.get(hash);
        if (known === undefined) runs.set(hash, [...run]);
        else if (runText(known) !== runText(run) && pairs.length < pairsMax) pairs.push([known, [...run]]);
      });
    }
    expect(pairs.length).toBe(pairsMax);
    for (const [one, other] of pairs) {
      const { world } = replayRun(scope, one);
      const { world: twin } = replayRun(scope, other);
      const choices = world.choices();
      expect(ascending(twin.choices())).toEqual(ascending(choices));
      const code = choices[one.length % Math.max(1, choices.length)];
      if (code === undefined) continue;
      world.make(code);
      twin.make(code);
      expect(`${runText([code])} ${hashOf(twin)}`, `${runText(one)} and ${runText(other)}`).toBe(`${runText([code])} ${hashOf(world)}`);
    }
  });

  test('differ by fingerprint after each input that matters', () => {
    const world = new SmallWorld(scopeDefaults);
    const seen = [hashOf(world)];
    for (const code of [...openingToServe(scopeDefaults), ...parseRun('write1,write3,crash2.0.0,start2,cut1-3,sleep3')]) {
      world.make(code);
      seen.push(hashOf(world));
    }
    expect(new Set(seen).size).toBe(seen.length);
  });
});

describe('a search', () => {
  test('that has come to its end has seen the same states in whatever order', () => {
    const chains = search(options(tiny));
    const breadth = search(options(tiny, { order: 'breadth', seed: 7 }));
    expect(chains.violation).toBeUndefined();
    expect([chains.isComplete, breadth.isComplete]).toEqual([true, true]);
    expect(chains.states).toBe(breadth.states);
    expect(chains.states).toBeGreaterThan(500);
  }, 20_000);

  const searches: Record<string, SearchOptions> = {
    'from empty servers': options(scopeDefaults, { isEnough: until(8000) }),
    'from an ensemble that serves': options(scopeDefaults, { opening: openingToServe(scopeDefaults), isEnough: until(4000) }),
    'with leaders that remember one txn': options(forgetful, { opening: openingToServe(forgetful), isEnough: until(4000), seed: 5 }),
    'by walks, each notification by itself': options({ ...scopeDefaults, notifications: true }, { order: 'walks', isEnough: until(8000) }),
  };
  test.each(Object.entries(searches))(
    '%s finds no violation',
    (_name, each) => {
      const { violation } = search(each);
      expect(violation?.error.message).toBeUndefined();
    },
    20_000,
  );

  test('that finds a violation gives the run that leads to it, which can be made shorter', () => {
    vi.spyOn(Invariants.prototype, 'told').mockImplementation((name) => {
      throw new Violation('AcknowledgedIsCommitted', `${name}: nobody is ever to be told`);
    });
    const { violation } = search(options(scopeDefaults));
    const { error, run } = violation!;
    expect(error.invariant).toBe('AcknowledgedIsCommitted');
    const shorter = shorten(scopeDefaults, run, error);
    expect(shorter.length).toBeLessThan(run.length);
    expect(replayRun(scopeDefaults, shorter)).toMatchObject({ error: { invariant: 'AcknowledgedIsCommitted' }, made: shorter });
    expect(shorter.filter((code) => chosen(code).kind === 'crash')).toEqual([]);
  }, 20_000);
});

describe('the world', () => {
  test('notices when a server is sent what it cannot make sense of', () => {
    const { world } = replayRun(scopeDefaults, openingToServe(scopeDefaults));
    const follower = world.servers.find(({ peer }) => peer!.role === 'learning')!;
    const [end] = follower.ends.values();
    const writer = new Writer(64);
    writeEmptyPacket(writer, PacketType.COMMIT, 0x1_0000_0009);
    end!.inbox.push(Buffer.from(writer.written()));
    expect(() => world.make(choice('packet', follower.sid, end!.channel))).toThrow('Legality');
  });

  test('makes no choice that is not there', () => {
    const { made } = replayRun(scopeDefaults, parseRun('packet1#0,start1,crash1.0.0,start1'));
    expect(runText(made)).toBe('crash1.0.0,start1');
  });
});
