/** The result of a seed: small enough to send from process to process. */
import type { Millis } from '@tskeeper/protocol';
import { check, findingText } from '../checkers/checkers.ts';
import { judged } from '../checkers/judged.ts';
import type { Recording } from '../record/recording.ts';
import { isWrite, replay } from '../replay/replay.ts';
import { marksOf } from '../story/marks.ts';
import { type Outcome, runSeed } from '../story/story.ts';
import type { FamilyName } from '../recipes/families.ts';
import { type RecipeOutcome, type RecipeRunOptions, runRecipeSeed } from '../recipes/recipe-seed.ts';
import { reignsOf } from '../record/committed-history.ts';
import { electionMark } from '../story/ensemble-marks.ts';

export interface SeedReport {
  readonly seed: number;
  /** For a run of recipes. */
  readonly family?: FamilyName | undefined;
  /** A hash over everything that happened, in order: equal for equal seeds. */
  readonly trace: number;
  /** Empty if the seed passed. */
  readonly findings: readonly string[];
  /** Distinct states that the explorer reached. */
  readonly states: number;
  readonly simulatedMs: Millis;
  readonly txns: number;
  readonly operations: number;
  readonly writes: number;
  readonly events: number;
  readonly sessions: number;
  readonly expired: number;
  readonly restarts: number;
  readonly marks: Readonly<Record<string, number>>;
  /** Checkers that had something to judge. */
  readonly judged?: readonly string[];
  /** Kinds of load and of servers that the seed chose. */
  readonly kinds?: readonly string[];
}

export interface Listening {
  /** Called for each step of the world. */
  readonly onEvent?: ((what: string, elapsedMs: Millis) => void) | undefined;
  /** Called with the recording before it is checked. */
  readonly onEnd?: ((recording: Recording) => void) | undefined;
}

export async function reportSeed(seed: number, { onEvent, onEnd }: Listening = {}): Promise<SeedReport> {
  try {
    const outcome = await runSeed(seed, { onEvent });
    onEnd?.(outcome.recording);
    return reportOutcome(outcome);
  } catch (error) {
    return brokenOff(seed, error);
  }
}

/** Reports a run of recipes, which its family checks. */
export async function reportRecipe(seed: number, options: RecipeRunOptions, { onEvent, onEnd }: Listening = {}): Promise<SeedReport> {
  try {
    const outcome = await runRecipeSeed(seed, { ...options, onEvent });
    onEnd?.(outcome.recording);
    return recipeReport(outcome);
  } catch (error) {
    return { ...brokenOff(seed, error), family: options.family };
  }
}

function recipeReport({ seed, family, world, recording, findings, marks }: RecipeOutcome): SeedReport {
  const requests = recording.cnxns.flatMap((cnxn) => cnxn.requests);
  const { log } = recording;
  const closed = log.filter(({ logged }) => logged.txn.kind === 'closeSession').length;
  const byClients = requests.filter(({ name, reply }) => name === 'closeSession' && reply !== undefined).length;
  return {
    seed,
    family,
    trace: world.trace,
    findings,
    states: 0,
    simulatedMs: recording.endedMs - (recording.processes[0]?.startedMs ?? 0),
    txns: log.length,
    operations: requests.length,
    writes: requests.filter(isWrite).length,
    events: recording.cnxns.reduce((sum, { items }) => sum + items.filter(({ kind }) => kind === 'event').length, 0),
    sessions: log.filter(({ logged }) => logged.txn.kind === 'createSession').length,
    expired: closed - byClients,
    restarts: recording.processes.length - world.servers.length,
    marks: { ...Object.fromEntries(marks), [electionMark]: reignsOf(recording).length },
  };
}

/** The report of a run that did not end, possibly because of a failed assertion. */
export function brokenOff(seed: number, error: unknown): SeedReport {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { ...nothingReported, seed, findings: [`story: the run threw: ${text}`] };
}

/** The report of a seed without a result. */
export const nothingReported: Omit<SeedReport, 'seed' | 'findings'> = {
  trace: 0,
  states: 0,
  simulatedMs: 0,
  txns: 0,
  operations: 0,
  writes: 0,
  events: 0,
  sessions: 0,
  expired: 0,
  restarts: 0,
  marks: {},
};

export function reportOutcome(outcome: Outcome): SeedReport {
  const { seed, world, recording } = outcome;
  const story = replay(recording);
  const requests = recording.cnxns.flatMap((cnxn) => cnxn.requests);
  return {
    seed,
    trace: world.trace,
    findings: check(recording, story).map(findingText),
    states: 0,
    simulatedMs: recording.endedMs - (recording.processes[0]?.startedMs ?? 0),
    txns: story.txns.length,
    operations: requests.length,
    writes: requests.filter(isWrite).length,
    events: recording.cnxns.reduce((sum, { items }) => sum + items.filter(({ kind }) => kind === 'event').length, 0),
    sessions: story.sessions.size,
    expired: [...story.sessions.values()].filter(({ closedBy }) => closedBy === 'server').length,
    restarts: recording.processes.length - world.servers.length,
    marks: Object.fromEntries(marksOf(outcome, story)),
    judged: Object.entries(judged).flatMap(([name, isJudged]) => (isJudged(recording, story) ? [name] : [])),
    kinds: outcome.kinds ?? [],
  };
}
