/** What the command line says. */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';

export interface CommandOptions {
  readonly command: 'run' | 'zoo' | 'ci' | 'worker' | 'crash-states';
  readonly seed: number | undefined;
  readonly seeds: number | undefined;
  readonly from: number | undefined;
  readonly minutes: number | undefined;
  readonly scenario: string | undefined;
  readonly mutant: string | undefined;
  readonly states: number | undefined;
  readonly perCase: number | undefined;
  readonly folder: string | undefined;
  readonly sync: string | undefined;
  readonly trace: boolean;
  readonly events: boolean;
  readonly jobs: number;
}

export const usage = `npm run sim -- [options]          runs fresh seeds, 100 of them
  --seed N                        that seed alone
  --seeds COUNT [--from N]        so many, from N on
  --minutes M                     as many as go into so much time
  --scenario NAME                 a story that is told the same way each time; all of them: --scenario all
  --mutant NAME                   against a server with one thing wrong
  --trace                         prints what was asked, answered, logged and broken, in the order it was
  --events                        prints each step of the world: to see where two runs of one seed part
  --jobs N                        processes at a time
npm run sim:zoo -- [--mutant NAME] [--seeds COUNT]
                                  every mutant, each until it is caught
npm run sim -- crash-states [options]
                                  what a power loss can leave of a server that joins: each state is started from
  --states N                      so many distinct states; default 4000
  --per-case N                    of each case, at most; default 270
  --seed N                        the cases of that seed first; default 1
  --folder KIND --sync KIND       one case alone: empty, behind, snapshot, tail or interrupted; memory, log or snapshot`;

export function parseOptions(args: readonly string[]): CommandOptions {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      seed: { type: 'string' },
      seeds: { type: 'string' },
      from: { type: 'string' },
      minutes: { type: 'string' },
      scenario: { type: 'string' },
      mutant: { type: 'string' },
      states: { type: 'string' },
      'per-case': { type: 'string' },
      folder: { type: 'string' },
      sync: { type: 'string' },
      trace: { type: 'boolean', default: false },
      events: { type: 'boolean', default: false },
      jobs: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  const [command = 'run', more] = positionals;
  if (values.help || more !== undefined || !isCommand(command)) throw new UsageError(usage);
  return {
    command,
    seed: numberOf('seed', values.seed),
    seeds: numberOf('seeds', values.seeds),
    from: numberOf('from', values.from),
    minutes: numberOf('minutes', values.minutes),
    scenario: values.scenario,
    mutant: values.mutant,
    states: numberOf('states', values.states),
    perCase: numberOf('per-case', values['per-case']),
    folder: values.folder,
    sync: values.sync,
    trace: values.trace,
    events: values.events,
    jobs: numberOf('jobs', values.jobs) ?? availableParallelism(),
  };
}

export class UsageError extends Error {}

function isCommand(text: string): text is CommandOptions['command'] {
  return text === 'run' || text === 'zoo' || text === 'ci' || text === 'worker' || text === 'crash-states';
}

function numberOf(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (text === '' || !(value >= 0)) throw new UsageError(`--${name} is a number, not ${text}\n${usage}`);
  return value;
}
