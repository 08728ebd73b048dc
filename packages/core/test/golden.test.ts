/**
 * Golden scripts of the core in `golden/*.txt`: lines of input, `----`, and the output.
 * `npm run golden -- --write` writes the output again; a reader then reviews the difference. A line
 * `# rows: C3-17 C3-18` names the rows of docs/reference/behaviour that the script verifies.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Script } from './support/script.ts';

const folder = join(import.meta.dirname, 'golden');
const write = process.env['GOLDEN_WRITE'] === '1';

interface Block {
  readonly comment: string[];
  readonly input: string[];
  readonly output: string[];
}

function parse(text: string): Block[] {
  return text
    .split(/\n\n+/)
    .filter((block) => block.trim() !== '')
    .map((block) => {
      const lines = block.split('\n').filter((line) => line !== '');
      const comment = lines.filter((line) => line.startsWith('#'));
      const rest = lines.filter((line) => !line.startsWith('#'));
      const cut = rest.indexOf('----');
      return { comment, input: cut === -1 ? rest : rest.slice(0, cut), output: cut === -1 ? [] : rest.slice(cut + 1) };
    });
}

function render(blocks: readonly Block[]): string {
  return `${blocks.map(({ comment, input, output }) => [...comment, ...input, '----', ...output].join('\n')).join('\n\n')}\n`;
}

/** The first lines of a script may set options: `# options: {"extendedTypesEnabled": true}`. */
function optionsOf(text: string): object {
  const line = /^# options: (.*)$/m.exec(text)?.[1];
  return line === undefined ? {} : (JSON.parse(line) as object);
}

/** The rows that a script verifies, as the beginning of its title. */
function rowsOf(text: string): string {
  const rows = [...text.matchAll(/^# rows: (.*)$/gm)].flatMap(([, ids]) => ids!.trim().split(/\s+/));
  return rows.length === 0 ? '' : `${[...new Set(rows)].join(', ')}: `;
}

describe('a golden script gives its recorded output', () => {
  for (const name of readdirSync(folder).filter((file) => file.endsWith('.txt'))) {
    const text = readFileSync(join(folder, name), 'utf8');
    it(`${rowsOf(text)}${name.slice(0, -'.txt'.length).replaceAll('-', ' ')}`, () => {
      const script = new Script(optionsOf(text));
      const blocks = parse(text);
      const received = blocks.map((block) => ({ ...block, output: block.input.flatMap((line) => script.run(line)) }));
      if (write) writeFileSync(join(folder, name), render(received));
      else expect(render(received)).toBe(render(blocks));
      expect(received.length).toBeGreaterThan(0);
    });
  }
});
