/**
 * Compiles the programs in C and Java into the cache, once per version of their source and their
 * dependencies.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';

import { cacheFolder, type JavaProgram, type CLibrary, repositoryFolder } from '../../../../scripts/foreign-programs.js';

const run = promisify(execFile);

/** Runs `compile` in a folder that gets its final name only when it is complete. */
export async function buildOnce(
  name: string,
  sources: readonly string[],
  built: string,
  compile: (folder: string) => Promise<unknown>,
): Promise<string> {
  const hash = createHash('sha256').update(built);
  for (const source of sources) hash.update(await readFile(source));
  const folder = path.join(cacheFolder, 'drivers', `${name}-${hash.digest('hex').slice(0, 12)}`);
  if (existsSync(folder)) return folder;
  const unfinished = `${folder}.${process.pid}.tmp`;
  await mkdir(unfinished, { recursive: true });
  try {
    await compile(unfinished);
    if (!existsSync(folder)) await rename(unfinished, folder);
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
  return folder;
}

/**
 * `program` is the class with `main`, and the file in verification/interop/java; `parts` are its
 * other classes.
 */
export async function buildJavaProgram(program: string, peer: JavaProgram, parts: readonly string[] = []): Promise<string> {
  const sources = [program, ...parts].map((name) => path.join(repositoryFolder, 'verification', 'interop', 'java', `${name}.java`));
  return buildOnce(program, sources, peer.classpath, (folder) =>
    run('javac', ['-nowarn', '-d', folder, '-cp', peer.classpath, ...sources]),
  );
}

export async function buildCDriver({ include, library }: CLibrary): Promise<string> {
  const source = path.join(repositoryFolder, 'verification', 'interop', 'c', 'c_driver.c');
  const warnings = ['-std=gnu11', '-Wall', '-Wextra', '-Werror'];
  const libraries = [`-L${library}`, `-Wl,-rpath,${library}`, '-lzookeeper_mt', '-lpthread'];
  const folder = await buildOnce('c', [source], library, (target) =>
    run('gcc', [...warnings, '-O1', '-DTHREADED', `-I${include}`, '-o', path.join(target, 'c_driver'), source, ...libraries]),
  );
  return path.join(folder, 'c_driver');
}
