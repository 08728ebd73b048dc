/**
 * Replaces one compiled file by a mutant before any module imports it: changes the source, strips
 * its types as the build does, and serves the result to the import.
 */
import { readFileSync } from 'node:fs';
import { register } from 'node:module';
import { fileURLToPath } from 'node:url';
import { transpile } from './transpile.ts';
import type { Mutation } from './loader-hooks.ts';
import { applyMutant } from './mutant.ts';
import { mutants } from './mutants.ts';

const root = new URL('../../../../', import.meta.url);

/** The module that `node --import` names calls this. */
export function loadMutant(name: string): void {
  const mutant = mutants[name];
  if (mutant === undefined) throw new Error(`unknown mutant ${name}; use one of ${Object.keys(mutants).join(', ')}`);
  const source = transpile(applyMutant(readFileSync(fileURLToPath(new URL(mutant.file, root)), 'utf8'), mutant));
  const url = new URL(mutant.file.replace('/src/', '/dist/').replace(/\.ts$/, '.js'), root).href;
  const data: Mutation = { url, source };
  register('./loader-hooks.js', { parentURL: import.meta.url, data });
}
