/**
 * Stories over seeds: that all of them succeed, and that a recipe with a planted bug is detected.
 */
import { expect, it, vi } from 'vitest';
import { breadth } from '../../../../test/breadth.ts';

/**
 * Runs a story under this many seeds, or in `npm test` under a fifteenth of them; the first failure
 * ends it.
 */
export async function overSeeds(count: number, story: (seed: number) => Promise<unknown>, first = 1): Promise<void> {
  for (let seed = first; seed < first + breadth(Math.ceil(count / 15), count); seed++) {
    await story(seed).catch((error: unknown) => {
      throw new Error(`seed ${seed}: ${String(error)}`, { cause: error });
    });
  }
}

/** How long to search for a canary. */
export interface Search {
  /** This many stories have to detect it; in `npm test` one. Default: 3. */
  readonly enough?: number;
  /** Of this many. Default: 60. */
  readonly atMost?: number;
  /** The first seed. Default: 1. */
  readonly first?: number;
  /** The canary that `npm test` uses, if the first takes long. */
  readonly quick?: string;
}

/** The messages of the first stories that detect something. */
export async function findings(
  story: (seed: number) => Promise<unknown>,
  { enough = 3, atMost = 60, first = 1 }: Search = {},
): Promise<readonly string[]> {
  const caught: string[] = [];
  for (let seed = first; seed < first + atMost && caught.length < breadth(1, enough); seed++) {
    await story(seed).catch((error: unknown) => void caught.push(String(error)));
  }
  return caught;
}

/** A recipe with a planted bug. */
export interface Canary {
  /** By `vi.spyOn`; restored after the story. */
  readonly plant: () => unknown;
  /** What the stories have to report. */
  readonly finds: RegExp;
}

/**
 * A test for each canary, or in `npm test` for one of them: the subject of the suite is detected
 * when it has that bug.
 */
export function itFindsOut(
  canaries: Readonly<Record<string, Canary>>,
  story: (seed: number) => Promise<unknown>,
  search: Search = {},
): void {
  const wanted = breadth([search.quick ?? Object.keys(canaries)[0]!], Object.keys(canaries));
  it.each(wanted.map((name) => [name, canaries[name]!] as const))('are detected when one %s', async (_name, { plant, finds }) => {
    const caught = await findings(async (seed) => {
      plant();
      await story(seed).finally(() => vi.restoreAllMocks());
    }, search);
    expect(caught).toEqual(Array.from({ length: breadth(1, search.enough ?? 3) }, () => expect.stringMatching(finds)));
  });
}
