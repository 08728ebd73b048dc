/**
 * docs/reference/logging.md, the table of events in the code, and the lines that the code writes
 * are the same list.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { logEvents } from '@tskeeper/runtime';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const page = readFileSync(join(root, 'docs/reference/logging.md'), 'utf8');

type Rows = Readonly<Record<string, { readonly level: string; readonly fields: readonly string[] }>>;

const codeOf = (cell: string): string[] => [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name!);
const cellsOf = (text: string): string[][] => text.split('\n').map((line) => line.split('|').map((cell) => cell.trim()));

/** The events that a page documents: rows of four cells, the first of which names an event. */
function documented(text: string): [string, string, string[]][] {
  return cellsOf(text)
    .filter((cells) => cells.length === 6 && /^`[a-z-]+\.[a-z-]+`$/.test(cells[1]!))
    .map(([, name, level, fields]) => [name!.slice(1, -1), level!, codeOf(fields!)]);
}

function known(events: Rows): [string, string, readonly string[]][] {
  return Object.entries(events).map(([name, { level, fields }]) => [name, level, fields]);
}

/** Level and event of each line that a source writes, where both are literals. */
function written(source: string): string[] {
  const parts = source.split(/\.(debug|info|warn|error)\(/);
  const found: string[] = [];
  for (let at = 1; at < parts.length; at += 2) {
    const [, event] = /\bevent: '([a-z.-]+)'/.exec(parts[at + 1]!) ?? [];
    if (event !== undefined) found.push(`${parts[at]} ${event}`);
  }
  return found;
}

const sources = ['runtime', 'server', 'cli']
  .map((name) => join(root, 'packages', name, 'src'))
  .flatMap((folder) => readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path)))
  .filter((path) => path.endsWith('.ts') && !path.endsWith('log-events.ts'))
  .map((path) => readFileSync(path, 'utf8'));

describe('docs/reference/logging.md', () => {
  it('lists every event with its level and fields, in the order of the code, and no other', () => {
    expect(documented(page)).toEqual(known(logEvents));
  });

  it('fails the comparison with a missing event, an invented one, a wrong level or a wrong field', () => {
    const rows = known(logEvents);
    expect(documented(page.replace(/^\| `session.moved`.*\n/m, ''))).not.toEqual(rows);
    expect(documented(`${page}\n| \`session.invented\` | info |  | x |\n`)).not.toEqual(rows);
    expect(documented(page.replace('`session.moved` | info', '`session.moved` | warn'))).not.toEqual(rows);
    expect(documented(page.replace('`session`, `timeoutMs`', '`timeoutMs`'))).not.toEqual(rows);
  });

  it('explains every field that some event has, and no other', () => {
    const explained = cellsOf(page)
      .filter((cells) => cells.length === 4 && cells[1]!.startsWith('`'))
      .flatMap((cells) => codeOf(cells[1]!));
    const used = new Set<string>(['sid', ...Object.values(logEvents).flatMap(({ fields }) => [...fields])]);
    expect([...new Set(explained)].sort()).toEqual([...used].sort());
  });

  it('lists exactly the events that the code writes, each at its level', () => {
    const lines = new Set(sources.flatMap(written));
    // These are chosen at run time: opened or resumed, expired or closed; and `log.left-out` has
    // the level of its event.
    for (const line of ['info session.opened', 'info session.resumed', 'info session.expired', 'info session.closed']) lines.add(line);
    lines.delete('warn log.left-out');
    const all = Object.entries(logEvents).filter(([event]) => event !== 'log.left-out');
    expect([...lines].sort()).toEqual(all.map(([event, { level }]) => `${level} ${event}`).sort());
  });
});
