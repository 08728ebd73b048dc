#!/usr/bin/env node
/**
 * Checks each package as a user gets it: publint and are-the-types-wrong on the packed files, no
 * missing and no needless files, and a program that compiles against all packages without
 * skipLibCheck.
 *
 *   node scripts/check-packed.js
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { packAll } from './pack.js';
import { root } from './public-packages.js';

const folder = join(root, '.cache', 'packed');

/**
 * The packages are ES modules only, so resolutions by CommonJS and by resolvers older than
 * `exports` do not count (profile esm-only of its command line).
 */
const ignoredResolutions = new Set(['node10', 'node16-cjs']);

/**
 * Files of a package that only its developers use. Sources would be redundant, as the compiler
 * takes only types from them.
 */
export function needlessFiles(paths) {
  return paths.filter((path) => /(?:^|\/)test\/|(?:^|\/)src\/|\.tsbuildinfo$|\.map$|\.test\.|(?:^|\/)tsconfig/.test(path));
}

/**
 * What a package lacks that a user, npm or a registry needs. `readme` is the text of its README.md.
 */
export function missingFrom({ manifest, files, readme }) {
  const absentFiles = ['LICENSE', 'README.md', 'package.json', 'dist/index.js', 'dist/index.d.ts'].filter((path) => !files.includes(path));
  const fields = ['description', 'keywords', 'license', 'homepage', 'bugs', 'repository', 'engines', 'exports', 'type'];
  const absentFields = fields.filter((field) => manifest[field] === undefined || manifest[field].length === 0);
  const { url, directory } = manifest.repository ?? {};
  const links = readme.replaceAll(/^```[\s\S]*?^```$/gm, '').matchAll(/\]\((?![a-z]+:|#)([^)\s]+)\)/g);
  return [
    ...absentFiles.map((path) => `${path} is missing`),
    ...absentFields.map((field) => `package.json has no ${field}`),
    ...(url !== undefined && directory === undefined ? ['repository in package.json has no directory'] : []),
    ...[...links].map(([, target]) => `README.md links to ${target}, which is not in the package`),
  ];
}

async function complaintsOf({ name, tarball: path, files, home }) {
  const bytes = readFileSync(path);
  const complaints = needlessFiles(files).map((each) => `${each} is useless to a user`);
  // As unpacked, not as staged.
  const manifest = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'));
  const readme = files.includes('README.md') ? readFileSync(join(home, 'README.md'), 'utf8') : '';
  complaints.push(...missingFrom({ manifest, files, readme }));

  const tarball = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  const { messages, pkg } = await publint({ pack: { tarball }, strict: true });
  complaints.push(...messages.map((message) => `publint: ${formatMessage(message, pkg)}`));

  const analysis = await checkPackage(createPackageFromTarballData(new Uint8Array(bytes)));
  if (analysis.types === false) complaints.push('are-the-types-wrong: there are no types');
  const problems = analysis.problems ?? [];
  complaints.push(
    ...problems
      .filter(({ resolutionKind }) => !ignoredResolutions.has(resolutionKind))
      .map((problem) => `are-the-types-wrong: ${JSON.stringify(problem)}`),
  );
  return complaints.map((complaint) => `${name}: ${complaint}`);
}

const program = join(folder, 'program');

/** Unpacks a package where a program finds it, and returns that folder. */
function unpack({ name, tarball }) {
  const home = join(program, 'node_modules', ...name.split('/'));
  mkdirSync(home, { recursive: true });
  const { status, stderr } = spawnSync('tar', ['-xzf', tarball, '-C', home, '--strip-components=1'], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`tar failed: ${stderr}`);
  return home;
}

/**
 * A program beside the unpacked packages imports each of them, so a user's compiler checks the
 * declarations.
 */
function compileAgainst(packed) {
  const names = new Set(packed.map(({ name }) => name));
  const others = packed.flatMap(({ manifest }) => Object.keys(manifest.dependencies ?? {})).filter((name) => !names.has(name));
  // Their other dependencies, where npm would install them.
  for (const dependency of new Set(others)) {
    const home = join(program, 'node_modules', ...dependency.split('/'));
    mkdirSync(join(home, '..'), { recursive: true });
    symlinkSync(join(root, 'node_modules', dependency), home, 'dir');
  }
  const lines = packed.map(({ name }, at) => `import * as package${at} from '${name}';\nconsole.log(Object.keys(package${at}).length);`);
  writeFileSync(join(program, 'program.ts'), `${lines.join('\n')}\n`);
  cpSync(join(root, 'scripts', 'check-packed.tsconfig.json'), join(program, 'tsconfig.json'));
  const compiler = join(root, 'node_modules', 'typescript-7', 'bin', 'tsc');
  const { status, stdout } = spawnSync(process.execPath, [compiler, '-p', program], { encoding: 'utf8' });
  if (status !== 0) return [`a program that imports the packed packages does not compile:\n${stdout}`];
  const run = spawnSync(process.execPath, [join(program, 'program.js')], { cwd: program, encoding: 'utf8' });
  return run.status === 0 ? [] : [`a program that imports the packed packages does not run:\n${run.stderr}`];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  rmSync(folder, { recursive: true, force: true });
  const packed = packAll();
  const complaints = [];
  for (const each of packed) complaints.push(...(await complaintsOf({ ...each, home: unpack(each) })));
  complaints.push(...compileAgainst(packed));
  for (const complaint of complaints) console.log(complaint);
  process.exitCode = complaints.length === 0 ? 0 : 1;
}
