/** docs/reference/cli.md and the command line agree. */
import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { expect, it } from 'vitest';
import { zkCommands } from '../src/commands/zk/table.ts';
import { defineServe, defineSnapshot, defineTxnlog, defineZk, exitCodes, createProgram } from '../src/index.ts';
import { shellCommands } from '../src/zk/shell-commands.ts';
import { FakeTerminal } from './support/fake-terminal.ts';

const page = readFileSync(new URL('../../../docs/reference/cli.md', import.meta.url), 'utf8');

/**
 * The cells of the table after a heading, or after a text in that section, without table headings
 * and code marks.
 */
function rowsBehind(text: string, start: string, header: string): string[][] {
  const section = text.slice(text.indexOf(`\n${start}\n`) + 1);
  const table = section.slice(section.indexOf(`| ${header} |`));
  const rows: string[][] = [];
  for (const line of table.split('\n').slice(2)) {
    if (!line.startsWith('|')) break;
    const cells = line.slice(1, -1).split(/(?<!\\)\|/);
    rows.push(cells.map((cell) => cell.trim().replaceAll('\\|', '|').replaceAll(/^`|`$/g, '')));
  }
  return rows;
}

const program = createProgram(
  new FakeTerminal(),
  [defineServe(() => Promise.reject(new Error('not asked for'))), defineZk, defineTxnlog, defineSnapshot],
  () => undefined,
);

function flagsOf(command: Command): string[] {
  return command.options.filter(({ hidden }) => !hidden).map(({ flags }) => flags);
}

it('cli.md lists every command that talks to a server', () => {
  const commands = zkCommands.map(({ name, usage, summary, jsonShape }) => [name, usage, summary, jsonShape]);
  expect(rowsBehind(page, '## Commands', 'command | usage')).toEqual(commands);
  expect(rowsBehind(page.replace('`sync`', '`snyc`'), '## Commands', 'command | usage')).not.toEqual(commands);
});

it('cli.md lists every option of every command', () => {
  const options = zkCommands.flatMap(({ name, options: own }) =>
    own.map(({ name: option, value, description }) => [name, `-${option}${value === undefined ? '' : ` <${value}>`}`, description]),
  );
  expect(rowsBehind(page, '## Commands', 'command | option')).toEqual(options);
});

it('cli.md lists every command of the shell', () => {
  const commands = shellCommands.map(({ name, usage, summary, jsonShape = '' }) => [name, usage, summary, jsonShape]);
  expect(rowsBehind(page, '## The shell', 'command | usage')).toEqual(commands);
});

it('cli.md lists the options before a command, and their environment variables', () => {
  const rows = rowsBehind(page, '## Options before a command', 'option | environment');
  expect(new Set(rows.map(([flags]) => flags))).toEqual(new Set(flagsOf(program)));
  const variables = program.options.map(({ envVar }) => envVar).filter((name) => name !== undefined);
  // The command itself reads the identities, since commander reads no lists from a variable.
  expect(new Set(rows.map(([, variable]) => variable).filter((name) => name !== ''))).toEqual(new Set([...variables, 'TSKEEPER_AUTH']));
});

it('cli.md lists the options of each file tool', () => {
  const tools = ['txnlog', 'snapshot'].flatMap((group) => program.commands.find((command) => command.name() === group)!.commands);
  expect(tools).toHaveLength(5);
  for (const tool of tools) {
    const heading = `### \`tskeeper ${tool.parent!.name()} ${tool.name()}\``;
    expect(page).toContain(heading);
    expect([heading, rowsBehind(page, heading, 'option').map(([flags]) => flags)]).toEqual([heading, flagsOf(tool)]);
  }
  expect(page.match(/^### /gm)).toHaveLength(tools.length);
});

it('cli.md lists every exit code', () => {
  const codes = rowsBehind(page, '## Exit codes', 'code').map(([code]) => Number(code));
  expect(codes).toEqual(Object.values(exitCodes).toSorted((a, b) => a - b));
});
