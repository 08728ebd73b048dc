/** The command `sim`; `usage` in options.ts describes it. */
import { crashStates } from '../crash-states/command.ts';
import { zoo } from '../mutants/zoo.ts';
import { runCi } from './ci.ts';
import { hunters } from './hunters.ts';
import { type CommandOptions, parseOptions } from './options.ts';
import { work } from './pool.ts';
import { runRecipesCi } from './recipes-ci.ts';
import { freshBase, runCommand } from './run.ts';
import { UsageError } from './usage-error.ts';
import { catchText, hunterOf, runZoo, zooText } from './zoo.ts';

export async function main(args: readonly string[]): Promise<void> {
  try {
    if (args[0] === 'crash-states') {
      process.exitCode = (await crashStates(args.slice(1))) ? 0 : 1;
      return;
    }
    const options = parseOptions(args);
    if (options.command === 'worker') work(hunters[options.hunter ?? 'seeds']);
    else process.exitCode = (await carryOut(options)) ? 0 : 1;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    console.error(error.message);
    process.exitCode = 2;
  }
}

async function carryOut(options: CommandOptions): Promise<boolean> {
  const { command, jobs, mutant, hunter, seeds, from } = options;
  switch (command) {
    case 'run':
    case 'recipes':
      return await runCommand(options);
    case 'recipes-ci':
      return await runRecipesCi(jobs);
    case 'ci':
      return await runCi(jobs);
    case 'zoo': {
      const names = mutant === undefined ? Object.keys(zoo).filter((name) => hunter === undefined || hunterOf(name) === hunter) : [mutant];
      const caught = await runZoo(names, from ?? freshBase(), seeds, jobs, (each) => console.log(catchText(each)));
      console.log(zooText(caught));
      return caught.every(({ report }) => report !== undefined);
    }
    case 'worker':
      return true;
    default:
      return command satisfies never;
  }
}
