#!/usr/bin/env node
/**
 * Adds to package-lock.json the optional packages of other platforms that npm omitted.
 *
 * npm records only the platform packages that it saw while it created the lockfile (npm issue 4828,
 * or a registry that serves one platform only), and afterwards `npm ci` rejects the file on every
 * machine. The missing entries follow from the names: a native package is named after its operating
 * system, processor and C library. Run this after `npm install` has changed the lockfile; a test in
 * test/ fails if it was forgotten.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const systems = ['android', 'darwin', 'freebsd', 'linux', 'netbsd', 'openbsd', 'openharmony', 'sunos', 'win32', 'aix'];
const processors = ['arm64', 'arm', 'x64', 'ia32', 'ppc64', 'riscv64', 's390x', 'loong64', 'mips64el', 'wasm32'];

/** `@oxlint/binding-linux-arm-musleabihf` -> { os: ['linux'], cpu: ['arm'], libc: ['musl'] } */
export function platformOf(name) {
  const words = name.split(/[/-]/);
  const os = systems.find((system) => words.includes(system));
  const cpu = processors.find((processor) => words.includes(processor));
  const libc =
    os !== 'linux'
      ? undefined
      : words.some((word) => word.startsWith('musl'))
        ? 'musl'
        : words.some((word) => word.startsWith('gnu'))
          ? 'glibc'
          : undefined;
  return { ...(cpu && { cpu: [cpu] }), ...(libc && { libc: [libc] }), ...(os && { os: [os] }) };
}

/** Names of optional packages that a package in the lockfile requires and the lockfile lacks. */
export function missingOptionals(lock) {
  const missing = new Map();
  for (const [place, entry] of Object.entries(lock.packages)) {
    for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
      const nested = `${place}/node_modules/${name}`;
      const hoisted = `node_modules/${name}`;
      if (lock.packages[nested] === undefined && lock.packages[hoisted] === undefined) {
        missing.set(hoisted, { name, version, dev: entry.dev === true });
      }
    }
  }
  return missing;
}

function main() {
  const path = fileURLToPath(new URL('../package-lock.json', import.meta.url));
  const lock = JSON.parse(readFileSync(path, 'utf8'));
  const missing = missingOptionals(lock);
  for (const [place, { name, version, dev }] of missing) {
    if (!/^\d+\.\d+\.\d+/.test(version)) {
      throw new Error(`${name} is required as "${version}", which is not an exact version. Add the package to the lockfile by hand.`);
    }
    lock.packages[place] = { version, ...(dev && { dev: true }), optional: true, ...platformOf(name) };
  }
  const sorted = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
  writeFileSync(path, `${JSON.stringify({ ...lock, packages: sorted }, undefined, 2)}\n`);
  console.log(`package-lock.json: added ${missing.size} packages of other platforms`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main();
