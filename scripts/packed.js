#!/usr/bin/env node
/**
 * What npm would publish of each package, judged as a user gets it: publint and are-the-types-wrong over the packed files, nothing in them that
 * is of no use to a user, and a program that compiles against all of them with nothing skipped.
 *
 *   node scripts/packed.js
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { publicPackages, root } from './public-packages.js';

const folder = join(root, '.cache', 'packed');

/** ES modules only, so what CommonJS and resolvers older than `exports` make of a package is no fault (profile esm-only of its command line). */
const ignoredResolutions = new Set(['node10', 'node16-cjs']);

/** Files of a package that only its maker has a use for. */
export function needlessFiles(paths) {
  return paths.filter((path) => /(?:^|\/)test\/|\.tsbuildinfo$|\.test\.|(?:^|\/)tsconfig/.test(path));
}

function pack(packages) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const workspaces = packages.flatMap(({ manifest }) => ['-w', manifest.name]);
  const args = ['pack', ...workspaces, '--pack-destination', folder, '--json', '--ignore-scripts'];
  const { status, stdout, stderr } = spawnSync('npm', args, { cwd: root, encoding: 'utf8', shell: process.platform === 'win32' });
  if (status !== 0) throw new Error(`npm pack failed: ${stderr}`);
  return JSON.parse(stdout);
}

async function complaintsOf({ name, filename, files }) {
  const bytes = readFileSync(join(folder, filename));
  const paths = files.map(({ path }) => path);
  const complaints = needlessFiles(paths).map((path) => `${path} is of no use to a user`);
  if (!paths.includes('README.md')) complaints.push('README.md is missing');

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

/** A program beside the unpacked packages imports each of them: as a user's compiler sees them, declarations included. */
function compileAgainst(packed) {
  const program = join(folder, 'program');
  for (const { name, filename } of packed) {
    const home = join(program, 'node_modules', ...name.split('/'));
    mkdirSync(home, { recursive: true });
    const { status, stderr } = spawnSync('tar', ['-xzf', join(folder, filename), '-C', home, '--strip-components=1'], { encoding: 'utf8' });
    if (status !== 0) throw new Error(`tar failed: ${stderr}`);
  }
  // What they depend on besides, as npm would put it there.
  for (const dependency of new Set(packed.flatMap(({ dependencies }) => dependencies))) {
    const home = join(program, 'node_modules', ...dependency.split('/'));
    mkdirSync(join(home, '..'), { recursive: true });
    symlinkSync(join(root, 'node_modules', dependency), home, 'dir');
  }
  const lines = packed.map(({ name }, at) => `import * as package${at} from '${name}';\nconsole.log(Object.keys(package${at}).length);`);
  writeFileSync(join(program, 'program.ts'), `${lines.join('\n')}\n`);
  cpSync(join(root, 'scripts', 'packed.tsconfig.json'), join(program, 'tsconfig.json'));
  const compiler = join(root, 'node_modules', 'typescript-7', 'bin', 'tsc');
  const { status, stdout } = spawnSync(process.execPath, [compiler, '-p', program], { encoding: 'utf8' });
  if (status !== 0) return [`a program that imports the packed packages does not compile:\n${stdout}`];
  const run = spawnSync(process.execPath, [join(program, 'program.js')], { cwd: program, encoding: 'utf8' });
  return run.status === 0 ? [] : [`a program that imports the packed packages does not run:\n${run.stderr}`];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const packages = publicPackages();
  const packed = pack(packages);
  const siblings = new Set(packages.map(({ manifest }) => manifest.name));
  const complaints = [];
  for (const each of packed) complaints.push(...(await complaintsOf(each)));
  const withDependencies = packed.map((each) => {
    const { manifest } = packages.find((one) => one.manifest.name === each.name);
    return { ...each, dependencies: Object.keys(manifest.dependencies ?? {}).filter((name) => !siblings.has(name)) };
  });
  complaints.push(...compileAgainst(withDependencies));
  for (const complaint of complaints) console.log(complaint);
  process.exitCode = complaints.length === 0 ? 0 : 1;
}
