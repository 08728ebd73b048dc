/** Stories over seeds: that all of them go well, and that a recipe which is broken on purpose is found out. */
import { expect, it, vi } from 'vitest';

/** Some fifty stories take a second or two in a quiet place, and a canary may need as many until it is found out. */
export const storiesTimeoutMs = 60_000;

/** Tells a story under so many seeds; the first that does not go well ends it. */
export async function overSeeds(count: number, story: (seed: number) => Promise<unknown>, first = 1): Promise<void> {
  for (let seed = first; seed < first + count; seed++) {
    await story(seed).catch((error: unknown) => {
      throw new Error(`seed ${seed}: ${String(error)}`, { cause: error });
    });
  }
}

/** How long a canary is looked for. */
export interface Search {
  /** As many stories have to find something. Default: 3. */
  readonly enough?: number;
  /** Of so many. Default: 60. */
  readonly atMost?: number;
  /** The first seed. Default: 1. */
  readonly first?: number;
}

/** What the first stories say that find something. */
export async function findings(
  story: (seed: number) => Promise<unknown>,
  { enough = 3, atMost = 60, first = 1 }: Search = {},
): Promise<readonly string[]> {
  const caught: string[] = [];
  for (let seed = first; seed < first + atMost && caught.length < enough; seed++) {
    await story(seed).catch((error: unknown) => void caught.push(String(error)));
  }
  return caught;
}

/** A recipe that is broken on purpose. */
export interface Canary {
  /** By `vi.spyOn`; taken back behind the story. */
  readonly plant: () => unknown;
  /** What the stories have to say of it. */
  readonly finds: RegExp;
}

/** A test for each canary: those whom the suite is about are found out when one of them is such. */
export function itFindsOut(
  canaries: Readonly<Record<string, Canary>>,
  story: (seed: number) => Promise<unknown>,
  search: Search = {},
): void {
  it.each(Object.entries(canaries))(
    'are found out when one %s',
    async (_name, { plant, finds }) => {
      const caught = await findings(async (seed) => {
        plant();
        await story(seed).finally(() => vi.restoreAllMocks());
      }, search);
      expect(caught).toEqual(Array.from({ length: search.enough ?? 3 }, () => expect.stringMatching(finds)));
    },
    storiesTimeoutMs,
  );
}
