#!/usr/bin/env node
/**
 * What users see of each package, kept in review: packages/<name>/api.md is made from the built declarations, and a difference is a failure
 * until it is written anew (`npm run golden -- --write`) and read. The documentation of the same symbols is judged as well.
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
  core: 'nobody imports it but its siblings: it is published since the server depends on it',
  runtime: 'nobody imports it but its siblings: it is published since the server depends on it',
};

/** Packages whose symbols need no documentation, and why. */
const undocumented = {
  protocol: 'its records and fields bear the names of zookeeper.jute, and docs/internals/jute.md tells how to read them',
};

/** Whose methods are those of somebody else's specification, and name it. */
const sourced = { client: ['Client', 'ClientView'] };

/** Symbols a surface mentions and does not give away, and why. */
const internal = {
  client: new Map([
    ['Session', 'argument of constructors that the package alone calls'],
    ['Chroot', 'argument of constructors that the package alone calls'],
    ['CallDefaults', 'argument of constructors that the package alone calls'],
    ['Refusal', 'argument of constructors that the package alone calls'],
  ]),
  protocol: new Map([
    ['requests', 'a module, whose members are exported one by one'],
    ['replies', 'a module, whose members are exported one by one'],
  ]),
  recipes: new Map([
    ['CacheSettings', 'argument of a constructor that the package alone calls'],
    ['ZnodeStore', 'for the kinds of caches, which are all in the package'],
    ['Result', 'short for what an iterator gives'],
    ['Place', 'argument of a constructor that the package alone calls'],
    ['HeldLeaseSettings', 'argument of a constructor that the package alone calls'],
    ['QueueZnode', 'argument of a constructor that the package alone calls'],
    ['MadeClaim', 'argument of a constructor that the package alone calls'],
    ['RankKind', 'argument of a constructor that the package alone calls'],
    ['QueueSetup', 'for the kinds of queues, which are all in the package'],
    ['Transaction', 'argument of a constructor that the package alone calls'],
    ['Ballot', 'argument of a constructor that the package alone calls'],
  ]),
  testing: new Map([['Member', 'EnsembleServer is what is public of it']]),
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

/** The report and the model of a package, and what the extractor has to say against it. */
function examine({ name, folder }) {
  mkdirSync(temporary, { recursive: true });
  const paths = { report: join(temporary, `${name}.api.md`), model: join(temporary, `${name}.api.json`) };
  const extractorConfig = ExtractorConfig.prepare({
    configObject: {
      projectFolder: folder,
      mainEntryPointFilePath: join(folder, 'dist', 'index.d.ts'),
      // What the client passes on of it is the client's surface too.
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
          // Everything an index exports is public, and said to be documented or not by our own rules.
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
    return [`packages/${name}/api.md is not what the package exports. \`npm run golden -- --write\` renews it: read the difference.`];
  writeFileSync(path, report);
  console.log(`packages/${name}/api.md written`);
  return [];
}

/** What is wrong with the surface of one package. */
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
