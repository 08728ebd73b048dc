/**
 * npm run test:hostile: real servers under attack, restarted under load, killed on slow links, and
 * cut off from each other. See README.md. Exits with 1 if one of ours misses a limit.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { environmentOf } from '../../bench/environment.js';
import { cacheFolder, ensureForeignPrograms } from '../../scripts/foreign-programs.js';
import { attackLimits, attacks, checkCanary, runAttack } from './attacks/run.ts';
import type { Kind } from './ensemble.ts';
import { runCuts } from './cuts.ts';
import { runFailover } from './failover.ts';
import { measureRow, type PartContext } from './part.ts';
import { isRed, type Row, table, verdictOf } from './report.ts';
import { runRestarts } from './restarts.ts';

const usage = `npm run test:hostile -- [part ...] [options]

  part            attacks, restarts, failover, cuts; all of them when none is named
  --only a,b      only these rows
  --java          only Java's servers
  --no-java       only ours
  --rounds N      restarts, kills or cuts of each row, instead of what README.md says
  --bounded       about a minute: one round of the rows that are quick, without Java; limits of time are ten times as long
  --json FILE     writes the rows there as well
  --list          the rows
`;

/** A busy machine must not fail the bounded form; see the times of the full one. */
const boundedTimeFactor = 10;

const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

type Part = (context: PartContext) => Promise<Row[]>;

async function runAttacks(context: PartContext): Promise<Row[]> {
  const rows: Row[] = [];
  if (context.kinds.includes('ours')) await checkCanary(context);
  for (const attack of attacks) {
    if (context.isBounded && attack.isBounded !== true) continue;
    const limit = attack.limit === undefined ? attackLimits : `${attackLimits}; ${attack.limit}`;
    rows.push(...(await measureRow(context, { part: 'attacks', name: attack.name, limit }, (kind) => runAttack(attack, kind, context))));
  }
  return rows;
}

const parts: Readonly<Record<string, Part>> = { attacks: runAttacks, restarts: runRestarts, failover: runFailover, cuts: runCuts };

function parse() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      only: { type: 'string' },
      java: { type: 'boolean', default: false },
      'no-java': { type: 'boolean', default: false },
      rounds: { type: 'string' },
      json: { type: 'string' },
      bounded: { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const unknown = positionals.find((name) => !(name in parts));
  if (unknown !== undefined) throw new Error(`no part is called ${unknown}; there are ${Object.keys(parts).join(', ')}`);
  const rounds = values.rounds === undefined ? undefined : Number(values.rounds);
  if (rounds !== undefined && !(Number.isSafeInteger(rounds) && rounds > 0)) {
    throw new Error(`--rounds takes a number above 0, not ${values.rounds}`);
  }
  return { ...values, rounds, only: values.only?.split(','), names: positionals.length === 0 ? Object.keys(parts) : positionals };
}

async function kindsOf(options: ReturnType<typeof parse>): Promise<Kind[]> {
  if (options['no-java'] || options.bounded) return ['ours'];
  const { 'zookeeper-3.9.5': peer } = await ensureForeignPrograms(['zookeeper-3.9.5'], { log: say });
  if (peer.installed) return options.java ? ['java-3.9.5'] : ['ours', 'java-3.9.5'];
  if (options.java) throw new Error(`ZooKeeper 3.9.5 is not installed: ${peer.reason}`);
  say(`ZooKeeper 3.9.5 could not be installed, so ours runs alone: ${peer.reason}`);
  return ['ours'];
}

/**
 * Servers end with this process, so this process ends when its parent has gone without a signal, as
 * npm does.
 */
function endWithParent(): void {
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) process.exit(143);
  }, 1000).unref();
}

async function main(): Promise<void> {
  const options = parse();
  if (options.help) {
    say(usage);
    return;
  }
  endWithParent();
  const folder = path.join(cacheFolder, 'hostile', String(process.pid));
  mkdirSync(folder, { recursive: true });
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const met = new Set<string>();
  const isWanted = (row: string): boolean => {
    met.add(row);
    if (options.list) say(`  ${row}`);
    return !options.list && (options.only?.includes(row) ?? true);
  };
  const kinds = options.list ? [] : await kindsOf(options);
  const timeLimit = (limit: number): number => (options.bounded ? boundedTimeFactor * limit : limit);
  const rounds = options.bounded ? 1 : options.rounds;
  const context = { folder, kinds, rounds, isBounded: options.bounded, timeLimit, isWanted, say };
  if (!options.list) for (const [what, text] of Object.entries(await environmentOf(folder, say))) say(`${what}: ${text}`);
  const beganMs = performance.now();
  const rows: Row[] = [];
  for (const name of options.names) {
    say(name);
    rows.push(...(await parts[name]!(context)));
  }
  if (options.list) return;
  const unknown = options.only?.filter((name) => !met.has(name)) ?? [];
  if (unknown.length > 0) throw new Error(`no row is called ${unknown.join(', ')}; --list shows them`);
  const red = rows.filter(isRed).length;
  if (options.json !== undefined) {
    const judged = rows.map((row) => ({ ...row, verdict: verdictOf(row) }));
    writeFileSync(options.json, `${JSON.stringify(judged, null, 2)}\n`);
  }
  say(`\n${table(rows)}\n`);
  say(`${rows.length} rows in ${Math.round((performance.now() - beganMs) / 1000)} s, ${red} of ours missed a limit`);
  process.exitCode = red === 0 ? 0 : 1;
}

try {
  await main();
} catch (error) {
  process.stderr.write(`test:hostile: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 64;
}
