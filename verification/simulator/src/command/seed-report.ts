/** The result of a seed: small enough to send from process to process. */
import type { Millis } from '@tskeeper/protocol';
import { check, findingText } from '../checkers/checkers.ts';
import { exercised } from '../checkers/exercised.ts';
import type { Recording } from '../record/recording.ts';
import { isWrite } from '../record/request-kinds.ts';
import { replay } from '../replay/replay.ts';
import { marksOf } from '../run/marks.ts';
import { type Outcome, runSeed } from '../run/seed-run.ts';
import type { FamilyName } from '../recipes/families.ts';
import { type RecipeOutcome, type RecipeRunOptions, runRecipeSeed } from '../recipes/recipe-seed.ts';
import { leaderEpochsOf } from '../record/committed-history.ts';
import { electionMark } from '../run/ensemble-marks.ts';

export interface SeedReport {
  readonly seed: number;
  /** For a run of recipes. */
  readonly family?: FamilyName | undefined;
  /** A hash over everything that happened, in order: equal for equal seeds. */
  readonly traceHash: number;
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
  /** Checkers that had something to check. */
  readonly exercised?: readonly string[];
  /** Kinds of load and of servers that the seed chose. */
  readonly kinds?: readonly string[];
}

export interface RunListener {
  /** Called for each step of the world. */
  readonly onEvent?: ((what: string, elapsedMs: Millis) => void) | undefined;
  /** Called with the recording before it is checked. */
  readonly onEnd?: ((recording: Recording) => void) | undefined;
}

export async function reportSeed(seed: number, { onEvent, onEnd }: RunListener = {}): Promise<SeedReport> {
  try {
    const outcome = await runSeed(seed, { onEvent });
    onEnd?.(outcome.recording);
    return reportOutcome(outcome);
  } catch (error) {
    return crashedReport(seed, error);
  }
}

/** Reports a run of recipes, which its family checks. */
export async function reportRecipe(seed: number, options: RecipeRunOptions, { onEvent, onEnd }: RunListener = {}): Promise<SeedReport> {
  try {
    const outcome = await runRecipeSeed(seed, { ...options, onEvent });
    onEnd?.(outcome.recording);
    return recipeReport(outcome);
  } catch (error) {
    return { ...crashedReport(seed, error), family: options.family };
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
    traceHash: world.traceHash,
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
    marks: { ...Object.fromEntries(marks), [electionMark]: leaderEpochsOf(recording).length },
  };
}

/** The report of a run that did not end, possibly because of a failed assertion. */
export function crashedReport(seed: number, error: unknown): SeedReport {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { ...emptyReport, seed, findings: [`run: the run threw: ${text}`] };
}

/** The report of a seed without a result. */
export const emptyReport: Omit<SeedReport, 'seed' | 'findings'> = {
  traceHash: 0,
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
  const replayed = replay(recording);
  const requests = recording.cnxns.flatMap((cnxn) => cnxn.requests);
  return {
    seed,
    traceHash: world.traceHash,
    findings: check(recording, replayed).map(findingText),
    states: 0,
    simulatedMs: recording.endedMs - (recording.processes[0]?.startedMs ?? 0),
    txns: replayed.txns.length,
    operations: requests.length,
    writes: requests.filter(isWrite).length,
    events: recording.cnxns.reduce((sum, { items }) => sum + items.filter(({ kind }) => kind === 'event').length, 0),
    sessions: replayed.sessions.size,
    expired: [...replayed.sessions.values()].filter(({ closedBy }) => closedBy === 'server').length,
    restarts: recording.processes.length - world.servers.length,
    marks: Object.fromEntries(marksOf(outcome, replayed)),
    exercised: Object.entries(exercised).flatMap(([name, isJudged]) => (isJudged(recording, replayed) ? [name] : [])),
    kinds: outcome.kinds ?? [],
  };
}
