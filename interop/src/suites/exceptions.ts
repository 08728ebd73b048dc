/**
 * The tests of foreign suites that tskeeper does not pass, each with the reason, and how results are counted against that list.
 *
 * The list holds in both directions: a test outside of it has to pass, and one that passes has to leave the list.
 */
import type { Report } from '../report.ts';

/** `detail` says why the test did not pass; undefined when it passed. */
export interface SuiteResult {
  readonly test: string;
  readonly detail: string | undefined;
}

/** Names of tests, or of groups of tests where they end with `*`, to the reason why they do not pass. */
export type Exceptions = ReadonlyMap<string, string>;

export function reasonFor(test: string, exceptions: Exceptions): string | undefined {
  for (const [name, reason] of exceptions) {
    if (name.endsWith('*') ? test.startsWith(name.slice(0, -1)) : test === name) return reason;
  }
  return undefined;
}

/** A listed test that does not pass is noted and not counted. */
export function count(suite: string, { test, detail }: SuiteResult, exceptions: Exceptions, report: Report): void {
  const title = `${suite}: ${test}`;
  const reason = reasonFor(test, exceptions);
  if (detail === undefined && reason !== undefined) report.fail(title, `it passes now, so take it off the list of exceptions (${reason})`);
  else if (detail === undefined) report.pass(title);
  else if (reason === undefined) report.fail(title, detail);
  else report.note(`listed  ${title}: ${reason}`);
}
