/** `npm run sim -- crash-states`: enumerates crash states of joining, and says how many there were of what. */
import { parseArgs } from 'node:util';
import { UsageError } from '../command/usage-error.ts';
import { type CaseResult, joinCases, runCase } from './enumeration.ts';
import { folderKinds, type JoinCase, syncKinds } from './joining.ts';

export const crashStatesUsage = `npm run sim -- crash-states [options]
                                  what a power loss can leave of a server that joins: each state is started from
  --states N                      so many distinct states; default 12000
  --per-case N                    of each case, at most; default 800
  --seed N                        the cases of that seed first; default 1
  --folder KIND --sync KIND       one case alone: ${folderKinds.join(', ')}; ${syncKinds.join(', ')}`;

export interface CrashStatesOptions {
  /** All cases of a seed, then those of the next, until there were so many distinct states. */
  readonly states: number;
  /** Of each case, at most. */
  readonly statesPerCase: number;
  readonly seed: number;
  /** That one alone. */
  readonly case?: Pick<JoinCase, 'folder' | 'sync'> | undefined;
}

export interface CrashStatesResult {
  readonly states: number;
  readonly finding: string | undefined;
  /** What has to be reached, and was not. */
  readonly missing: readonly string[];
}

/** A case has some hundred states, or a few thousand. */
export const crashStatesDefaults: CrashStatesOptions = { states: 12_000, statesPerCase: 800, seed: 1 };

const progressMs = 60_000;

/** Every way in which a leader can begin, and a crash amid what it sends. */
const wanted = ['DIFF', 'TRUNC', 'SNAP', 'in part'] as const;

export async function enumerateCrashStates(options: CrashStatesOptions, tell: (line: string) => void): Promise<CrashStatesResult> {
  const begun = performance.now();
  const begunUsage = process.cpuUsage();
  const reached = new Map<string, number>(wanted.map((mark) => [mark, 0]));
  const add = (mark: string, count: number) => void reached.set(mark, (reached.get(mark) ?? 0) + count);
  let [states, points, cases, joins] = [0, 0, 0, 0];
  let toldMs = begun;
  const chosen = options.case === undefined ? joinCases(options.seed) : [{ ...options.case, seed: options.seed }];
  for (const joinCase of chosen) {
    if (states >= options.states) break;
    const result = await runCase(joinCase, Math.min(options.statesPerCase, options.states - states));
    cases++;
    states += result.states;
    points += result.points;
    joins += result.joins;
    add(result.opening, result.states);
    add('in part', result.partial);
    if (performance.now() - toldMs >= progressMs && result.finding === undefined) {
      toldMs = performance.now();
      tell(`${states} crash states in ${cases} cases so far`);
    }
    if (result.finding !== undefined) {
      tell(`${caseText(result)}: ${result.finding}`);
      tell(`  run it again: npm run sim -- crash-states --folder ${joinCase.folder} --sync ${joinCase.sync} --seed ${joinCase.seed}`);
      return { states, finding: result.finding, missing: [] };
    }
  }
  const { user, system } = process.cpuUsage(begunUsage);
  const seconds = (user + system) / 1e6;
  const counts = [...reached].map(([mark, count]) => `${mark} ${count}`).join(', ');
  tell(
    `${states} crash states at ${points} moments of joining, in ${cases} cases (${counts}), joined again from ${joins} folders; ${seconds.toFixed(1)} s of a processor, ${Math.round(states / seconds)} a second`,
  );
  const missing = options.case === undefined ? wanted.filter((mark) => reached.get(mark) === 0) : [];
  return { states, finding: undefined, missing };
}

function caseText({ case: { folder, sync, seed }, opening }: CaseResult): string {
  return `folder ${folder}, sync ${sync}, seed ${seed}, ${opening}`;
}

/** Returns whether all went well, and everything was reached. Throws a `UsageError`. */
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
    if (!/^\d+$/.test(value)) throw new UsageError(`--${name} ${value}: a number is wanted`);
    return Number(value);
  };
  return {
    // One case alone is looked at as a whole.
    states: numberOf('states', values.states, alone === undefined ? crashStatesDefaults.states : Infinity),
    statesPerCase: numberOf('per-case', values['per-case'], alone === undefined ? crashStatesDefaults.statesPerCase : Infinity),
    seed: numberOf('seed', values.seed, crashStatesDefaults.seed),
    case: alone,
  };
}
