/**
 * Reads the promises of docs/reference/behaviour/ and the tests that have their ids. `npm run
 * promise` prints them, and test/behaviour-reference.test.ts compares them.
 *
 * The title of a test begins with ids (`C3-17, C3-18: ...`). In a golden story a line `# rows:
 * C3-17 C3-18` belongs to its block, and a check of the conformance suite lists its ids as
 * `behaviourIds`.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
export const pagesFolder = 'docs/reference/behaviour';
/** The checks are sources, because the conformance suite is published; they count as tests. */
export const checksFolder = 'packages/conformance/src/checks';
/** Its examples have titles that are not tests. */
const ownTest = 'test/behaviour-reference.test.ts';

/**
 * @typedef {{ readonly path: string, readonly text: string }} TextFile with a path from the root of
 * the repository
 */
/**
 * @typedef {{ readonly id: string, readonly promise: string, readonly path: string,
 * readonly chapter: string }} Row
 */
/** @typedef {{ readonly id: string, readonly what: string, readonly path: string }} Unbuilt */
/**
 * @typedef {{ readonly id: string, readonly title: string, readonly path: string,
 * readonly line: number }} Test
 */

const id = String.raw`(?:A|B|D|E|F|C\d-)\d+a?`;
const row = new RegExp(String.raw`^\| (${id}) \| (.+) \|$`);
const unbuiltItem = new RegExp(String.raw`^- (${id}(?:, ${id})*): (.+)$`, 'gm');
const titleOfTest = new RegExp(String.raw`(['"\x60])(${id}(?:, ${id})*): ((?:\\.|(?!\1)[^\\\n])*)`, 'g');
const idsAtStart = new RegExp(`^${id}(?:, ${id})*: `);
const groupTitle = /^ *describe(?:\.\w+)*\((?:.*\)\()?(['"`])((?:\\.|(?!\1)[^\\])*)\1/;
const rowsOfStory = new RegExp(String.raw`^# rows: (${id}(?: ${id})*)$`, 'gm');
const rowsOfCheck = new RegExp(String.raw`behaviourIds: \[('${id}'(?:, '${id}')*)\]`, 'g');

/**
 * @param {string} folder
 * @param {(name: string) => boolean} isWanted
 * @returns {TextFile[]}
 */
function filesIn(folder, isWanted) {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .map((name) => name.replaceAll('\\', '/'))
    .filter(isWanted)
    .sort()
    .map((name) => ({ path: `${folder}/${name}`, text: readFileSync(join(root, folder, name), 'utf8') }));
}

export function readPages() {
  return filesIn(pagesFolder, (name) => name.endsWith('.md'));
}

export function readTestFiles() {
  const folders = [...readdirSync(join(root, 'packages')).map((name) => `packages/${name}/test`), 'verification', 'test'];
  const tests = folders.flatMap((folder) => filesIn(folder, (name) => /\.(?:test|process)\.ts$|golden\/.*\.txt$/.test(name)));
  return [...tests.filter(({ path }) => path !== ownTest), ...filesIn(checksFolder, (name) => name.endsWith('.ts'))];
}

/**
 * The rows of the tables, in the order of the pages.
 *
 * @param {readonly TextFile[]} pages
 * @returns {Row[]}
 */
export function rowsOf(pages) {
  return pages.flatMap(({ path, text }) => {
    let chapter = '';
    return text.split('\n').flatMap((line) => {
      chapter = /^#+ (.+)$/.exec(line)?.[1] ?? chapter;
      const [, one, promise] = row.exec(line) ?? [];
      return one === undefined || promise === undefined ? [] : [{ id: one, promise, path, chapter }];
    });
  });
}

/**
 * The items of the list of features that are not built.
 *
 * @param {readonly TextFile[]} pages
 * @returns {Unbuilt[]}
 */
export function unbuiltOf(pages) {
  return pages.flatMap(({ path, text }) =>
    [...text.matchAll(unbuiltItem)].flatMap(([, ids = '', what = '']) => ids.split(', ').map((one) => ({ id: one, what, path }))),
  );
}

/**
 * The tests that have ids: one entry for each id of each test.
 *
 * @param {readonly TextFile[]} files
 * @returns {Test[]}
 */
export function testsOf(files) {
  return files.flatMap(({ path, text }) => {
    const found = path.endsWith('.txt') ? inStory(path, text) : path.startsWith(checksFolder) ? inChecks(text) : inTests(text);
    return found.flatMap(({ ids, title, at }) => {
      const line = text.slice(0, at).split('\n').length;
      return [...ids.matchAll(new RegExp(id, 'g'))].map(([one]) => ({ id: one, title, path, line }));
    });
  });
}

/**
 * Titles include those of the enclosing groups, as the reporters of vitest print them. Relies on
 * the formatter: the content of a group is indented further.
 *
 * @param {string} text
 */
function inTests(text) {
  return [...text.matchAll(titleOfTest)].map(({ 2: ids = '', 3: title = '', index: at }) => {
    const titles = [title];
    const lines = text.slice(0, at).split('\n');
    let indent = indentOf(lines.pop() ?? '');
    for (const line of lines.toReversed()) {
      const group = groupTitle.exec(line)?.[2];
      if (group === undefined || indentOf(line) >= indent) continue;
      indent = indentOf(line);
      titles.unshift(group.replace(idsAtStart, ''));
    }
    return { ids, title: titles.map(unescaped).join(' > '), at };
  });
}

/** @param {string} line */
function indentOf(line) {
  return line.length - line.trimStart().length;
}

/** @param {string} text */
function unescaped(text) {
  return text.replaceAll(/\\(.)/g, '$1');
}

/**
 * The title of a block is its comment, or else the name of the story.
 *
 * @param {string} path
 * @param {string} text
 */
function inStory(path, text) {
  return [...text.matchAll(rowsOfStory)].map(({ 1: ids = '', index: at }) => {
    const block =
      text
        .slice(text.lastIndexOf('\n\n', at) + 1)
        .trimStart()
        .split('\n\n', 1)[0] ?? '';
    const comment = [...block.matchAll(/^# (?!\w+: [[{A-F])(.+)$/gm)].map(([, words]) => words);
    return { ids, title: comment.join(' ') || path.replace(/^.*\/|\.txt$/g, '').replaceAll('-', ' '), at };
  });
}

/** @param {string} text */
function inChecks(text) {
  return [...text.matchAll(rowsOfCheck)].map(({ 1: ids = '', index: at }) => {
    const before = text.slice(0, at);
    const name = [...before.matchAll(/\bname: '([^']+)'/g)].at(-1)?.[1] ?? '';
    const [, , title = ''] = [...before.matchAll(/\btitle:\s+(['"`])((?:\\.|(?!\1)[^\\])*)\1/g)].at(-1) ?? [];
    return { ids, title: `${name}: ${unescaped(title)}`, at };
  });
}
