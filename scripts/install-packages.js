#!/usr/bin/env node
/**
 * `npm run packages`: packs all packages, and installs them into a project, for as long as no
 * registry has them.
 *
 *   npm run packages                                  packs, and prints the paths of the tarballs
 *   npm run packages -- ../my-app                     ... and installs all of them into ../my-app
 *   npm run packages -- ../my-app client recipes      ... or only these and what they need
 *   npm run packages -- ../my-app testing --save-dev  ... among the devDependencies
 *
 * The tarballs are copied into the project, to vendor/tskeeper, so that `npm ci` finds them on
 * other machines too. If the folder does not exist or has no package.json, it becomes a project of
 * ES modules.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packAll, withSiblings } from './pack.js';

const vendored = join('vendor', 'tskeeper');

/**
 * Installs packages into the project in `folder`, which is created if necessary. Passes `npmArgs`
 * to npm.
 */
export function installInto(folder, packed, npmArgs = []) {
  makeProject(folder);
  const destination = join(folder, vendored);
  mkdirSync(destination, { recursive: true });
  const tarballs = packed.map(({ tarball }) => {
    const copy = join(destination, basename(tarball));
    cpSync(tarball, copy);
    return `./${relative(folder, copy).replaceAll('\\', '/')}`;
  });
  forget(folder, packed);
  const args = ['install', '--no-audit', '--no-fund', ...npmArgs, ...tarballs];
  const { status } = spawnSync('npm', args, { cwd: folder, stdio: ['ignore', 2, 2], shell: process.platform === 'win32' });
  if (status !== 0) throw new Error(`npm install failed in ${folder}: see its output above, then run this command again.`);
}

function makeProject(folder) {
  mkdirSync(folder, { recursive: true });
  const manifest = join(folder, 'package.json');
  if (existsSync(manifest)) return;
  writeFileSync(manifest, `${JSON.stringify({ private: true, type: 'module' }, null, 2)}\n`);
}

/**
 * Removes the packages of an earlier pack from the project. They have the same version, so npm
 * would keep the installed ones, or reject the tarball because of the checksum in the lockfile.
 */
function forget(folder, packed) {
  const names = packed.map(({ name }) => `node_modules/${name}`);
  for (const name of names) rmSync(join(folder, name), { recursive: true, force: true });
  for (const lockfile of ['package-lock.json', 'node_modules/.package-lock.json'].map((path) => join(folder, path))) {
    if (!existsSync(lockfile)) continue;
    const lock = JSON.parse(readFileSync(lockfile, 'utf8'));
    for (const name of names) delete lock.packages?.[name];
    writeFileSync(lockfile, `${JSON.stringify(lock, null, 2)}\n`);
  }
}

/**
 * The packages with these names, which are those of folders or of packages. All packages without a
 * name.
 */
export function chosen(all, names) {
  if (names.length === 0) return all;
  const wanted = names.map((name) => {
    const found = all.find((each) => each.folder === name || each.name === name);
    if (found === undefined) throw new Error(`Unknown package ${name}. Packages are: ${all.map(({ folder }) => folder).join(', ')}.`);
    return found;
  });
  return withSiblings(all, wanted);
}

function main(words) {
  const [folder, ...names] = words.filter((word) => !word.startsWith('-'));
  const npmArgs = words.filter((word) => word.startsWith('-'));
  const packed = packAll();
  if (folder === undefined) {
    for (const { tarball } of packed) console.log(tarball);
    return;
  }
  // npm runs scripts in the root of the workspace; a relative path is relative to the folder of the
  // user's shell.
  const project = resolve(process.env.INIT_CWD ?? process.cwd(), folder);
  const installed = chosen(packed, names);
  installInto(project, installed, npmArgs);
  console.log(`Installed in ${project}: ${installed.map(({ name }) => name).join(', ')}.`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    main(process.argv.slice(2));
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
}
