/**
 * The code in guides is code that runs. A page names its program in a comment, `<!-- ...
 * packages/client/test/guide/x.ts, which runs. -->`, and shows all of it, in one piece or in
 * several. A program is itself a test, or a test beside it calls everything it exports.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { Client } from '@tskeeper/client';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (path: string): string => readFileSync(`${root}${path}`, 'utf8');

/** About operating servers: commands instead of a program. */
const operating = [
  'docs/guides/replace-a-zookeeper-server.md',
  'docs/guides/swap-the-servers-of-an-ensemble.md',
  'docs/guides/change-the-servers-of-an-ensemble.md',
  'docs/guides/move-the-leader.md',
];
const index = 'docs/guides/README.md';
const inFolder = (folder: string): string[] =>
  readdirSync(`${root}${folder}`, { recursive: true, encoding: 'utf8' })
    .map((name) => `${folder}/${name.replaceAll('\\', '/')}`)
    .filter((path) => path.endsWith('.md'));
const guides = inFolder('docs/guides').filter((path) => path !== index);
const others = inFolder('docs').filter((path) => !guides.includes(path) && programsOf(read(path)).length > 0);

interface Piece {
  readonly language: string;
  readonly code: string;
}

function piecesOf(page: string): Piece[] {
  return [...page.matchAll(/^```(ts|js)\b[^\n]*\n([\s\S]*?)^```$/gm)].map(([, language, code]) => ({ language: language!, code: code! }));
}

function programsOf(page: string): string[] {
  return [...page.matchAll(/<!--[^>]*?\b([\w./-]+\.(?:ts|js)), which runs\. -->/g)].map(([, path]) => path!);
}

/**
 * Removes code of other libraries, marked by `<!-- For node-zookeeper-client 1.1.3. -->` above it.
 */
function withoutForeign(page: string): string {
  return page.replaceAll(/<!-- For [\w-]+ [\d.]+\. -->\n\n```js\n[\s\S]*?^```$/gm, '');
}

/**
 * The rest of a program without the pieces, which must appear in order; undefined if one is
 * missing.
 */
function leftOf(program: string, pieces: readonly string[]): string | undefined {
  let left = '';
  let rest = program;
  for (const piece of pieces) {
    const at = rest.indexOf(piece);
    if (at < 0 || !(at === 0 || rest[at - 1] === '\n')) return undefined;
    left += rest.slice(0, at);
    rest = rest.slice(at + piece.length);
  }
  return left + rest;
}

/** The comment at the top need not be shown. */
function isHeader(text: string): boolean {
  return text.replace(/^\/\*\*[\s\S]*?\*\/$/m, '').trim() === '';
}

function complaintsOf(path: string, page: string, open: (path: string) => string | undefined): string[] {
  const programs = programsOf(page);
  const pieces = piecesOf(withoutForeign(page));
  if (programs.length === 0)
    return pieces.length === 0 ? [`${path} names no program that runs`] : [`${path} shows code, and names no program that runs`];
  const texts = programs.map((name) => open(name) ?? '');
  const foreign = pieces
    .filter(({ code }) => !texts.some((text) => text.includes(code)))
    .map(({ code }) => `${path}: in no program that it names: ${code.split('\n')[0]}`);
  const unshown = programs.flatMap((name) => {
    const program = open(name);
    if (program === undefined) return [`${path}: there is no ${name}`];
    const shown = pieces.filter(({ language, code }) => name.endsWith(`.${language}`) && program.includes(code));
    const left = leftOf(
      program,
      shown.map(({ code }) => code),
    );
    if (left === undefined) return [`${path}: the pieces of ${name} stand in another order`];
    return isHeader(left) ? notRun(name, program, open) : [`${path}: does not show all of ${name}: ${left.trim().slice(0, 200)}`];
  });
  return [...foreign, ...unshown];
}

function notRun(name: string, program: string, open: (path: string) => string | undefined): string[] {
  if (name.endsWith('.test.ts')) return [];
  const stem = name.replace(/\.(?:ts|js)$/, '');
  const test = open(`${stem}.integration.test.ts`) ?? open(`${stem}.test.ts`);
  if (test === undefined || !test.includes(`'./${name.split('/').at(-1)}'`)) return [`${name}: no test beside it imports it`];
  const exported = [...program.matchAll(/^export (?:async )?(?:function\*?|const|class) (\w+)/gm)].map(([, each]) => each!);
  return exported.filter((each) => !new RegExp(`\\b${each}\\b`).test(test)).map((each) => `${name}: its test does not call ${each}`);
}

/** The section from a heading to the next. */
function sectionOf(page: string, heading: string): string {
  const [, section] = page.split(`\n## ${heading}\n`);
  return section?.split('\n## ')[0] ?? '';
}

const open = (path: string): string | undefined => (existsSync(`${root}${path}`) ? read(path) : undefined);

describe('the check of the guides', () => {
  const page =
    "<!-- All of a/x.ts, which runs. -->\n\n```ts\nimport { a } from 'a';\n```\n\n```ts\n/** One. */\nexport function one() {}\n```\n\n```ts\n/** Two. */\nexport function two() {}\n```\n";
  const program =
    "/** What it is. */\nimport { a } from 'a';\n\n/** One. */\nexport function one() {}\n\n/** Two. */\nexport function two() {}\n";
  const test = "import * as x from './x.ts';\nx.one();\nx.two();\n";
  const files = (more: Record<string, string>) => (path: string) => ({ 'a/x.ts': program, 'a/x.test.ts': test, ...more })[path];

  it('finds code that does not run, that is not shown, and that no test calls', () => {
    expect(complaintsOf('p', page, files({}))).toEqual([]);
    expect(complaintsOf('p', 'Words.', files({}))).toEqual(['p names no program that runs']);
    expect(complaintsOf('p', '```ts\na();\n```\n', files({}))).toEqual(['p shows code, and names no program that runs']);
    expect(complaintsOf('p', page.replaceAll('a/x.ts', 'a/y.ts'), files({}))).toContain('p: there is no a/y.ts');
    expect(complaintsOf('p', page.replace('One.', '1.'), files({}))).toEqual([
      'p: in no program that it names: /** 1. */',
      'p: does not show all of a/x.ts: /** What it is. */\n\n/** One. */\nexport function one() {}',
    ]);
    expect(complaintsOf('p', page.replace("```ts\nimport { a } from 'a';\n```\n\n", ''), files({}))).toEqual([
      "p: does not show all of a/x.ts: /** What it is. */\nimport { a } from 'a';",
    ]);
    expect(complaintsOf('p', page, files({ 'a/x.test.ts': test.replace('x.two', 'x.one') }))).toEqual([
      'a/x.ts: its test does not call two',
    ]);
    expect(complaintsOf('p', page, files({ 'a/x.test.ts': '' }))).toEqual(['a/x.ts: no test beside it imports it']);
  });

  it('allows code for another library if the page marks it', () => {
    expect(complaintsOf('p', `${page}\n<!-- For other-client 1.2.3. -->\n\n\`\`\`js\nnever();\n\`\`\`\n`, files({}))).toEqual([]);
    expect(complaintsOf('p', `${page}\n\`\`\`js\nnever();\n\`\`\`\n`, files({}))).toEqual(['p: in no program that it names: never();']);
  });
});

describe('guides', () => {
  it.each(guides.filter((path) => !operating.includes(path)))('the code in %s is a program that is compiled and run', (path) => {
    expect(complaintsOf(path, read(path), open)).toEqual([]);
  });

  it.each(operating)('%s is about operating servers, and shows commands only', (path) => {
    const page = read(path);
    expect(piecesOf(page)).toEqual([]);
    expect(page).toMatch(/`node_modules\/\.bin\/tskeeper serve/);
    expect(page).not.toMatch(/npx tskeeper serve/);
  });

  it.each(others)('the code in %s is a program that is compiled and run', (path) => {
    expect(complaintsOf(path, read(path), open)).toEqual([]);
  });

  it('the recipes in README.md are a program that is compiled and run, each of at most twenty lines', () => {
    const section = sectionOf(read('README.md'), 'Recipes');
    expect(complaintsOf('README.md', section, open)).toEqual([]);
    const lines = piecesOf(section).map(({ code }) => code.trimEnd().split('\n').length);
    expect(lines.filter((count) => count > 20)).toEqual([]);
  });

  it('have their programs where `npm run check` compiles them', () => {
    const programs = [...guides, ...others].flatMap((path) => programsOf(read(path)));
    expect(programs.length).toBeGreaterThan(8);
    expect(programs.filter((path) => !/^packages\/[^/]+\/test\//.test(path))).toEqual([]);
  });

  it('are all in the index', () => {
    const page = read(index);
    expect(guides.filter((path) => !page.includes(`](${path.slice('docs/guides/'.length)})`))).toEqual([]);
  });

  it('name only methods that the client has', () => {
    const zk: unknown = Client.prototype;
    const known = (name: string): boolean => name in (zk as object);
    expect(known('getData')).toBe(true);
    expect(known('get')).toBe(false);
    const named = (path: string) => [...read(path).matchAll(/\bzk\.(\w+)/g)].map(([, name]) => name!);
    expect(
      [...guides, index].flatMap((path) =>
        named(path)
          .filter((name) => !known(name))
          .map((name) => `${path}: zk.${name}`),
      ),
    ).toEqual([]);
  });
});
