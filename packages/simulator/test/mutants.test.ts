/**
 * `npm run sim:zoo` and `npm run explore` show that each mutant is caught. This test checks that
 * each mutant still fits its source file.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { isFull } from '../../../test/breadth.ts';
import { compiled, mutated, zoo } from '../src/internal.ts';

const root = new URL('../../../', import.meta.url);
const mutant = { what: '', from: '', file: 'x.ts', replace: 'b', by: 'c' };

describe('a mutant', () => {
  test('whose text is missing in the source or occurs twice is an error', () => {
    expect(mutated('abd', mutant)).toBe('acd');
    expect(() => mutated('ad', mutant)).toThrow('x.ts does not contain the text that the mutant replaces');
    expect(() => mutated('abab', mutant)).toThrow('x.ts contains the text that the mutant replaces more than once');
  });

  test.each(Object.entries(zoo))('%s changes the compiled source', (_name, each) => {
    const source = readFileSync(fileURLToPath(new URL(each.file, root)), 'utf8');
    const altered = mutated(source, each);
    // Compiling takes most of the time.
    if (isFull) expect(compiled(altered)).not.toBe(compiled(source));
    else expect(altered).not.toBe(source);
  });
});
