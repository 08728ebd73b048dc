/** Results for people and for programs. */
import { formatServer } from '@tskeeper/client';
import Table from 'cli-table3';
import type { Check } from '../check.ts';
import type { Facts } from '../facts.ts';
import { formatRelease } from '../release.ts';
import type { CheckResult, Outcome } from '../suite.ts';

const borderless = {
  chars: {
    top: '',
    'top-mid': '',
    'top-left': '',
    'top-right': '',
    bottom: '',
    'bottom-mid': '',
    'bottom-left': '',
    'bottom-right': '',
    left: '',
    'left-mid': '',
    mid: '',
    'mid-mid': '',
    right: '',
    'right-mid': '',
    middle: '  ',
  },
  style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [] },
};

function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const table = new Table({ ...borderless, head: [...head] });
  for (const row of rows) table.push([...row]);
  return `${table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')}\n`;
}

export function listText(checks: readonly Check[]): string {
  const rows = checks.map(({ name, title, since, needs = [] }) => [
    name,
    since === undefined ? '' : formatRelease(since),
    needs.join(', '),
    title,
  ]);
  return tableOf(['check', 'since', 'needs', 'correct behaviour'], rows);
}

export function factsText(facts: Facts): string {
  const from = {
    srvr: 'as reported by srvr',
    caller: 'as --release says',
    default: 'because srvr does not answer; --release sets another',
  };
  const servers = facts.servers.map(({ address, version, mode }) => [
    formatServer(address),
    version ?? 'not reported',
    mode ?? 'not reported',
  ]);
  const { min, max } = facts.sessionTimeoutMs;
  return `${tableOf(
    ['server', 'version', 'mode'],
    [...servers, ...facts.unreachable.map((server) => [server, 'not reached', ''])],
  )}checked as ZooKeeper ${formatRelease(facts.release)}, ${from[facts.releaseFrom]}; sessions of ${min} to ${max} ms; extended types ${
    facts.hasExtendedTypes ? 'on' : 'off'
  }; local sessions ${facts.localSessions}\n`;
}

const outcomeTexts: Record<Outcome, string> = { passed: 'ok', failed: 'FAILED', notApplicable: 'not applicable' };

export function resultsText(results: readonly CheckResult[]): string {
  const rows = results.map(({ check, outcome, durationMs }) => [
    outcomeTexts[outcome],
    outcome === 'notApplicable' ? '' : durationMs.toFixed(0),
    check.name,
  ]);
  const table = tableOf(['result', 'ms', 'check'], rows);
  const failed = results
    .filter(({ outcome }) => outcome === 'failed')
    .map(({ check, reason }) => `${outcomeTexts.failed}: ${check.name}, ${check.title}\n  ${reason}\n`)
    .join('');
  return [table, notApplicableText(results), failed].filter((part) => part !== '').join('\n');
}

/** Grouped by reason, since many checks share one. */
function notApplicableText(results: readonly CheckResult[]): string {
  const names = new Map<string, string[]>();
  for (const { check, outcome, reason = '' } of results) {
    if (outcome === 'notApplicable') names.set(reason, [...(names.get(reason) ?? []), check.name]);
  }
  return [...names].map(([reason, checks]) => `${outcomeTexts.notApplicable}, because ${reason}:\n  ${checks.join(', ')}\n`).join('');
}

export function countsText(results: readonly CheckResult[]): string {
  const count = (outcome: Outcome) => results.filter((result) => result.outcome === outcome).length;
  return `${count('passed')} passed, ${count('failed')} failed, ${count('notApplicable')} not applicable`;
}

function toJsonCheck({ name, title, behaviourIds, docs, since, needs = [] }: Check): object {
  return { name, title, rows: behaviourIds, docs, since: since === undefined ? undefined : formatRelease(since), needs };
}

export function listJson(checks: readonly Check[]): string {
  return `${JSON.stringify({ checks: checks.map(toJsonCheck) }, null, 2)}\n`;
}

export function resultsJson(facts: Facts, results: readonly CheckResult[], cleanupError: string | undefined): string {
  const { servers, release, ...rest } = facts;
  return `${JSON.stringify(
    {
      facts: {
        ...rest,
        release: formatRelease(release),
        servers: servers.map(({ address, version, mode }) => ({ address: formatServer(address), version, mode })),
      },
      results: results.map(({ check, outcome, durationMs, reason }) => ({
        name: check.name,
        title: check.title,
        rows: check.behaviourIds,
        outcome,
        ms: Math.round(durationMs),
        reason,
      })),
      left: cleanupError,
    },
    null,
    2,
  )}\n`;
}
