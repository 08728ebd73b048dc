/** The command. See `usage` in options.ts. */
import { mutants } from '../mutants/mutants.ts';
import { runCi } from './ci.ts';
import { type CommandOptions, parseOptions, UsageError } from './options.ts';
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
    case 'worker':
      return true;
    default:
      return command satisfies never;
  }
}
