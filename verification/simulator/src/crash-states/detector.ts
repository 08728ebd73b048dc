/**
 * Crash states as a detector of mutants: the files of a configuration, and one case of joining per
 * seed, with only some of its states.
 */
import { checkConfigStates } from './config-states.ts';
import { folderKinds, type JoinCase, syncKinds } from './join-world.ts';
import { runCase } from './enumeration.ts';

/** Takes a second or two. */
const statesMax = 80;

/** See `Detection` of the explorer. */
export async function detectWithCrashStates(seed: number): Promise<{ readonly states: number; readonly finding: string | undefined }> {
  const configs = await checkConfigStates(seed);
  if (configs.finding !== undefined) return configs;
  const joinCase: JoinCase = {
    folder: folderKinds[seed % folderKinds.length]!,
    sync: syncKinds[seed % syncKinds.length]!,
    seed,
  };
  const { states, finding } = await runCase(joinCase, statesMax);
  return { states, finding };
}
