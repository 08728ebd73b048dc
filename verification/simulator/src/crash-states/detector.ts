/** Crash states as a detector of mutants: one case per seed, and only some of its states. */
import { folderKinds, type JoinCase, syncKinds } from './join-world.ts';
import { runCase } from './enumeration.ts';

/** Takes a second or two. */
const statesMax = 80;

/** See `Detection` of the explorer. */
export async function detectWithCrashStates(seed: number): Promise<{ readonly states: number; readonly finding: string | undefined }> {
  const joinCase: JoinCase = {
    folder: folderKinds[seed % folderKinds.length]!,
    sync: syncKinds[seed % syncKinds.length]!,
    seed,
  };
  const { states, finding } = await runCase(joinCase, statesMax);
  return { states, finding };
}
