/** `npm run explore`: see `exploreUsage`. */
import { parseArgs } from 'node:util';
import { type Healing } from './quiescence.ts';
import { type Choice, choiceText, parseRun, runText } from './choice.ts';
import { searchPresets, type PresetResult, runPreset, totalMarks } from './search-presets.ts';
import { type InitialStateName, buildInitialState, initialStateNames } from './initial-states.ts';
import { type Scope, scopeDefaults } from './scope.ts';
import { ensembleNames } from './small-ensemble.ts';
import {
  type SearchStart,
  type SearchResult,
  choicesToReconfig,
  choicesToServe,
  choicesToSession,
  type Progress,
  replayRun,
  search,
  type SearchOrder,
  shrinkRun,
} from './search.ts';

export const exploreUsage = `npm run explore -- all [--states N] [--seed N]
                                  runs all search presets: N distinct states in total, default 180000; every mark must be hit
npm run explore -- [options]      explores the states of a small ensemble for a minute
  --order chains|complete|breadth|walks
                                  order of the search; default chains; complete is for scopes that are to be explored to the end
  --from start|serving|session|reconfig
                                  begins with servers that have just started, with an ensemble that serves, with one in which a client has
                                  a session, or with one whose leader has been asked for another configuration; default start
  --initial-state NAME            initial content of the disks: ${initialStateNames.join(', ')}; default empty
  --seconds S                     duration of the search
  --states N                      number of distinct states after which it ends
  --depth N                       maximum number of choices from the beginning; default 400
  --seed N                        seed of the order
  --servers N --txns N --reconfigs N --transfers N --crashes N --cuts N --wakes N
                                  bounds of the scope; default 3, 2, 0, 0, 2, 1, 3
  --client-steps N                how often a persistent client connects to a server or sends a request; default 0
  --ensemble NAME                 voters and their weights: ${ensembleNames.join(', ')}; default equal
  --elections together|each|any   an election is one step, or each notification is a choice, or any result is possible; default together
  --quiesce N                     after every N choices that led to a known state faults cease, and the ensemble must come to serve; default 40, 0 for never
  --committed-log N               number of txns that a leader keeps in memory for learners; default 500
  --no-log                        leaders do not read their logs for learners, and send snapshots
  --run CHOICES                   makes these choices and prints the result
  --heal core|all                 afterwards faults cease, and a quorum or all servers must come to serve`;

interface ExploreOptions {
  readonly all: boolean;
  readonly scope: Scope;
  readonly initialState: InitialStateName;
  readonly order: SearchOrder;
  readonly from: keyof typeof prefixes;
  readonly seconds: number;
  readonly states: number;
  readonly depth: number;
  readonly seed: number;
  readonly quiesceEvery: number | undefined;
  readonly run: string | undefined;
  readonly healing: Healing | undefined;
}

const secondsDefault = 60;
const progressMs = 10_000;
const presetStatesDefault = 180_000;

const prefixes = { start: () => [], serving: choicesToServe, session: choicesToSession, reconfig: choicesToReconfig } as const;

function isPrefix(text: string): text is keyof typeof prefixes {
  return text in prefixes;
}

class UsageError extends Error {}

/**
 * Prints what it finds, and sets the exit code: 1 for a violation, 2 for an error in the options.
 */
export function exploreCommand(args: readonly string[]): void {
  try {
    const options = parseOptions(args);
    if (options.all)
      process.exitCode = explorePresets(options.states === Infinity ? presetStatesDefault : options.states, options.seed) ? 0 : 1;
    else process.exitCode = exploreOnce(options) ? 0 : 1;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    console.error(error.message);
    process.exitCode = 2;
  }
}

function parseOptions(args: readonly string[]): ExploreOptions {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean', default: false } as const;
  let values;
  let positionals;
  try {
    ({ values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        order: { ...text, default: 'chains' },
        from: { ...text, default: 'start' },
        seconds: text,
        states: text,
        depth: text,
        seed: text,
        servers: text,
        ensemble: { ...text, default: scopeDefaults.ensemble },
        txns: text,
        reconfigs: text,
        transfers: text,
        crashes: text,
        cuts: text,
        wakes: text,
        'client-steps': text,
        'committed-log': text,
        run: text,
        heal: text,
        'initial-state': { ...text, default: 'empty' },
        elections: { ...text, default: scopeDefaults.elections },
        quiesce: { ...text, default: '40' },
        'no-log': flag,
        help: flag,
      },
    }));
  } catch (error) {
    throw new UsageError(`${error instanceof Error ? error.message : String(error)}\n${exploreUsage}`);
  }
  const { order, from, elections, heal: healing } = values;
  const initialState = initialStateNames.find((name) => name === values['initial-state']);
  const ensemble = ensembleNames.find((name) => name === values.ensemble);
  const all = positionals.length === 1 && positionals[0] === 'all';
  if (values.help || !isOrder(order) || !isPrefix(from) || initialState === undefined || ensemble === undefined)
    throw new UsageError(exploreUsage);
  if ((positionals.length > 0 && !all) || !isElections(elections)) throw new UsageError(exploreUsage);
  if (healing !== undefined && healing !== 'core' && healing !== 'all') throw new UsageError(exploreUsage);
  const numberOf = (name: string, value: string | undefined, otherwise: number): number => {
    if (value === undefined) return otherwise;
    if (!/^\d+$/.test(value)) throw new UsageError(`--${name} must be a number, got ${value}`);
    return Number(value);
  };
  const scope: Scope = {
    servers: numberOf('servers', values.servers, scopeDefaults.servers),
    ensemble,
    txns: numberOf('txns', values.txns, scopeDefaults.txns),
    reconfigs: numberOf('reconfigs', values.reconfigs, scopeDefaults.reconfigs),
    transfers: numberOf('transfers', values.transfers, scopeDefaults.transfers),
    crashes: numberOf('crashes', values.crashes, scopeDefaults.crashes),
    cuts: numberOf('cuts', values.cuts, scopeDefaults.cuts),
    wakes: numberOf('wakes', values.wakes, scopeDefaults.wakes),
    elections,
    forcedElections: scopeDefaults.forcedElections,
    clientSteps: numberOf('client-steps', values['client-steps'], scopeDefaults.clientSteps),
    committedLog: numberOf('committed-log', values['committed-log'], scopeDefaults.committedLog),
    syncsFromLog: !values['no-log'],
  };
  const quiesceEvery = numberOf('quiesce', values.quiesce, 0);
  return {
    all,
    scope,
    initialState,
    quiesceEvery: quiesceEvery === 0 ? undefined : quiesceEvery,
    healing,
    order,
    from,
    seconds: numberOf('seconds', values.seconds, values.states === undefined ? secondsDefault : Infinity),
    states: numberOf('states', values.states, Infinity),
    depth: numberOf('depth', values.depth, 400),
    seed: numberOf('seed', values.seed, 1),
    run: values.run,
  };
}

function isOrder(text: string): text is SearchOrder {
  return text === 'chains' || text === 'complete' || text === 'breadth' || text === 'walks';
}

function isElections(text: string): text is Scope['elections'] {
  return text === 'together' || text === 'each' || text === 'any';
}

function exploreOnce(options: ExploreOptions): boolean {
  const { scope, order, from, seconds, states, depth, seed, quiesceEvery, run, healing, initialState } = options;
  const start = { scope, initialState: buildInitialState(initialState) };
  if (run !== undefined) return exploreRun(start, parseRun(run), healing);
  const begun = performance.now();
  let toldMs = begun;
  const found = search({
    ...start,
    prefix: prefixes[from](start),
    order,
    seed,
    depthMax: depth,
    ...(quiesceEvery === undefined ? {} : { quiesceEvery }),
    shouldStop: (progress) => {
      const nowMs = performance.now();
      if (nowMs - toldMs >= progressMs) {
        toldMs = nowMs;
        console.log(progressText(progress, nowMs - begun));
      }
      return progress.states >= states || nowMs - begun >= seconds * 1000;
    },
  });
  console.log(progressText(found, performance.now() - begun));
  console.log(`marks: ${found.marks.text}`);
  if (found.quiescences > 0) console.log(quiescenceText(found.quiescences, found.longestRecoveryMs));
  if (found.violation === undefined) {
    console.log(found.isComplete ? 'every state within this scope was explored; all invariants hold' : 'all invariants hold so far');
    return true;
  }
  printViolation(found.violation, start, initialState);
  return false;
}

/** Runs all search presets, one after the other. */
function explorePresets(states: number, seed: number): boolean {
  const results: PresetResult[] = [];
  for (const preset of searchPresets) {
    const result = runPreset(preset, states, seed);
    results.push(result);
    const { found, seconds } = result;
    console.log(`${preset.name}: ${progressText(found, seconds * 1000)}`);
    if (found.violation !== undefined) {
      printViolation(found.violation, { scope: preset.scope, initialState: buildInitialState(preset.initialState) }, preset.initialState);

      return false;
    }
  }
  const seen = sum(results, ({ found }) => found.states);
  const seconds = sum(results, (each) => each.seconds);
  const marks = totalMarks(results);
  console.log(`marks: ${marks.text}`);
  const quiescences = sum(results, ({ found }) => found.quiescences);
  const longestMs = Math.max(...results.map(({ found }) => found.longestRecoveryMs));
  console.log(quiescenceText(quiescences, longestMs));
  console.log(
    `${seen} distinct states in ${seconds.toFixed(1)} s of CPU time (${Math.round(seen / seconds)} per second); all invariants hold`,
  );

  const complaints = [
    ...results
      .filter(({ found, preset }) => !found.isComplete && found.states < (states * preset.statesPercent) / 100)
      .map(({ preset }) => `${preset.name} ended early`),
    ...marks.missing.map((name) => `mark never hit: ${name}`),
  ];
  for (const complaint of complaints) console.log(complaint);
  return complaints.length === 0;
}

function sum<T>(list: readonly T[], of: (each: T) => number): number {
  return list.reduce((total, each) => total + of(each), 0);
}

function printViolation(
  { error, run: found, healing }: NonNullable<SearchResult['violation']>,
  start: SearchStart,
  initialState: InitialStateName,
): void {
  const run = shrinkRun(start, found, error, healing);
  console.log(`violation after ${found.length} choices: ${error.message}`);
  console.log(`the shortest run found has ${run.length} choices:`);
  exploreRun(start, run, healing);
  const more = `${initialState === 'empty' ? '' : `--initial-state '${initialState}' `}${healing === undefined ? '' : `--heal ${healing} `}`;
  console.log(`  reproduce: npm run explore -- ${scopeText(start.scope)}${more}--run '${runText(run)}'`);
}

function progressText({ states, steps, depth }: Progress, elapsedMs: number): string {
  const seconds = elapsedMs / 1000;
  const rate = Math.round(states / seconds);
  return `${states} distinct states in ${seconds.toFixed(1)} s (${rate} per second), ${steps} steps, depth ${depth}`;
}

function quiescenceText(quiescences: number, longestMs: number): string {
  return `faults ceased ${quiescences} times; the ensemble served again after at most ${longestMs} ms`;
}

/** The options that differ from the defaults. */
function scopeText(scope: Scope): string {
  const words: string[] = [];
  for (const key of ['servers', 'txns', 'reconfigs', 'transfers', 'crashes', 'cuts', 'wakes'] as const) {
    if (scope[key] !== scopeDefaults[key]) words.push(`--${key} ${scope[key]} `);
  }
  if (scope.clientSteps !== scopeDefaults.clientSteps) words.push(`--client-steps ${scope.clientSteps} `);
  if (scope.committedLog !== scopeDefaults.committedLog) words.push(`--committed-log ${scope.committedLog} `);
  if (scope.elections !== scopeDefaults.elections) words.push(`--elections ${scope.elections} `);
  if (scope.ensemble !== scopeDefaults.ensemble) words.push(`--ensemble ${scope.ensemble} `);
  if (!scope.syncsFromLog) words.push('--no-log ');
  return words.join('');
}

/** Returns whether all invariants hold. */
function exploreRun(start: SearchStart, run: readonly Choice[], healing: Healing | undefined): boolean {
  const { world, error, made } = replayRun(start, run, healing);
  if (made.length < run.length && error === undefined)
    console.log(`${run.length - made.length} of the choices were not available at their turn`);
  for (const [at, code] of made.entries()) console.log(`  ${at + 1} ${choiceText(code)}`);
  console.log(world.describe());
  console.log(error === undefined ? 'all invariants hold' : error.message);
  return error === undefined;
}
