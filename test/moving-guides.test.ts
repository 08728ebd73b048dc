/**
 * The tables of the guides for users of another client are complete: the other client's exports
 * were recorded from its installed package.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import * as client from '@tskeeper/client';

const read = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');

/** Names in the first column of the tables with the head "theirs", without arguments and `new`. */
function namesIn(page: string): Set<string> {
  const rows = [...page.matchAll(/^\| theirs \|[^\n]*\n\|[^\n]*\n((?:\|[^\n]*\n)+)/gm)].flatMap(([, table]) => table!.trim().split('\n'));
  const cells = rows.map((row) => row.split(/(?<!\\)\|/)[1]!);
  const spans = cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, span]) => span!));
  return new Set(
    spans.flatMap((span) => [span.replace(/^new /, '').replace(/\([^()]*\)$/, ''), span.replace(/^on\('(\w+)'.*$/, "on('$1')")]),
  );
}

function missing(page: string, wanted: readonly string[]): string[] {
  const names = namesIn(page);
  return wanted.filter((name) => !names.has(name));
}

type Recorded = Readonly<Record<string, readonly string[]>> & { readonly name: string; readonly version: string };

function recorded(file: string): Recorded {
  return JSON.parse(read(`fixtures/npm-clients/${file}.json`)) as Recorded;
}

describe('the guide for node-zookeeper-client', () => {
  const page = read('docs/guides/moving-from-node-zookeeper-client.md');
  const theirs = recorded('node-zookeeper-client-1.1.3');

  it('names the version that it covers', () => {
    expect(page).toContain(`\`${theirs.name}\` ${theirs.version}`);
  });

  it.each([
    ['exports', theirs['exports']!.filter((name) => theirs[name] === undefined)],
    ['options', theirs['options']!],
    ['calls', theirs['client']!],
    ['events', theirs['events']!.map((name) => `on('${name}')`)],
    ['parts of a transaction', theirs['transaction']!.map((name) => `transaction().${name}`)],
    ...['ACL', 'Id', 'Permission', 'CreateMode', 'State', 'Event', 'Exception'].map(
      (name) => [`members of ${name}`, theirs[name]!.map((member) => `${name}.${member}`)] as [string, readonly string[]],
    ),
  ])('lists all %s', (_, wanted) => {
    expect(missing(page, wanted)).toEqual([]);
  });
});

describe('the guide for zookeeper', () => {
  const page = read('docs/guides/moving-from-zookeeper.md');
  const theirs = recorded('zookeeper-7.3.0');

  it('names the version that it covers', () => {
    expect(page).toContain(`\`${theirs.name}\` ${theirs.version}`);
  });

  it.each([
    ['options', theirs['options']!],
    ['calls and properties', theirs['client']!],
    ['events', theirs['events']!.map((name) => `on('${name}')`)],
    ['statics', theirs['statics']!.map((name) => `ZooKeeper.${name}`)],
    ['constants', theirs['constants']!],
  ])('lists all %s', (_, wanted) => {
    expect(missing(page, wanted)).toEqual([]);
  });
});

describe('the columns of the guides', () => {
  it('are checked for missing names', () => {
    expect(
      missing("| theirs | here |\n| --- | --- |\n| `a(b)`, `new C(d)` | `e` |\n| `on('f', g)`, `h`: 1 | |\n", [
        'a',
        'C',
        "on('f')",
        'h',
        'e',
      ]),
    ).toEqual(['e']);
  });

  it.each(['moving-from-node-zookeeper-client', 'moving-from-zookeeper'])('name only exports of the client, in %s', (name) => {
    const page = read(`docs/guides/${name}.md`);
    const exported = [...page.matchAll(/`(Perms|op)\.(\w+)/g)].map(([, object, member]) => [object!, member!] as const);
    const all = client as unknown as Readonly<Record<string, Readonly<Record<string, unknown>>>>;
    expect(exported.length).toBeGreaterThan(5);
    expect(exported.filter(([object, member]) => all[object]?.[member] === undefined)).toEqual([]);
    const plain = ['openAcl', 'creatorAcl', 'readOnlyAcl', 'formatSessionId'];
    expect(plain.filter((each) => !page.includes(`\`${each}\``) || all[each] === undefined)).toEqual([]);
  });
});
