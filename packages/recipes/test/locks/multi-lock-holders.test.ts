/**
 * Two MultiLocks with a common part are never held at once, over seeds; see
 * test/support/holder-story.ts.
 */
import { describe, expect, it } from 'vitest';
import { expectHappened, sample } from '../../../../test/breadth.ts';
import { type Hold, Lock, MultiLock } from '../../src/index.ts';
import { HoldSet, releaseAll } from '../../src/wait-queue/hold-set.ts';
import { runSeeds, runOf, type Subject } from '../support/holder-runs.ts';
import { findings } from '../support/seeds.ts';

const names = ['a', 'b', 'c'];

const multiLock: Subject = {
  async acquire(zk, random, options) {
    const without = random.below(3);
    const mine = names.filter((_name, at) => at !== without);
    const held = await new MultiLock(mine.map((name) => new Lock(zk, `/locks/${name}`))).acquire(options);
    // Tokens of different locks cannot be compared.
    return { held, paths: held.holds.map(({ path }) => path), how: mine.join(''), token: undefined };
  },
  // Two of three: any two have one in common.
  mayHold: (_how, others) => others.length === 0,
  znodes: async (zk) => {
    const lines = await Promise.all(names.map((name) => new Lock(zk, `/locks/${name}`).contenders()));
    return lines.flat().map(({ path }) => path);
  },
};

/** How a program would do it without a MultiLock. */
function byHand({ inOrder, givesBack }: { readonly inOrder: boolean; readonly givesBack: boolean }): Subject {
  return {
    ...multiLock,
    async acquire(zk, random, options) {
      const first = random.below(3);
      const mine = [names[first]!, names[(first + 1) % 3]!];
      if (inOrder) mine.sort();
      const holds: Hold[] = [];
      try {
        for (const name of mine) holds.push(await new Lock(zk, `/locks/${name}`).acquire(options));
      } catch (error) {
        if (givesBack) await releaseAll(holds);
        throw error;
      }
      return { held: new HoldSet(holds), paths: holds.map(({ path }) => path), how: mine.join(''), token: undefined };
    },
  };
}

describe('a holder of several locks', () => {
  it('B13, C1-3: is the only holder of each of them under failures, over seeds', async () => {
    const { alone, ...tally } = await runSeeds(multiLock, 0, 8);
    expect(alone).toBe(0);
    expectHappened(tally, 0);
  });

  it.each(
    sample(
      [
        { inOrder: false, givesBack: true },
        { inOrder: true, givesBack: false },
      ],
      1,
    ),
  )('is detected to wait forever with inOrder $inOrder and givesBack $givesBack', async (how) => {
    expect(await findings(runOf(byHand(how)), { enough: 1 })).toEqual([expect.stringMatching(/still not so/)]);
  });
});
