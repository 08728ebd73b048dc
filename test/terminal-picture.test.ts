/**
 * scripts/terminal-picture.js creates the picture in README.md, by hand. These tests compare what
 * can be compared without creating it again; `npm run newcomer` runs the program in it.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { picture, program, shownIn, typed } from '../scripts/terminal-picture.js';

const root = join(import.meta.dirname, '..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const shown: { command: string; printed: string }[] = shownIn(readFileSync(picture, 'utf8'));
const printedBy = (start: string): string => shown.find(({ command }) => command.startsWith(start))!.printed.trim();

it('the picture in README.md shows the commands and the program of the script that makes it', () => {
  expect(shown.map(({ command }) => command)).toEqual(typed.map(({ line }: { line: string }) => line));
  expect(printedBy('cat failover.mjs')).toBe(program.trim());
});

it('the commands in the picture exist, and print what the command line prints', () => {
  const ours = shown.map(({ command }) => command).filter((command) => command.startsWith('tskeeper '));
  const reference = read('docs/reference/cli.md') + read('docs/reference/logging.md');
  for (const command of ours) {
    expect(reference, command).toMatch(new RegExp(`^.*\\b${command.split(' ')[1]!}\\b`, 'm'));
    for (const [option] of command.matchAll(/--[\w-]+/g)) expect(reference, command).toContain(`\`${option}`);
  }
  expect(ours.map((command) => command.split(' ')[1])).toEqual(['serve', 'create', 'get']);
  expect(printedBy('tskeeper create')).toBe('Created /app');
  expect(ours).toContain(`tskeeper create /app '${printedBy('tskeeper get')}'`);
});

it('the figures in the picture are those of README.md', () => {
  const readme = read('README.md');
  const mb = Math.round(Number.parseFloat(printedBy('ps -o rss=')));
  expect(readme).toContain(`its ${mb} MB of memory`);
  expect(Number(/three servers serve: ([\d.]+)ms/.exec(printedBy('node failover.mjs'))![1])).toBeLessThan(500);
  expect(readme).toContain('Three real servers start inside a test within half a second.');
});
