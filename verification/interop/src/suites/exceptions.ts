/**
 * The tests of foreign suites that tskeeper does not pass, each with the reason, and how results
 * are counted against these lists.
 *
 * A list holds in both directions: a test outside of it must pass, and one that passes must be
 * removed from it. README.md shows the lists.
 */
import type { Report } from '../report.ts';

/**
 * Names of tests, or of groups of tests if they end with `*`, and the reason why they do not pass.
 */
export type Exceptions = ReadonlyMap<string, string>;

export const cSuiteExceptions: Exceptions = new Map();

/** Tests that kazoo itself skips, with any server. */
export const kazooSkips: Exceptions = new Map([
  ['test_build::TestBuildEnvironment::*', "kazoo runs it on the machines of kazoo's CI only"],
  ['test_sasl::TestSASLGSSAPIAuthentication::*', 'kazoo runs it with Kerberos only'],
]);

export const kazooSuiteExceptions: Exceptions = new Map([
  ...kazooSkips,
  ['test_client::TestSSLClient::test_create', 'tskeeper has no TLS'],
]);

/** `detail` says why the test did not pass; undefined if it passed. */
export interface SuiteResult {
  readonly test: string;
  readonly detail: string | undefined;
}

/** A listed test that does not pass is printed and not counted. */
export function countResult(suite: string, { test, detail }: SuiteResult, exceptions: Exceptions, report: Report): void {
  const title = `${suite}: ${test}`;
  const reason = reasonFor(test, exceptions);
  if (detail === undefined && reason !== undefined) report.fail(title, `it passes now: remove it from the list of exceptions (${reason})`);
  else if (detail === undefined) report.pass(title);
  else if (reason === undefined) report.fail(title, detail);
  else report.note(`listed  ${title}: ${reason}`);
}

function reasonFor(test: string, exceptions: Exceptions): string | undefined {
  for (const [name, reason] of exceptions) {
    if (name.endsWith('*') ? test.startsWith(name.slice(0, -1)) : test === name) return reason;
  }
  return undefined;
}
