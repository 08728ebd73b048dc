#!/usr/bin/env node
/**
 * Compares the exports of each package with packages/<name>/api.md, which is made from the built
 * declarations and reviewed: a difference is a failure until the file is written again (`npm run
 * golden -- --write`). Also checks the documentation of the exported symbols.
 *
 *   node scripts/public-api.js [--write]
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor';
import { docComplaints } from './doc-rules.js';
import { publicPackages, root } from './public-packages.js';

/** Packages without a report, and why. */
const unreported = {
  core: 'only its siblings import it: it is published because the server depends on it',
  runtime: 'only its siblings import it: it is published because the server depends on it',
};

/** Packages whose symbols need no documentation, and why. */
const undocumented = {
  protocol: 'its records and fields have the names of zookeeper.jute, and docs/internals/jute.md explains how to read them',
};

/** Classes whose methods implement an external specification, and name it. */
const sourced = { client: ['Client', 'ClientView'] };

/** Symbols that a public declaration mentions without exporting them, and why. */
const internal = {
  client: new Map([
    ['Session', 'argument of constructors that only the package calls'],
    ['Chroot', 'argument of constructors that only the package calls'],
    ['CallDefaults', 'argument of constructors that only the package calls'],
    ['RequestFailure', 'argument of constructors that only the package calls'],
  ]),
  protocol: new Map([
    ['requests', 'a module whose members are exported one by one'],
    ['replies', 'a module whose members are exported one by one'],
  ]),
  recipes: new Map([
    ['CacheSettings', 'argument of a constructor that only the package calls'],
    ['ZnodeStore', 'base of the caches, which are all in the package'],
    ['Result', 'abbreviation of an iterator result'],
    ['QueueNode', 'argument of a constructor that only the package calls'],
    ['HeldLeaseSettings', 'argument of a constructor that only the package calls'],
    ['QueueShard', 'argument of a constructor that only the package calls'],
    ['ItemClaim', 'argument of a constructor that only the package calls'],
    ['RankKind', 'argument of a constructor that only the package calls'],
    ['QueueSetup', 'base of the queues, which are all in the package'],
    ['Transaction', 'argument of a constructor that only the package calls'],
    ['Ballot', 'argument of a constructor that only the package calls'],
  ]),
  testing: new Map([['TestPeer', 'EnsembleServer is its public part']]),
};

const temporary = join(root, '.cache', 'api');
const compilerOptions = {
  target: 'ES2022',
  lib: ['ES2023', 'ESNext.Disposable'],
  module: 'NodeNext',
  moduleResolution: 'NodeNext',
  types: ['node'],
  strict: true,
  exactOptionalPropertyTypes: true,
  skipLibCheck: true,
};

/** The report and the model of a package, and the extractor's complaints. */
function examine({ name, folder }) {
  mkdirSync(temporary, { recursive: true });
  const paths = { report: join(temporary, `${name}.api.md`), model: join(temporary, `${name}.api.json`) };
  const extractorConfig = ExtractorConfig.prepare({
    configObject: {
      projectFolder: folder,
      mainEntryPointFilePath: join(folder, 'dist', 'index.d.ts'),
      // Types of the protocol that the client exports are part of the client's API.
      bundledPackages: name === 'protocol' ? [] : ['@tskeeper/protocol'],
      compiler: { overrideTsconfig: { compilerOptions, include: ['dist'] } },
      apiReport: { enabled: true, reportFolder: temporary, reportTempFolder: join(temporary, 'new'), reportFileName: name },
      docModel: { enabled: true, apiJsonFilePath: paths.model },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      newlineKind: 'lf',
      messages: {
        compilerMessageReporting: { default: { logLevel: ExtractorLogLevel.Warning } },
        extractorMessageReporting: {
          default: { logLevel: ExtractorLogLevel.Warning },
          // Everything that an index exports is public, and our own rules check the documentation.
          'ae-missing-release-tag': { logLevel: ExtractorLogLevel.None },
          'ae-undocumented': { logLevel: ExtractorLogLevel.None },
        },
        tsdocMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
      },
    },
    configObjectFullPath: undefined,
    packageJsonFullPath: join(folder, 'package.json'),
  });
  const complaints = [];
  Extractor.invoke(extractorConfig, {
    localBuild: true,
    messageCallback: (message) => {
      message.handled = true;
      if (message.logLevel !== ExtractorLogLevel.Warning && message.logLevel !== ExtractorLogLevel.Error) return;
      if (message.messageId.startsWith('console-')) return;
      const forgotten = message.messageId === 'ae-forgotten-export' ? /"([^"]+)"/.exec(message.text)?.[1] : undefined;
      if (forgotten !== undefined && internal[name]?.has(forgotten)) return;
      complaints.push(message.text);
    },
  });
  return { report: readFileSync(paths.report, 'utf8'), model: JSON.parse(readFileSync(paths.model, 'utf8')), complaints };
}

function reportComplaints({ folder, name }, report) {
  const path = join(folder, 'api.md');
  if (existsSync(path) && readFileSync(path, 'utf8') === report) return [];
  if (!process.argv.includes('--write'))
    return [
      `packages/${name}/api.md differs from the exports of the package. \`npm run golden -- --write\` updates it: review the difference.`,
    ];
  writeFileSync(path, report);
  console.log(`packages/${name}/api.md written`);
  return [];
}

/** Complaints about the API of one package. */
function complaintsOf(each) {
  const { report, model, complaints } = examine(each);
  return [
    ...complaints,
    ...reportComplaints(each, report),
    ...(each.name in undocumented ? [] : docComplaints(model, sourced[each.name])),
  ].map((complaint) => `${each.name}: ${complaint}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const complaints = publicPackages()
    .filter(({ name }) => !(name in unreported))
    .flatMap(complaintsOf);
  for (const complaint of complaints) console.log(complaint);
  process.exitCode = complaints.length === 0 ? 0 : 1;
}
