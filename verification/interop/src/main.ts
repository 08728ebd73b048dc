/**
 * `npm run interop`: the foreign clients, the exchange of data folders and the differential run,
 * with one kind of server.
 *
 * Each part names its requirements; parts whose requirements cannot be installed on this machine
 * are skipped by name. Two parts run at a time, and each prints its results when it ends. The last
 * line counts all checks.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';

import { ensureForeignPrograms, type ForeignProgramName, repositoryFolder } from '../../../scripts/foreign-programs.js';
import { type ServerKind, type ServerProcess, startServer } from '@tskeeper/harness';
import { runClientEnsembles } from './client/ensemble-checks.ts';
import { runClient } from './client/run.ts';
import { runSecureClient } from './client/secure-checks.ts';
import { runConformance } from './conformance/run.ts';
import { reference, runCanary, runComparison } from './differential/run.ts';
import { runReadOnlyComparison } from './differential/read-only.ts';
import { buildCDriver, buildJavaProgram } from './drivers/build.ts';
import { compareClis } from './drivers/cli.ts';
import { compareFileTools } from './drivers/file-tools.ts';
import { runEnsembles } from './ensemble/run.ts';
import { type DriverFacts, factArguments, runDriver } from './drivers/driver.ts';
import { runZkCli } from './drivers/zkcli.ts';
import { runExchange, scenariosFor } from './exchange/exchange.ts';
import { rewritingsFor, runRewriting } from './exchange/rewritten-folders.ts';
import { recipeClientPrograms } from './recipes/recipe-client.ts';
import { countRequests, runRecipes } from './recipes/run.ts';
import { crowdTimeoutMs } from './recipes/traffic.ts';
import { type Counts, Report, summaryOf } from './report.ts';
import { superAuth, superDigestProperty, versionOf } from './settings.ts';
import { buildSaslClient, runSecure } from './secure/run.ts';
import { runCSuite } from './suites/c-suite.ts';
import { runKazooSuite } from './suites/kazoo-suite.ts';
import { twoAtATime } from './two-at-a-time.ts';

/** In this order: the long parts first, so that the last two end at about the same time. */
const partNames = [
  'ensemble',
  'client',
  'recipes',
  'exchange',
  'conformance',
  'c-suite',
  'secure',
  'differential',
  'cli',
  'java',
  'kazoo-suite',
  'kazoo',
  'c',
  'clickhouse',
] as const;
type PartName = (typeof partNames)[number];
/** Parts that only the long form has, unless --only names them: what they install is large. */
const longParts: ReadonlySet<PartName> = new Set(['clickhouse']);
const kinds: readonly ServerKind[] = ['ours', 'java-3.9.5', 'java-3.8.0'];

interface Settings {
  readonly kind: ServerKind;
  readonly seed: number;
  readonly operations: number;
  readonly bounded: boolean;
  readonly rounds: number;
}

interface Part {
  readonly peers: readonly ForeignProgramName[];
  readonly run: (settings: Settings, report: Report) => Promise<void>;
}

/**
 * Short ticks and frequent checks of containers, so that expiry and deletes happen within seconds.
 */
const tickTime = 500;
const driverConfig = { tickTime, extendedTypesEnabled: true, enforceQuota: true };
const driverProperties = { ...superDigestProperty, 'znode.container.checkIntervalMs': 500 };

/**
 * Containers stay, so that none has to be created again between one client that leaves it and the
 * next one.
 */
const noContainerChecks = { 'znode.container.checkIntervalMs': 3_600_000 };

function factsOf(server: ServerProcess): DriverFacts {
  return {
    connect: server.connectString,
    superAuth,
    version: versionOf(server.kind),
    tickTime,
    minSessionTimeout: 2 * tickTime,
    maxSessionTimeout: 20 * tickTime,
    extendedTypes: true,
    enforceQuota: true,
  };
}

/** Runs `use` with a fresh server for drivers, and ends the server in any case. */
async function withServer(
  kind: ServerKind,
  use: (server: ServerProcess) => Promise<void>,
  more: Readonly<Record<string, number | string>> = {},
  properties: Readonly<Record<string, number>> = {},
): Promise<void> {
  const folder = await mkdtemp(path.join(tmpdir(), 'tskeeper-interop-'));
  const server = await startServer({
    kind,
    folder,
    config: { ...driverConfig, ...more },
    properties: { ...driverProperties, ...properties },
  });
  try {
    await use(server);
  } finally {
    if (server.alive) await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

const parts: Record<PartName, Part> = {
  kazoo: {
    peers: ['kazoo'],
    run: ({ kind }, report) =>
      withServer(kind, async (server) => {
        const { kazoo } = await ensureForeignPrograms(['kazoo']);
        if (!kazoo.installed) return;
        const script = path.join(repositoryFolder, 'verification', 'interop', 'python', 'kazoo_driver.py');
        await runDriver('kazoo', 'python3', [script, JSON.stringify(factsOf(server))], { PYTHONPATH: kazoo.pythonPath }, report);
      }),
  },
  clickhouse: {
    peers: ['clickhouse'],
    run: ({ kind }, report) =>
      withServer(
        kind,
        async (server) => {
          const { clickhouse } = await ensureForeignPrograms(['clickhouse']);
          if (!clickhouse.installed) return;
          const script = path.join(repositoryFolder, 'verification', 'interop', 'python', 'clickhouse_driver.py');
          await runDriver(
            'clickhouse',
            'python3',
            [script, JSON.stringify(factsOf(server))],
            { PYTHONPATH: clickhouse.pythonPath },
            report,
          );
        },
        kind === 'ours' ? { 'tskeeper.keeperExtensions': 'true' } : {},
      ),
  },
  'kazoo-suite': {
    peers: ['kazoo-suite'],
    run: async ({ kind, bounded }, report) => {
      const { 'kazoo-suite': suite } = await ensureForeignPrograms(['kazoo-suite']);
      if (suite.installed) await runKazooSuite(kind, bounded, suite, report);
    },
  },
  java: {
    peers: ['zookeeper-3.9.5'],
    run: async ({ kind }, report) => {
      const { 'zookeeper-3.9.5': java } = await ensureForeignPrograms(['zookeeper-3.9.5']);
      if (!java.installed) return;
      const classes = await buildJavaProgram('JavaDriver', java);
      await withServer(kind, (server) => {
        // A client rejects replies above its own jute.maxbuffer, and the reply with the largest
        // data is longer than the request.
        const options = ['-Xmx256m', '-Dlog.level=OFF', '-Djute.maxbuffer=4194304', '-cp', `${classes}:${java.classpath}`];
        return runDriver('java', 'java', [...options, 'JavaDriver', ...factArguments(factsOf(server))], {}, report);
      });
      await withServer(kind, (server) => withServer(reference, (expected) => runZkCli(java.classpath, server, expected, report)));
    },
  },
  cli: {
    peers: ['zookeeper-3.9.5'],
    run: async ({ kind }, report) => {
      const { 'zookeeper-3.9.5': java } = await ensureForeignPrograms(['zookeeper-3.9.5']);
      if (!java.installed) return;
      await withServer(kind, (forOurs) =>
        withServer(kind, async (forZkCli) => {
          await compareClis(java.classpath, forOurs, forZkCli, report);
          await compareFileTools(java.classpath, forZkCli, report);
        }),
      );
    },
  },
  c: {
    peers: ['zookeeper-c'],
    run: async ({ kind }, report) => {
      const { 'zookeeper-c': library } = await ensureForeignPrograms(['zookeeper-c']);
      if (!library.installed) return;
      const program = await buildCDriver(library);
      await withServer(kind, (server) => runDriver('c', program, factArguments(factsOf(server)), {}, report));
    },
  },
  'c-suite': {
    // The compiler of records, needed to build the client, comes with ZooKeeper.
    peers: ['zookeeper-c-suite', 'zookeeper-3.8.0'],
    run: async ({ kind, bounded }, report) => {
      const { 'zookeeper-c-suite': suite, 'zookeeper-3.8.0': java } = await ensureForeignPrograms(['zookeeper-c-suite', 'zookeeper-3.8.0']);
      if (suite.installed && java.installed) await runCSuite(kind, bounded, suite, java, report);
    },
  },
  client: {
    peers: ['zookeeper-3.9.5', 'zookeeper-3.8.0'],
    run: async ({ kind }, report) => {
      // This part tests our client, so it runs with the other servers as well, unless one kind is
      // named.
      const servers = kind === 'ours' ? kinds : [kind];
      await twoAtATime(servers, (each) => withServer(each, (server) => runClient(server, factsOf(server), report)));
      // Ours has no secureClientPort; its SASL is compared by the part `secure`.
      await runSecureClient(
        servers.filter((each) => each !== 'ours'),
        report,
      );
      // Ensembles contain several kinds.
      if (kind === 'ours') await runClientEnsembles(report);
    },
  },
  secure: {
    peers: ['zookeeper-3.9.5', 'kazoo'],
    run: async ({ kind }, report) => {
      const { 'zookeeper-3.9.5': java, kazoo } = await ensureForeignPrograms(['zookeeper-3.9.5', 'kazoo']);
      if (!java.installed || !kazoo.installed) return;
      await runSecure(kind, reference, await buildSaslClient(java, kazoo.pythonPath), report);
    },
  },
  recipes: {
    peers: ['zookeeper-3.9.5', 'kazoo', 'curator'],
    run: async ({ kind }, report) => {
      const { kazoo, curator } = await ensureForeignPrograms(['kazoo', 'curator']);
      if (!kazoo.installed || !curator.installed) return;
      const classes = await buildJavaProgram('CuratorPeer', curator, ['CuratorServices', 'CuratorQueues', 'CuratorCaches']);
      const programs = recipeClientPrograms(kazoo.pythonPath, `${classes}:${curator.classpath}`);
      // This part tests our recipes, so it runs with ZooKeeper as well.
      for (const each of kind === 'ours' ? [kind, reference] : [kind]) {
        await withServer(each, (server) => runRecipes(server, programs, report));
        await withServer(each, (server) => countRequests(server, report), { maxSessionTimeout: crowdTimeoutMs }, noContainerChecks);
      }
    },
  },
  conformance: {
    peers: ['zookeeper-3.9.5', 'zookeeper-3.8.0', 'zookeeper-3.5.10'],
    run: async ({ kind }, report) => {
      // A check that Apache's servers do not pass is wrong, so it runs with them as well.
      await runConformance(kind === 'ours' ? [...kinds, 'java-3.5.10'] : [kind], report);
    },
  },
  exchange: {
    peers: ['zookeeper-3.9.5', 'zookeeper-3.8.0'],
    run: async ({ kind, seed, bounded }, report) => {
      for (const other of kinds) {
        if (other === 'ours' || (other === kind && kind !== reference)) continue;
        const there = scenariosFor(other, kind, seed);
        const back = other === kind ? [] : scenariosFor(kind, other, seed + 100);
        // In the bounded form each pair still has a crash, a clean end and a compressed snapshot,
        // but not every combination.
        const chosen = bounded ? [there[1]!, there[2]!, there.at(-1)!, ...back.slice(3)] : [...there, ...back];
        await twoAtATime(chosen, (scenario) => runExchange(scenario, report));
      }
      const rewritings = rewritingsFor(kind === 'ours' ? reference : kind, seed);
      await twoAtATime(bounded ? [rewritings[0]!, rewritings[2]!] : rewritings, (scenario) => runRewriting(scenario, report));
    },
  },
  differential: {
    peers: ['zookeeper-3.9.5', 'zookeeper-3.8.0'],
    run: async ({ kind, seed, operations }, report) => {
      if (kind !== 'java-3.8.0') await runReadOnlyComparison(kind, report);
      await runCanary(seed, report);
      // 3.8.0 is only the canary: its differences are many and known.
      if (kind !== 'java-3.8.0') await runComparison(kind, seed, operations, report);
    },
  },
  ensemble: {
    peers: ['zookeeper-3.9.5', 'zookeeper-3.8.0'],
    run: async ({ kind, seed, bounded, rounds }, report) => {
      // This part tests ours together with the others.
      if (kind === 'ours') await runEnsembles({ seed, bounded, rounds }, report);
    },
  },
};

function isOneOf<T extends string>(value: string, choices: readonly T[]): value is T {
  return (choices as readonly string[]).includes(value);
}

function parse(): Settings & { only: readonly PartName[]; verbose: boolean } {
  const { values } = parseArgs({
    options: {
      server: { type: 'string', default: 'ours' },
      only: { type: 'string' },
      seed: { type: 'string', default: '1' },
      operations: { type: 'string' },
      bounded: { type: 'boolean', default: false },
      rounds: { type: 'string', default: '1' },
      verbose: { type: 'boolean', default: false },
    },
  });
  const { server, bounded, verbose } = values;
  if (!isOneOf(server, kinds)) throw new Error(`--server must be one of ${kinds.join(', ')}, not ${server}`);
  const all = partNames.filter((name) => !bounded || !longParts.has(name));
  const only = (values.only?.split(',') ?? all).map((name) => {
    if (!isOneOf(name, partNames)) throw new Error(`--only must be a list of ${partNames.join(', ')}, not ${name}`);
    return name;
  });
  const number = (name: string, text: string): number => {
    const value = Number(text);
    if (!Number.isSafeInteger(value) || value < 0) throw new Error(`--${name} must be a whole number, not ${text}`);
    return value;
  };
  const operations = number('operations', values.operations ?? (bounded ? '40000' : '500000'));
  const rounds = number('rounds', values.rounds);
  return { kind: server, only, seed: number('seed', values.seed), operations, bounded, rounds, verbose };
}

/** Seconds with one decimal, for people. */
function seconds(sinceMs: number): string {
  return `${((performance.now() - sinceMs) / 1000).toFixed(1)} s`;
}

/**
 * Runs a part and prints its results when it has ended, so that the lines of two parts that run at
 * the same time do not mix. Returns its counts.
 */
async function runPart(name: PartName, settings: Settings & { verbose: boolean }, print: (line: string) => void): Promise<Counts> {
  const lines: string[] = [`\n${name}`];
  const keep = (line: string): void => {
    lines.push(line);
  };
  const report = new Report(keep, settings.verbose);
  const start = performance.now();
  const part = parts[name];
  const peers = await ensureForeignPrograms(part.peers);
  const missing = Object.values(peers).find((peer) => !peer.installed);
  if (missing?.installed === false) {
    report.skip(name, `cannot install ${missing.name}: ${missing.reason}`);
  } else {
    try {
      await part.run(settings, report);
    } catch (error) {
      report.fail(name, error instanceof Error ? error.message : String(error));
    }
  }
  print([...lines, `  ${report.summary} in ${seconds(start)}`].join('\n'));
  return report.counts;
}

async function main(): Promise<void> {
  const settings = parse();
  const print = (line: string): void => {
    process.stdout.write(`${line}\n`);
  };
  const begin = performance.now();
  print(`interop of ${settings.kind}: ${settings.only.join(', ')}`);
  // Two parts must not install the same program at the same time.
  const needed = new Set(settings.only.flatMap((name) => parts[name].peers));
  await ensureForeignPrograms([...needed], { log: (line) => print(`  ${line}`) });
  const total: Counts = { passed: 0, failed: 0, skipped: 0 };
  await twoAtATime(settings.only, async (name) => {
    const { passed, failed, skipped } = await runPart(name, settings, print);
    total.passed += passed;
    total.failed += failed;
    total.skipped += skipped;
  });
  print(`\nall in ${seconds(begin)}`);
  print(summaryOf(total));
  process.exitCode = total.failed > 0 ? 1 : 0;
}

try {
  await main();
} catch (error) {
  // Only errors of the command line arrive here; an error in a part is a failed check.
  process.stderr.write(`interop: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 64;
}
