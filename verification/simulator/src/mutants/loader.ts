/**
 * Replaces one compiled file by a mutant before any module imports it: changes the source, strips
 * its types as the build does, and serves the result to the import.
 */
import { register } from 'node:module';
import { applyMutant } from './apply-mutant.ts';
import type { Mutation } from './loader-hooks.ts';
import { mutants } from './mutants.ts';
import { packageSymbols } from './source-symbols.ts';
import { transpile } from './transpile.ts';

const root = new URL('../../../../', import.meta.url);

/** The module that `node --import` names calls this. */
export function loadMutant(name: string): void {
  const mutant = mutants[name];
  if (mutant === undefined) throw new Error(`unknown mutant ${name}; use one of ${Object.keys(mutants).join(', ')}`);
  const mutated = applyMutant(name, mutant, packageSymbols());
  const url = new URL(mutated.file.replace('/src/', '/dist/').replace(/\.ts$/, '.js'), root).href;
  const data: Mutation = { url, source: transpile(mutated.source, `mutant ${name}: ${mutant.symbol} (${mutated.file})`) };
  register('./loader-hooks.js', { parentURL: import.meta.url, data });
}
