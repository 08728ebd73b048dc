/** What is left of a seed when it has run: small enough to be handed from process to process. */
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
  /** Of a recipe's story. */
  readonly family?: FamilyName | undefined;
  /** Over everything that happened, in order: the same for the same seed. */
  readonly trace: number;
  /** Nothing, if all is well. */
  readonly findings: readonly string[];
  /** Distinct states that the explorer has seen. */
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
  /** Kinds of load and of servers that were drawn. */
  readonly kinds?: readonly string[];
}

export interface Listening {
  /** Told of each step of the world. */
  readonly onEvent?: ((what: string, elapsedMs: Millis) => void) | undefined;
  /** Given what happened, before it is judged. */
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

/** A story of recipes, which is judged by its family. */
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

/** Of a story that did not come to its end, because of a broken belief it may be. */
export function brokenOff(seed: number, error: unknown): SeedReport {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { ...nothingReported, seed, findings: [`story: it broke off: ${text}`] };
}

/** Of a seed that did not get to its end. */
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
