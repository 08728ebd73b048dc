/**
 * `npm run sim -- crash-states`: enumerates crash states of joining, and prints how many there
 * were.
 */
import { parseArgs } from 'node:util';
import { UsageError } from '../command/usage-error.ts';
import { checkConfigStates } from './config-states.ts';
import { type CaseResult, joinCases, runCase } from './enumeration.ts';
import { folderKinds, type JoinCase, syncKinds } from './join-world.ts';

export const crashStatesUsage = `npm run sim -- crash-states [options]
                                  starts a server from each state that a power loss can leave while it joins, or stores a configuration
  --states N                      number of distinct states; default 12000
  --per-case N                    maximum for each case; default 800
  --seed N                        the first seed; default 1
  --folder KIND --sync KIND       one case: ${folderKinds.join(', ')}; ${syncKinds.join(', ')}`;

export interface CrashStatesOptions {
  /**
   * Takes all cases of a seed, then those of the next, until there are this many distinct states.
   */
  readonly states: number;
  /** Maximum for each case. */
  readonly statesPerCase: number;
  readonly seed: number;
  /** Only this case. */
  readonly case?: Pick<JoinCase, 'folder' | 'sync'> | undefined;
}

export interface CrashStatesResult {
  readonly states: number;
  readonly finding: string | undefined;
  /** What must be reached and was not. */
  readonly missing: readonly string[];
}

/** A case has a few hundred or a few thousand states. */
export const crashStatesDefaults: CrashStatesOptions = { states: 12_000, statesPerCase: 800, seed: 1 };

const progressMs = 60_000;

/** Every kind of synchronisation, and a crash in the middle of it. */
const requiredMarks = ['DIFF', 'TRUNC', 'SNAP', 'in part'] as const;

export async function enumerateCrashStates(options: CrashStatesOptions, print: (line: string) => void): Promise<CrashStatesResult> {
  const begun = performance.now();
  const begunUsage = process.cpuUsage();
  const reached = new Map<string, number>(requiredMarks.map((mark) => [mark, 0]));
  const add = (mark: string, count: number) => void reached.set(mark, (reached.get(mark) ?? 0) + count);
  let [states, points, cases, joins] = [0, 0, 0, 0];
  let lastProgressMs = begun;
  const configs = await checkConfigStates(options.seed);
  print(`${configs.states} states of the files of a configuration`);
  if (configs.finding !== undefined) {
    print(configs.finding);
    return { states: configs.states, finding: configs.finding, missing: [] };
  }
  const chosen = options.case === undefined ? joinCases(options.seed) : [{ ...options.case, seed: options.seed }];
  for (const joinCase of chosen) {
    if (states >= options.states) break;
    const result = await runCase(joinCase, Math.min(options.statesPerCase, options.states - states));
    cases++;
    states += result.states;
    points += result.points;
    joins += result.joins;
    add(result.syncPacket, result.states);
    add('in part', result.partialStates);
    if (performance.now() - lastProgressMs >= progressMs && result.finding === undefined) {
      lastProgressMs = performance.now();
      print(`${states} crash states in ${cases} cases so far`);
    }
    if (result.finding !== undefined) {
      print(`${caseText(result)}: ${result.finding}`);
      print(`  reproduce: npm run sim -- crash-states --folder ${joinCase.folder} --sync ${joinCase.sync} --seed ${joinCase.seed}`);
      return { states, finding: result.finding, missing: [] };
    }
  }
  const { user, system } = process.cpuUsage(begunUsage);
  const seconds = (user + system) / 1e6;
  const counts = [...reached].map(([mark, count]) => `${mark} ${count}`).join(', ');
  print(
    `${states} crash states at ${points} moments of joining, in ${cases} cases (${counts}), joined again from ${joins} folders; ${seconds.toFixed(1)} s of CPU time, ${Math.round(states / seconds)} per second`,
  );
  const missing = options.case === undefined ? requiredMarks.filter((mark) => reached.get(mark) === 0) : [];
  return { states, finding: undefined, missing };
}

function caseText({ case: { folder, sync, seed }, syncPacket }: CaseResult): string {
  return `folder ${folder}, sync ${sync}, seed ${seed}, ${syncPacket}`;
}

/** Returns whether everything passed and was reached. Throws a `UsageError`. */
export async function crashStates(args: readonly string[]): Promise<boolean> {
  const { finding, missing } = await enumerateCrashStates(parseOptions(args), (line) => console.log(line));
  if (missing.length > 0) console.log(`not reached: ${missing.join(', ')}`);
  return finding === undefined && missing.length === 0;
}

function parseOptions(args: readonly string[]): CrashStatesOptions {
  const text = { type: 'string' } as const;
  let values;
  try {
    ({ values } = parseArgs({ args: [...args], options: { states: text, 'per-case': text, seed: text, folder: text, sync: text } }));
  } catch (error) {
    throw new UsageError(`${error instanceof Error ? error.message : String(error)}\n${crashStatesUsage}`);
  }
  const folder = folderKinds.find((each) => each === values.folder);
  const sync = syncKinds.find((each) => each === values.sync);
  if (folder !== values.folder || sync !== values.sync || (folder === undefined) !== (sync === undefined))
    throw new UsageError(crashStatesUsage);
  const alone = folder === undefined || sync === undefined ? undefined : { folder, sync };
  const numberOf = (name: string, value: string | undefined, otherwise: number): number => {
    if (value === undefined) return otherwise;
    if (!/^\d+$/.test(value)) throw new UsageError(`--${name} must be a number, got ${value}`);
    return Number(value);
  };
  return {
    // A single case is enumerated completely.
    states: numberOf('states', values.states, alone === undefined ? crashStatesDefaults.states : Infinity),
    statesPerCase: numberOf('per-case', values['per-case'], alone === undefined ? crashStatesDefaults.statesPerCase : Infinity),
    seed: numberOf('seed', values.seed, crashStatesDefaults.seed),
    case: alone,
  };
}
