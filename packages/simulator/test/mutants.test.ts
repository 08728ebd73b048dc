/**
 * `npm run sim:mutants` and `npm run explore` show that each mutant is caught. This test checks
 * that each mutant still fits its source file.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { isFull } from '../../../test/breadth.ts';
import { transpile, applyMutant, mutants } from '../src/internal.ts';

const root = new URL('../../../', import.meta.url);
const mutant = { description: '', origin: '', file: 'x.ts', original: 'b', replacement: 'c' };

describe('a mutant', () => {
  test('whose text is missing in the source or occurs twice is an error', () => {
    expect(applyMutant('abd', mutant)).toBe('acd');
    expect(() => applyMutant('ad', mutant)).toThrow('x.ts does not contain the text that the mutant replaces');
    expect(() => applyMutant('abab', mutant)).toThrow('x.ts contains the text that the mutant replaces more than once');
  });

  test.each(Object.entries(mutants))('%s changes the compiled source', (_name, each) => {
    const source = readFileSync(fileURLToPath(new URL(each.file, root)), 'utf8');
    const altered = applyMutant(source, each);
    // Compiling takes most of the time.
    if (isFull) expect(transpile(altered)).not.toBe(transpile(source));
    else expect(altered).not.toBe(source);
  });
});
