/**
 * npm run bench: measures this server beside Apache ZooKeeper and beside the bare ceiling, in
 * turns, on this machine, in one run. See README.md in this folder.
 */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';

import { repositoryFolder } from '../scripts/foreign-programs.js';
import { clientKinds } from './clients/clients.js';
import { measureClients } from './clients/measure.js';
import { clientsMarkdown, fillsReadme, withMeasurements } from './clients/report.js';
import { rows as clientRows } from './clients/rows.js';
import { environmentOf } from './environment.js';
import { checkGenerator } from './generator/check.js';
import { buildGenerator, runGenerator } from './generator/generator.js';
import { outages } from './outages.js';
import { markdown, verdicts, demandText } from './report.js';
import { rows } from './rows.js';
import { assertOnDisk, defaultOurCommand, serverKinds, startEnsemble, startServer } from './servers.js';
import { scenarios } from './scenarios.js';
import { rotated } from './rotation.js';

const usage = `npm run bench -- [group ...] [options]

  group              ensemble, failover, idle, test-ensemble: the rows of that name; those of a single server when there is none;
                     clients: our client beside others, against one server
  --rows a,b         only these rows (see --list)
  --server a,b       only these of ${serverKinds.join(', ')}
  --client a,b       of the clients only these of ${clientKinds.join(', ')}
  --rounds N         how often each server or client has its turn (3, or what the row says)
  --seconds S        length of a measurement (8; of clients 0.8)
  --warm-up S        load before it, which is not counted (5; of clients 1)
  --znodes N         instead of the number that million-znodes and restart load, for a trial
  --data-dir DIR     where servers keep their data, on a disk (.cache/bench)
  --our-command C    how our server is started; the path of zoo.cfg is appended
  --before-command C how another build of our server is started: it takes turns with ours ("before")
  --name NAME        of the files in bench/results (the first group, or else the date and time)
  --list             shows the rows and what they demand
  --check            only proves that the load generator is right
`;

const { values, positionals: groups } = parseArgs({
  allowPositionals: true,
  options: {
    rows: { type: 'string' },
    server: { type: 'string' },
    client: { type: 'string', default: clientKinds.join(',') },
    rounds: { type: 'string' },
    seconds: { type: 'string' },
    'warm-up': { type: 'string' },
    znodes: { type: 'string' },
    'data-dir': { type: 'string', default: path.join(repositoryFolder, '.cache', 'bench') },
    'our-command': { type: 'string', default: defaultOurCommand },
    'before-command': { type: 'string' },
    name: { type: 'string' },
    list: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

/** Load before each turn of a build: new connections, and caches of the processor. */
const turnWarmUpSeconds = 0.3;

const say = (line) => console.error(line);

/** How the builds of our server are started. */
const commands = { ourCommand: values['our-command'], beforeCommand: values['before-command'] };

function chosen(text, all, what) {
  const names = text.split(',');
  const unknown = names.find((name) => !all.includes(name));
  if (unknown !== undefined) throw new Error(`unknown ${what} ${unknown}; there are ${all.join(', ')}`);
  return names;
}

function positive(name, fallback) {
  const number = Number(values[name] ?? fallback);
  if (!(number > 0)) throw new Error(`--${name} must be a number above 0, not ${values[name]}`);
  return number;
}

/** A server, or the servers of an ensemble, with the znodes of the row. */
async function loadedServers({ program, row, start }) {
  const server = await start({});
  const servers = server.peers?.map((peer) => peer.process) ?? [server];
  await runGenerator(program, 'preload', { port: servers[0].port, znodes: row.znodes });
  // Clients of another server must find the znodes there.
  await server.untilConverged?.();
  return servers;
}

async function underLoad({ program, row, servers, seconds, warmUp, turn = 0 }) {
  const port = servers.map((one) => one.port).join(',');
  const serverPid = servers.map((one) => one.pid).join(',');
  // Each turn creates its znodes below parents of its own.
  const first = row.load.op === 'create' ? { first: turn * row.load.connections } : {};
  const result = await runGenerator(program, 'load', { ...row.load, ...first, port, znodes: row.znodes, seconds, warmUp, serverPid });
  const refused = Object.entries(result.errors);
  if (refused.length > 0)
    throw new Error(`"${servers[0].kind}" answered with errors: ${refused.map(([code, count]) => `${count} x ${code}`).join(', ')}`);
  return result;
}

/**
 * Two builds of our server run at the same time and take turns every second, so that what the
 * machine does meanwhile affects both. The sum of its turns is the measurement of a build.
 *
 * @returns {Promise<Record<string, { throughput: number, cpuUsPerOp: number }>>}
 */
async function measureBuilds({ program, row, kinds, startOf, settings }) {
  const builds = [];
  for (const kind of kinds) {
    const servers = await loadedServers({ program, row, start: startOf(kind) });
    builds.push({ kind, servers, operations: 0, seconds: 0, cpuSeconds: 0 });
  }
  for (const { servers } of builds) await underLoad({ program, row, servers, seconds: settings.warmUp, warmUp: 0 });
  for (let turn = 1; turn <= settings.seconds; turn++) {
    for (const build of rotated(builds, turn)) {
      const result = await underLoad({ program, row, servers: build.servers, seconds: 1, warmUp: turnWarmUpSeconds, turn });
      build.operations += result.operations;
      build.seconds += result.operations / result.throughput;
      build.cpuSeconds += result.serverCpuSeconds;
    }
  }
  return Object.fromEntries(
    builds.map(({ kind, operations, seconds, cpuSeconds }) => [
      kind,
      { throughput: operations / seconds, cpuUsPerOp: (cpuSeconds * 1e6) / operations },
    ]),
  );
}

async function measureLoad({ program, row, start, settings }) {
  const servers = await loadedServers({ program, row, start });
  const result = await underLoad({ program, row, servers, ...settings });
  const memories = await Promise.all(servers.map((one) => one.memory()));
  await Promise.all(servers.map((one) => one.stop()));
  return {
    throughput: result.throughput,
    cpuUsPerOp: (result.serverCpuSeconds * 1e6) / result.operations,
    p50Us: result.latencyUs.p50,
    p90Us: result.latencyUs.p90,
    p99Us: result.latencyUs.p99,
    p999Us: result.latencyUs.p999,
    maxUs: result.latencyUs.max,
    generatorCpuShare: result.ownCpuShare,
    rssMb: memories.reduce((sum, { rssMb }) => sum + rssMb, 0),
  };
}

function chosenRows() {
  const unknown = groups.find((group) => !rows.some((row) => row.group === group));
  if (unknown !== undefined)
    throw new Error(`unknown rows ${unknown}; there are ${[...new Set(rows.map((row) => row.group ?? ''))].filter(Boolean).join(', ')}`);
  const all = rows.map((row) => row.name);
  if (values.rows !== undefined) return chosen(values.rows, all, 'row');
  return rows.filter((row) => (groups.length === 0 ? row.group === undefined : groups.includes(row.group))).map((row) => row.name);
}

/** Rows in which each kind of server takes part in every round. */
async function measureOutages(row, kinds, folderOf, result, failures) {
  const started = [];
  const start = async (kind) => {
    const folder = folderOf(kind);
    await rm(folder, { recursive: true, force: true });
    const ensemble = await startEnsemble(kind, folder, { count: row.ensemble, members: row.members, config: row.config, ...commands });
    started.push(ensemble);
    return ensemble;
  };
  try {
    const rounds = positive('rounds', row.rounds);
    const measured = await outages[row.kind]({ kinds, rounds, start, say: (line) => say(`${row.name}, ${line}`) });
    result.rounds.push(measured);
    for (const [kind, measures] of Object.entries(measured)) say(`${row.name}, ${kind}: ${numbersOf(measures)}`);
  } catch (error) {
    failures.push(`${row.name}: ${error.message}`);
    say(failures.at(-1));
  } finally {
    for (const ensemble of started) await ensemble[Symbol.asyncDispose]();
    for (const kind of kinds) await rm(folderOf(kind), { recursive: true, force: true });
  }
}

/** The servers that run at the same time: one, or under load all of them if two builds are compared. */
function turns(row, kinds) {
  return row.kind === 'load' && kinds.includes('before') ? [kinds] : kinds.map((kind) => [kind]);
}

/** Lets `use` start servers; ends them and deletes their folders in any case. */
async function withServers(row, folderOf, use) {
  const started = [];
  const folders = new Set();
  const startOf =
    (kind) =>
    async ({ fresh = false, ...options }) => {
      const folder = folderOf(kind);
      folders.add(folder);
      if (fresh) await rm(folder, { recursive: true, force: true });
      await mkdir(folder, { recursive: true });
      const all = { ...commands, ...options };
      const server =
        row.ensemble === undefined
          ? await startServer(kind, folder, all)
          : await startEnsemble(kind, folder, { count: row.ensemble, ...all });
      started.push(server);
      return server;
    };
  try {
    await use(startOf);
  } finally {
    for (const server of started) await (server.alive === true ? server.stop() : server[Symbol.asyncDispose]?.());
    for (const folder of folders) await rm(folder, { recursive: true, force: true });
  }
}

/** Writes a report to bench/results and prints it. */
async function publish(name, report, page) {
  const folder = path.join(import.meta.dirname, 'results');
  await mkdir(folder, { recursive: true });
  await writeFile(path.join(folder, `${name}.json`), `${JSON.stringify(report, undefined, 2)}\n`);
  await writeFile(path.join(folder, `${name}.md`), page);
  console.log(page);
  const missed = report.verdicts.filter((one) => one.level === 'tripwire' && one.verdict === 'missed');
  if (missed.length > 0 || report.failures.length > 0) process.exitCode = 1;
}

async function compareClients() {
  if (groups.length > 1) throw new Error('clients cannot be measured together with another group');
  const settings = { rounds: positive('rounds', 3), seconds: positive('seconds', 0.8), warmUp: positive('warm-up', 1) };
  const all = clientRows.map((row) => row.name);
  const wanted = values.rows === undefined ? all : chosen(values.rows, all, 'row of clients');
  const dataDir = await dataFolder();
  const environment = await environmentOf(dataDir, say);
  const measured = await measureClients({
    clientKinds: chosen(values.client, clientKinds, 'client'),
    serverKinds: chosen(values.server ?? 'java,ours', ['java', 'ours'], 'server for clients'),
    dataDir,
    wanted,
    say,
    ...settings,
  });
  const report = { environment, settings, ...measured, verdicts: verdicts(measured.results) };
  const name = values.name ?? 'clients';
  await publish(name, report, clientsMarkdown(report));
  if (name !== 'clients' || !fillsReadme(report)) return;
  const readme = path.join(repositoryFolder, 'packages', 'client', 'README.md');
  await writeFile(readme, withMeasurements(await readFile(readme, 'utf8'), report));
  say('updated the table in packages/client/README.md');
}

async function dataFolder() {
  const dataDir = path.resolve(values['data-dir']);
  await mkdir(dataDir, { recursive: true });
  await assertOnDisk(dataDir);
  return dataDir;
}

function numbersOf(measures) {
  return Object.entries(measures)
    .map(([key, value]) => `${key} ${Number(value.toPrecision(4))}`)
    .join(', ');
}

async function main() {
  if (values.help) {
    console.log(usage);
    return;
  }
  if (values.list) {
    for (const row of [...rows, ...clientRows]) {
      console.log(`${row.name}: ${row.title}`);
      for (const demand of row.demands) console.log(`    ${demand.level}: ${demandText(demand)}`);
    }
    return;
  }
  if (groups.includes('clients')) {
    await compareClients();
    return;
  }
  const program = await buildGenerator();
  say(`the load generator passed ${await checkGenerator(program)} checks`);
  if (values.check) return;

  const settings = { rounds: positive('rounds', 3), seconds: positive('seconds', 8), warmUp: positive('warm-up', 5) };
  const available = serverKinds.filter((kind) => kind !== 'before' || values['before-command'] !== undefined);
  const kinds = chosen(values.server ?? available.join(','), available, 'server');
  const name = values.name ?? groups[0] ?? new Date().toISOString().slice(0, 16).replaceAll(':', '');
  const names = chosenRows();
  const dataDir = await dataFolder();
  const environment = await environmentOf(dataDir, say);

  const results = [];
  const failures = [];
  for (const row of rows.filter((one) => names.includes(one.name))) {
    const scaled =
      values.znodes === undefined || row.kind === 'load' || row.kind === 'million-watches' ? row : { ...row, znodes: positive('znodes') };
    const result = { ...scaled, rounds: [] };
    results.push(result);
    const folderOf = (kind) => path.join(dataDir, `${name}-${row.name}-${kind}`);
    const those = kinds.filter((kind) => row.servers.includes(kind === 'before' ? 'ours' : kind));
    if (outages[row.kind] !== undefined) {
      await measureOutages(row, those, folderOf, result, failures);
      continue;
    }
    // Scenarios take minutes and their results hardly vary, so they run once.
    const rounds = row.kind === 'load' ? settings.rounds : 1;
    const measure = row.kind === 'load' ? measureLoad : scenarios[row.kind];
    for (let round = 0; round < rounds; round++) {
      const measured = {};
      result.rounds.push(measured);
      for (const together of turns(row, rotated(those, round))) {
        try {
          await withServers(row, folderOf, async (startOf) => {
            if (together.length > 1) Object.assign(measured, await measureBuilds({ program, row, kinds: together, startOf, settings }));
            else measured[together[0]] = await measure({ program, row: scaled, start: startOf(together[0]), settings });
          });
          for (const kind of together) say(`${row.name}, round ${round + 1}, ${kind}: ${numbersOf(measured[kind])}`);
        } catch (error) {
          failures.push(`${row.name}, round ${round + 1}, ${together.join(' and ')}: ${error.message}`);
          say(failures.at(-1));
        }
      }
    }
  }

  const report = { environment, settings, results, verdicts: verdicts(results), failures };
  await publish(name, report, markdown(report));
}

try {
  await main();
} catch (error) {
  say(`bench: ${error.message}`);
  process.exitCode = 1;
}
