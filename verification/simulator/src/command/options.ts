/** The options of the command line. */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import type { Detector } from '../mutants/mutant.ts';
import { crashStatesUsage } from '../crash-states/command.ts';
import { isDetector } from './detectors.ts';
import { type FamilyName, familyNames } from '../recipes/families.ts';
import { UsageError } from './usage-error.ts';

export interface CommandOptions {
  readonly command: 'run' | 'mutants' | 'ci' | 'recipes' | 'recipes-ci' | 'worker';
  readonly seed: number | undefined;
  readonly seeds: number | undefined;
  readonly from: number | undefined;
  readonly minutes: number | undefined;
  /** Only the seeds that change the membership of an ensemble. */
  readonly reconfigs: boolean;
  readonly scenario: string | undefined;
  /** For recipes; default: all in turn. */
  readonly family: FamilyName | undefined;
  readonly mutant: string | undefined;
  /** For the mutants: default all. For a worker: default seeds. */
  readonly detector: Detector | undefined;
  readonly trace: boolean;
  readonly events: boolean;
  readonly jobs: number;
}

export const usage = `npm run sim -- [options]          runs 100 fresh seeds
  --seed N                        one seed
  --seeds COUNT [--from N]        COUNT seeds, from N
  --for 3h                        as many seeds as fit into a time: 3h, 90m or 30s
  --reconfigs                     only seeds that change the membership of an ensemble
  --scenario NAME                 a named scenario, which runs the same each time; all of them: --scenario all
  --mutant NAME                   against a server with one deliberate error
  --trace                         prints requests, replies, txns and faults in order
  --events                        prints each step of the world, to compare two runs of one seed
  --jobs N                        number of processes
npm run sim -- recipes [options]  runs of recipes, with --seed, --seeds, --from, --for, --mutant, --trace, --events and --jobs as above
  --family NAME                   one family: ${familyNames.join(', ')}
npm run sim:mutants -- [--mutant NAME] [--detector seeds|reconfigs|observers|scenarios|explorer|crash-states|recipes/FAMILY] [--seeds COUNT] [--from N]
                                  runs every mutant until it is caught, or those of one detector
${crashStatesUsage}`;

export function parseOptions(args: readonly string[]): CommandOptions {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      seed: { type: 'string' },
      seeds: { type: 'string' },
      from: { type: 'string' },
      for: { type: 'string' },
      reconfigs: { type: 'boolean', default: false },
      scenario: { type: 'string' },
      family: { type: 'string' },
      mutant: { type: 'string' },
      detector: { type: 'string' },
      trace: { type: 'boolean', default: false },
      events: { type: 'boolean', default: false },
      jobs: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  const [command = 'run', more] = positionals;
  const { detector, family } = values;
  if (values.help || more !== undefined || !isCommand(command)) throw new UsageError(usage);
  if (detector !== undefined && !isDetector(detector)) throw new UsageError(`unknown detector ${detector}\n${usage}`);
  if (family !== undefined && !isFamily(family)) throw new UsageError(`unknown family ${family}\n${usage}`);
  if (family !== undefined && command !== 'recipes') throw new UsageError(`--family needs the command recipes\n${usage}`);
  return {
    command,
    seed: numberOf('seed', values.seed),
    seeds: numberOf('seeds', values.seeds),
    from: numberOf('from', values.from),
    minutes: minutesOf(values.for),
    reconfigs: values.reconfigs,
    scenario: values.scenario,
    family,
    mutant: values.mutant,
    detector,
    trace: values.trace,
    events: values.events,
    jobs: numberOf('jobs', values.jobs) ?? availableParallelism(),
  };
}

function isCommand(text: string): text is CommandOptions['command'] {
  return ['run', 'mutants', 'ci', 'recipes', 'recipes-ci', 'worker'].includes(text);
}

function isFamily(text: string): text is FamilyName {
  return familyNames.some((name) => name === text);
}

const minutesIn: Readonly<Record<string, number>> = { h: 60, m: 1, s: 1 / 60 };

function minutesOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const [, count, unit] = /^([0-9.]+)([hms])$/.exec(text) ?? [];
  if (unit === undefined) throw new UsageError(`--for must be a time such as 3h, 90m or 30s, got ${text}\n${usage}`);
  return Number(count) * minutesIn[unit]!;
}

function numberOf(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (text === '' || !(value >= 0)) throw new UsageError(`--${name} must be a number, got ${text}\n${usage}`);
  return value;
}
