/**
 * Puts a mutant in the place of one compiled file, before anybody imports it. Its source is changed, stripped of its types as the build does
 * it, and handed to whoever asks for the file.
 */
import { readFileSync } from 'node:fs';
import { register } from 'node:module';
import { fileURLToPath } from 'node:url';
import { compiled } from './compiled.ts';
import type { Mutation } from './hooks.ts';
import { mutated } from './mutant.ts';
import { zoo } from './zoo.ts';

const root = new URL('../../../../', import.meta.url);

/** To be called by what `node --import` names. */
export function loadMutant(name: string): void {
  const mutant = zoo[name];
  if (mutant === undefined) throw new Error(`there is no mutant ${name}; there are ${Object.keys(zoo).join(', ')}`);
  const source = compiled(mutated(readFileSync(fileURLToPath(new URL(mutant.file, root)), 'utf8'), mutant));
  const url = new URL(mutant.file.replace('/src/', '/dist/').replace(/\.ts$/, '.js'), root).href;
  const data: Mutation = { url, source };
  register('./hooks.js', { parentURL: import.meta.url, data });
}
