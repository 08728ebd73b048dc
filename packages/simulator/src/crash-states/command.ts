/** `npm run sim -- crash-states`: enumerates crash states of joining, and says how many there were of what. */
import { type CaseResult, joinCases, runCase } from './enumeration.ts';
import type { JoinCase } from './joining.ts';

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
export const crashStatesDefaults: CrashStatesOptions = { states: 4000, statesPerCase: 270, seed: 1 };

/** Every way in which a leader can begin, and a crash amid what it sends. */
const wanted = ['DIFF', 'TRUNC', 'SNAP', 'in part'] as const;

export async function enumerateCrashStates(options: CrashStatesOptions, tell: (line: string) => void): Promise<CrashStatesResult> {
  const begun = performance.now();
  const reached = new Map<string, number>(wanted.map((mark) => [mark, 0]));
  const add = (mark: string, count: number) => void reached.set(mark, (reached.get(mark) ?? 0) + count);
  let [states, points, cases] = [0, 0, 0];
  const chosen = options.case === undefined ? joinCases(options.seed) : [{ ...options.case, seed: options.seed }];
  for (const joinCase of chosen) {
    if (states >= options.states) break;
    const result = await runCase(joinCase, Math.min(options.statesPerCase, options.states - states));
    cases++;
    states += result.states;
    points += result.points;
    add(result.opening, result.states);
    add('in part', result.partial);
    if (result.finding !== undefined) {
      tell(`${caseText(result)}: ${result.finding}`);
      tell(`  run it again: npm run sim -- crash-states --folder ${joinCase.folder} --sync ${joinCase.sync} --seed ${joinCase.seed}`);
      return { states, finding: result.finding, missing: [] };
    }
  }
  const seconds = (performance.now() - begun) / 1000;
  const counts = [...reached].map(([mark, count]) => `${mark} ${count}`).join(', ');
  tell(
    `${states} crash states at ${points} moments of joining, in ${cases} cases (${counts}); ${seconds.toFixed(1)} s, ${Math.round(states / seconds)} a second`,
  );
  const missing = options.case === undefined ? wanted.filter((mark) => reached.get(mark) === 0) : [];
  return { states, finding: undefined, missing };
}

function caseText({ case: { folder, sync, seed }, opening }: CaseResult): string {
  return `folder ${folder}, sync ${sync}, seed ${seed}, ${opening}`;
}
