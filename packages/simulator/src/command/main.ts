/** The command. See `usage` in options.ts. */
import { type CrashStatesOptions, crashStatesDefaults, enumerateCrashStates } from '../crash-states/command.ts';
import { folderKinds, syncKinds } from '../crash-states/joining.ts';
import { mutants } from '../mutants/mutants.ts';
import { runCi } from './ci.ts';
import { type CommandOptions, parseOptions, usage, UsageError } from './options.ts';
import { work } from './pool.ts';
import { freshBase, runCommand } from './run.ts';
import { reportSeed } from './seed-report.ts';
import { catchText, runZoo } from './zoo.ts';

const zooSeedsMax = 2000;

export async function main(args: readonly string[]): Promise<void> {
  try {
    const options = parseOptions(args);
    if (options.command === 'worker') work((seed) => reportSeed(seed));
    else process.exitCode = (await carryOut(options)) ? 0 : 1;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    console.error(error.message);
    process.exitCode = 2;
  }
}

async function carryOut(options: CommandOptions): Promise<boolean> {
  const { command, jobs, mutant, seeds, from } = options;
  switch (command) {
    case 'run':
      return await runCommand(options);
    case 'ci':
      return await runCi(jobs);
    case 'zoo': {
      const names = mutant === undefined ? Object.keys(mutants) : [mutant];
      const caught = await runZoo(names, from ?? freshBase(), seeds ?? zooSeedsMax, jobs, (each) => console.log(catchText(each)));
      const escaped = caught.filter(({ report }) => report === undefined).length;
      const needed = caught.map((each) => each.seeds).toSorted((a, b) => a - b);
      console.log(
        `${caught.length - escaped} of ${caught.length} mutants caught; seeds needed: median ${needed[needed.length >> 1]}, at most ${needed.at(-1)}`,
      );
      return escaped === 0;
    }
    case 'crash-states':
      return await runCrashStates(options);
    case 'worker':
      return true;
    default:
      return command satisfies never;
  }
}

async function runCrashStates({ states, perCase, seed, folder, sync }: CommandOptions): Promise<boolean> {
  const kinds = { folder: folderKinds.find((each) => each === folder), sync: syncKinds.find((each) => each === sync) };
  if (kinds.folder !== folder || kinds.sync !== sync || (folder === undefined) !== (sync === undefined)) throw new UsageError(usage);
  const alone = kinds.folder === undefined || kinds.sync === undefined ? undefined : { folder: kinds.folder, sync: kinds.sync };
  const options: CrashStatesOptions = {
    states: states ?? crashStatesDefaults.states,
    // One case alone is looked at as a whole.
    statesPerCase: perCase ?? (alone === undefined ? crashStatesDefaults.statesPerCase : Infinity),
    seed: seed ?? crashStatesDefaults.seed,
    case: alone,
  };
  const { finding, states: found, missing } = await enumerateCrashStates(options, (line) => console.log(line));
  // Whoever hunts a mutant listens over the channel.
  process.send?.({ finding, states: found });
  if (missing.length > 0) console.log(`not reached: ${missing.join(', ')}`);
  if (process.connected) process.disconnect();
  return finding === undefined && missing.length === 0;
}
