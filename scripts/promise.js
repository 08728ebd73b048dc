#!/usr/bin/env node
/**
 * Prints promises of docs/reference/behaviour/, with the tests that have their ids:
 *
 *   node scripts/promise.js C3-17 A45
 */
import { fileURLToPath } from 'node:url';
import { pagesFolder, readPages, readTestFiles, rowsOf, testsOf, unbuiltOf } from './behaviour.js';

/**
 * The lines to print, and the ids that no page has.
 *
 * @param {readonly string[]} ids
 */
function describePromises(ids) {
  const pages = readPages();
  const [rows, unbuilt, tests] = [rowsOf(pages), unbuiltOf(pages), testsOf(readTestFiles())];
  const lines = ids.flatMap((id) => {
    const row = rows.find((each) => each.id === id);
    const missing = unbuilt.find((each) => each.id === id);
    if (missing !== undefined) return [`${id}: ${missing.what}`, `  not built (${missing.path})`, ''];
    if (row === undefined) return [];
    const own = tests.filter((each) => each.id === id);
    return [
      `${id}: ${row.promise}`,
      `  ${row.path}, ${row.chapter}`,
      ...own.flatMap(({ path, line, title }) => [`  ${path}:${line}`, `    ${title}`]),
      '',
    ];
  });
  return { lines, unknown: ids.filter((id) => ![...rows, ...unbuilt].some((each) => each.id === id)) };
}

function main() {
  const ids = process.argv.slice(2);
  if (ids.length === 0) {
    console.error(`Name ids of promises, as ${pagesFolder}/README.md lists them: npm run promise -- C3-17 A45`);
    process.exitCode = 2;
    return;
  }
  const { lines, unknown } = describePromises(ids);
  if (lines.length > 0) console.log(lines.slice(0, -1).join('\n'));
  for (const id of unknown) console.error(`There is no promise ${id} in ${pagesFolder}.`);
  if (unknown.length > 0) process.exitCode = 2;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main();
