/** That each mutant is caught, `npm run sim:zoo` and `npm run explore` show; here, that each still has its place in the source, and still runs. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { isFull } from '../../../test/breadth.ts';
import { compiled, mutated, zoo } from '../src/internal.ts';

const root = new URL('../../../', import.meta.url);
const mutant = { what: '', from: '', file: 'x.ts', replace: 'b', by: 'c' };

describe('a mutant', () => {
  test('whose place in the source is gone, or is there twice, is an error', () => {
    expect(mutated('abd', mutant)).toBe('acd');
    expect(() => mutated('ad', mutant)).toThrow('x.ts no longer has what the mutant replaces');
    expect(() => mutated('abab', mutant)).toThrow('x.ts has what the mutant replaces more than once');
  });

  test.each(Object.entries(zoo))('%s changes what is compiled', (_name, each) => {
    const source = readFileSync(fileURLToPath(new URL(each.file, root)), 'utf8');
    const altered = mutated(source, each);
    // Compiling takes most of the time.
    if (isFull) expect(compiled(altered)).not.toBe(compiled(source));
    else expect(altered).not.toBe(source);
  });
});
