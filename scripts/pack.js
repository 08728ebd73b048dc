/**
 * Packs the packages as npm publishes them: one complete tarball per public package.
 *
 * A package is staged first, in .cache/packages/<folder>, and packed from there, because a package
 * folder of this repository is not what a user needs: it has no LICENSE, its README links into the
 * repository, and its manifest has a condition for the sources. Uses only Node's own modules and
 * npm.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { publicPackages, root } from './public-packages.js';

const workspace = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** Folder of the tarballs, and of the staged packages. */
export const packedFolder = join(root, '.cache', 'packages');

/**
 * Fields of a manifest that matter only in this repository. All others are published, as the
 * package's code may read them.
 */
const unpublished = ['private', 'scripts', 'files', 'devDependencies'];

/**
 * The manifest of a staged package: without the fields for this repository only, and with the
 * addresses in the manifest of the workspace.
 */
export function stagedManifest(manifest, folderName, { homepage, bugs, repository } = workspace) {
  const staged = Object.fromEntries(Object.entries(manifest).filter(([field]) => !unpublished.includes(field)));
  const directory = `packages/${folderName}`;
  const addresses = {
    homepage: `${homepage}/tree/HEAD/${directory}#readme`,
    bugs,
    repository: { ...repository, directory },
  };
  return { ...staged, ...addresses, exports: withoutSources(staged.exports) };
}

/** `exports` without the condition that lets tests of this repository find sources. */
function withoutSources(exported) {
  if (typeof exported !== 'object') return exported;
  const kept = Object.entries(exported).filter(([condition]) => condition !== 'tskeeper-source');
  return Object.fromEntries(kept.map(([condition, target]) => [condition, withoutSources(target)]));
}

/** `](docs/x.md)`, and neither `](https://...)` nor `](#title)`. */
const relativeLink = /\]\((?![a-z]+:|#)([^)\s]+)\)/g;

/** A page of the folder `directory` with each relative link made absolute. Code is unchanged. */
export function withAbsoluteLinks(page, directory, homepage = workspace.homepage) {
  const absolute = (target) => `${homepage}/blob/HEAD/${posix.join(directory, target)}`;
  const linked = (text) => text.replaceAll(relativeLink, (_, target) => `](${absolute(target)})`);
  return page
    .split(/(^```[\s\S]*?^```$)/m)
    .map((part) => (part.startsWith('```') ? part : linked(part)))
    .join('');
}

/** Whether a file of dist/ belongs to the package: its source still exists. */
function isCompiled(folder, path) {
  const source = path.replace(/\.d\.ts$|\.js$/, '.ts');
  return source !== path && existsSync(join(folder, 'src', source));
}

function stage({ name, folder, manifest }) {
  const staged = join(packedFolder, name);
  mkdirSync(staged, { recursive: true });
  writeFileSync(join(staged, 'package.json'), `${JSON.stringify(stagedManifest(manifest, name), null, 2)}\n`);
  writeFileSync(join(staged, 'README.md'), withAbsoluteLinks(readFileSync(join(folder, 'README.md'), 'utf8'), `packages/${name}`));
  cpSync(join(root, 'LICENSE'), join(staged, 'LICENSE'));
  const dist = readdirSync(join(folder, 'dist'), { recursive: true, encoding: 'utf8' });
  for (const path of dist.filter((each) => isCompiled(folder, each))) {
    mkdirSync(dirname(join(staged, 'dist', path)), { recursive: true });
    cpSync(join(folder, 'dist', path), join(staged, 'dist', path));
  }
  if (manifest.bin !== undefined) cpSync(join(folder, 'bin'), join(staged, 'bin'), { recursive: true });
  return staged;
}

/**
 * Stages and packs all public packages, as built.
 *
 * @returns one object per package: `folder` (its name in packages/), `name`, `manifest` as packed,
 * `tarball` (a path) and `files` (paths in it)
 */
export function packAll() {
  const packages = publicPackages();
  rmSync(packedFolder, { recursive: true, force: true });
  const staged = packages.map(stage);
  const args = ['pack', ...staged, '--pack-destination', packedFolder, '--json', '--ignore-scripts'];
  const { status, stdout, stderr } = spawnSync('npm', args, { cwd: root, encoding: 'utf8', shell: process.platform === 'win32' });
  if (status !== 0) throw new Error(`npm pack failed: ${stderr}`);
  const packed = new Map(JSON.parse(stdout).map((each) => [each.name, each]));
  return packages.map(({ name: folder, manifest }) => {
    const { name, filename, files } = packed.get(manifest.name);
    return {
      folder,
      name,
      manifest: stagedManifest(manifest, folder),
      tarball: join(packedFolder, filename),
      files: files.map(({ path }) => path),
    };
  });
}

/** These packages, and the packages of this repository that they need. */
export function withSiblings(all, wanted) {
  const found = new Set();
  const add = (each) => {
    if (found.has(each)) return;
    found.add(each);
    for (const name of Object.keys(each.manifest.dependencies ?? {})) {
      const sibling = all.find((one) => one.name === name);
      if (sibling !== undefined) add(sibling);
    }
  };
  wanted.forEach(add);
  return all.filter((each) => found.has(each));
}
