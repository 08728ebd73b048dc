/** The command `sim`; `usage` in options.ts describes it. */
import { crashStates } from '../crash-states/command.ts';
import { mutants } from '../mutants/mutants.ts';
import { runCi } from './ci.ts';
import type { Detector } from '../mutants/mutant.ts';
import { detectors, seedsMax } from './detectors.ts';
import { type CommandOptions, parseOptions } from './options.ts';
import { serveSeeds } from './pool.ts';
import { runRecipesCi } from './recipes-ci.ts';
import { freshSeedBase, runCommand } from './run.ts';
import { UsageError } from './usage-error.ts';
import { mutantResultText, detectorOf, runMutants, mutantsSummary } from './run-mutants.ts';

export async function main(args: readonly string[]): Promise<void> {
  try {
    if (args[0] === 'crash-states') {
      process.exitCode = (await crashStates(args.slice(1))) ? 0 : 1;
      return;
    }
    const options = parseOptions(args);
    if (options.command === 'worker') serveSeeds(detectors[options.detector ?? 'seeds']);
    else process.exitCode = (await execute(options)) ? 0 : 1;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    console.error(error.message);
    process.exitCode = 2;
  }
}

async function execute(options: CommandOptions): Promise<boolean> {
  const { command, jobs, mutant, detector, seeds, from } = options;
  switch (command) {
    case 'run':
    case 'recipes':
      return await runCommand(options);
    case 'recipes-ci':
      return await runRecipesCi(jobs);
    case 'ci':
      return await runCi(jobs);
    case 'mutants': {
      const names =
        mutant === undefined ? Object.keys(mutants).filter((name) => detector === undefined || detectorOf(name) === detector) : [mutant];
      const limitOf = (of: Detector) => seeds ?? seedsMax[of];
      const results = await runMutants(names, from ?? freshSeedBase(), limitOf, jobs, (each) => console.log(mutantResultText(each)));
      console.log(mutantsSummary(results));
      return results.every(({ report }) => report !== undefined);
    }
    case 'worker':
      return true;
    default:
      return command satisfies never;
  }
}
