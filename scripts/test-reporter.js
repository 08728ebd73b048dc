/**
 * What `npm test` prints: a line for each package with its tests and seconds, and the sum. Of tests
 * that failed it prints everything, as vitest's own reporter does: title, place, message,
 * difference and what the test wrote to the console. For a line for each file: `npx vitest run
 * --reporter=default`.
 */
import { relative } from 'node:path';
import { DefaultReporter } from 'vitest/node';

/** @typedef {{ files: number, passed: number, failed: number, skipped: number, ms: number }} Row */

/** The packages and folders of tests, by the beginning of a path. */
const groupOf = (path) => /^(?:(?:packages|verification)\/[^/]+|test\/[^/]+(?=\/)|[^/]+)/.exec(path.replaceAll('\\', '/'))?.[0] ?? path;

export default class TestReporter extends DefaultReporter {
  printTestModule() {
    // A file is not worth a line; what failed is printed at the end.
  }

  reportTestSummary(files, errors) {
    const modules = this.ctx.state.getTestModules().filter(({ task }) => files.includes(task));
    const seconds = (performance.now() - this.start) / 1000;
    for (const line of summaryOf(modules, this.ctx.config.root, seconds)) this.log(line);
    if (errors.length > 0) this.log(`${errors.length} errors outside of tests, see above`);
  }
}

/**
 * @param {readonly import('vitest/node').TestModule[]} modules
 * @param {string} root of the repository
 * @param {number} seconds that all of it took
 * @returns {string[]} lines
 */
export function summaryOf(modules, root, seconds) {
  /** @type {Map<string, Row>} */
  const rows = new Map();
  const total = emptyRow();
  for (const module of modules) {
    const name = groupOf(relative(root, module.moduleId));
    const row = rows.get(name) ?? emptyRow();
    rows.set(name, row);
    for (const each of [row, total]) addTo(each, module);
  }
  const width = Math.max(0, ...[...rows.keys()].map(({ length }) => length));
  const lines = [...rows].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([name, row]) => lineOf(name.padEnd(width), row));
  const { passed, failed, skipped } = total;
  return ['', ...lines, '', `${passed} passed, ${failed} failed, ${skipped} skipped in ${total.files} files, ${seconds.toFixed(0)} s`];
}

/** @returns {Row} */
function emptyRow() {
  return { files: 0, passed: 0, failed: 0, skipped: 0, ms: 0 };
}

/** @param {Row} row @param {import('vitest/node').TestModule} module */
function addTo(row, module) {
  row.files++;
  // A file that cannot be loaded has failed without a failed test.
  let failed = 0;
  for (const test of module.children.allTests()) {
    const { state } = test.result();
    if (state === 'passed') row.passed++;
    else if (state === 'failed') failed++;
    else row.skipped++;
  }
  row.failed += failed === 0 && module.state() === 'failed' ? 1 : failed;
  row.ms += module.diagnostic().duration;
}

/** @param {string} name @param {Row} row */
function lineOf(name, { passed, failed, skipped, ms }) {
  const sign = failed > 0 ? '!' : '✓';
  const rest = `${failed > 0 ? `, ${failed} FAILED` : ''}${skipped > 0 ? `, ${skipped} skipped` : ''}`;
  return ` ${sign} ${name} ${String(passed).padStart(5)} passed ${(ms / 1000).toFixed(1).padStart(6)} s${rest}`;
}
