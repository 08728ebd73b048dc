/** `npm run explore`: see `exploreUsage`. */
import { parseArgs } from 'node:util';
import { type Choice, choiceText, parseRun, runText } from './choice.ts';
import { openingToServe, type Progress, replayRun, search, type SearchOrder, shorten } from './search.ts';
import { type Scope, scopeDefaults } from './small-world.ts';

export const exploreUsage = `npm run explore -- [options]      explores what a small ensemble can do, for a minute
  --order chains|breadth|walks    which states come first; default chains
  --from cold|serving             begins with empty servers, or with an ensemble that serves; default cold
  --seconds S                     for so long
  --states N                      until there are so many distinct states
  --depth N                       no further than so many choices from the beginning; default 400
  --seed N                        another seed, other states first
  --servers N --txns N --crashes N --cuts N --wakes N
                                  how much of what may happen; default 3, 2, 2, 1, 3
  --notifications                 each notification of an election is a choice of its own
  --committed-log N               txns that a leader keeps in memory for learners; default 500
  --no-log                        a leader does not read its log for learners, and sends snapshots
  --run CHOICES                   makes these choices, and says what comes of it`;

interface ExploreOptions {
  readonly scope: Scope;
  readonly order: SearchOrder;
  readonly from: 'cold' | 'serving';
  readonly seconds: number;
  readonly states: number;
  readonly depth: number;
  readonly seed: number;
  readonly run: string | undefined;
}

const secondsDefault = 60;
const progressMs = 10_000;

class UsageError extends Error {}

/** Says what it finds, and sets the exit code: 1 for a violation, 2 for a slip in the options. */
export function explore(args: readonly string[]): void {
  try {
    const options = parseOptions(args);
    const isWell = options.run === undefined ? exploreAll(options) : exploreRun(options.scope, parseRun(options.run));
    process.exitCode = isWell ? 0 : 1;
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
  try {
    ({ values } = parseArgs({
      args: [...args],
      options: {
        order: { ...text, default: 'chains' },
        from: { ...text, default: 'cold' },
        seconds: text,
        states: text,
        depth: text,
        seed: text,
        servers: text,
        txns: text,
        crashes: text,
        cuts: text,
        wakes: text,
        'committed-log': text,
        run: text,
        notifications: flag,
        'no-log': flag,
        help: flag,
      },
    }));
  } catch (error) {
    throw new UsageError(`${error instanceof Error ? error.message : String(error)}\n${exploreUsage}`);
  }
  const { order, from } = values;
  if (values.help || !isOrder(order) || (from !== 'cold' && from !== 'serving')) throw new UsageError(exploreUsage);
  const numberOf = (name: string, value: string | undefined, otherwise: number): number => {
    if (value === undefined) return otherwise;
    if (!/^\d+$/.test(value)) throw new UsageError(`--${name} ${value}: a number is wanted`);
    return Number(value);
  };
  const scope: Scope = {
    servers: numberOf('servers', values.servers, scopeDefaults.servers),
    txns: numberOf('txns', values.txns, scopeDefaults.txns),
    crashes: numberOf('crashes', values.crashes, scopeDefaults.crashes),
    cuts: numberOf('cuts', values.cuts, scopeDefaults.cuts),
    wakes: numberOf('wakes', values.wakes, scopeDefaults.wakes),
    notifications: values.notifications,
    committedLog: numberOf('committed-log', values['committed-log'], scopeDefaults.committedLog),
    readsLog: !values['no-log'],
  };
  return {
    scope,
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
  return text === 'chains' || text === 'breadth' || text === 'walks';
}

function exploreAll({ scope, order, from, seconds, states, depth, seed }: ExploreOptions): boolean {
  const begun = performance.now();
  let toldMs = begun;
  const opening = from === 'cold' ? [] : openingToServe(scope);
  const found = search({
    scope,
    opening,
    order,
    seed,
    depthMax: depth,
    isEnough: (progress) => {
      const nowMs = performance.now();
      if (nowMs - toldMs >= progressMs) {
        toldMs = nowMs;
        console.log(progressText(progress, nowMs - begun));
      }
      return progress.states >= states || nowMs - begun >= seconds * 1000;
    },
  });
  console.log(progressText(found, performance.now() - begun));
  const { violation, isComplete } = found;
  if (violation === undefined) {
    console.log(isComplete ? 'every state within this scope was seen; all invariants hold' : 'all invariants hold so far');
    return true;
  }
  const run = shorten(scope, violation.run, violation.error);
  console.log(`violated after ${violation.run.length} choices: ${violation.error.message}`);
  console.log(`the shortest run found has ${run.length} choices:`);
  exploreRun(scope, run);
  console.log(`  run it again: npm run explore -- ${scopeText(scope)}--run '${runText(run)}'`);
  return false;
}

function progressText({ states, steps, depth }: Progress, elapsedMs: number): string {
  const seconds = elapsedMs / 1000;
  const rate = Math.round(states / seconds);
  return `${states} distinct states in ${seconds.toFixed(1)} s (${rate} a second), ${steps} steps, depth ${depth}`;
}

/** The options that differ from the defaults. */
function scopeText(scope: Scope): string {
  const words: string[] = [];
  for (const key of ['servers', 'txns', 'crashes', 'cuts', 'wakes'] as const) {
    if (scope[key] !== scopeDefaults[key]) words.push(`--${key} ${scope[key]} `);
  }
  if (scope.committedLog !== scopeDefaults.committedLog) words.push(`--committed-log ${scope.committedLog} `);
  if (scope.notifications) words.push('--notifications ');
  if (!scope.readsLog) words.push('--no-log ');
  return words.join('');
}

/** Returns whether all went well. */
function exploreRun(scope: Scope, run: readonly Choice[]): boolean {
  const { world, error, made } = replayRun(scope, run);
  if (made.length < run.length && error === undefined)
    console.log(`${run.length - made.length} of the choices are not there at their turn`);
  for (const [at, code] of made.entries()) console.log(`  ${at + 1} ${choiceText(code)}`);
  console.log(world.describe());
  console.log(error === undefined ? 'all invariants hold' : error.message);
  return error === undefined;
}
