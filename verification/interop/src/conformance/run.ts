/**
 * The checks of `@tskeeper/conformance`: with ours and each release of Apache's standalone, and
 * with ensembles of ours and of Apache's, which also support writing a configuration, and have local
 * sessions or not. Their results with Apache's servers prove the checks.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { type Check, checks, type LocalSessionMode, Suite, type SuiteOptions } from '@tskeeper/conformance';

import { type ProcessEnsemble, type ServerKind, startServer } from '@tskeeper/harness';
import { Proxy } from '../client/proxy.ts';
import { createEnsemble } from '../ensemble/ensemble.ts';
import type { Report } from '../report.ts';
import { superAuth, superDigestProperty } from '../settings.ts';
import { twoAtATime } from '../two-at-a-time.ts';

/**
 * Short, so that the checks that wait for the end of a session take seconds; and not so short that
 * a busy machine ends a session early.
 */
const tickTime = 1500;

async function runChecks(where: string, connectString: string, options: SuiteOptions, report: Report): Promise<void> {
  await using suite = await Suite.prepare(connectString, { slow: true, superAuth, ...options });
  await runSelected(where, suite, () => true, report);
}

async function runSelected(where: string, suite: Suite, isSelected: (check: Check) => boolean, report: Report): Promise<void> {
  const selected = checks.filter(isSelected);
  let notApplicable = 0;
  for (const check of selected) {
    const { outcome, reason } = await suite.run(check);
    const title = `conformance of ${where}: ${check.name}`;
    if (outcome === 'passed') report.pass(title);
    else if (outcome === 'failed') report.fail(title, reason ?? '');
    else notApplicable += 1;
  }
  report.note(`conformance of ${where}: ${notApplicable} of ${selected.length} checks not applicable`);
}

/**
 * The canary of `config.reconfig`: a proxy replaces the
 * version of each configuration by 0, so that a written configuration has no new version.
 */
async function checkReconfigCanary(ensemble: ProcessEnsemble, report: Report): Promise<void> {
  const [first, ...others] = ensemble.connectString.split(',');
  const wrong = await Proxy.to(Number(first!.split(':')[1]), (bytes) =>
    Buffer.from(
      bytes.toString('latin1').replace(/version=[0-9a-f]+/g, (text) => `version=${'0'.repeat(text.length - 'version='.length)}`),
      'latin1',
    ),
  );
  const title = 'conformance: config.reconfig detects a server that gives a new configuration no new version';
  try {
    await using suite = await Suite.prepare([wrong.connectString, ...others].join(','), { superAuth, reconfig: true });
    const { outcome, reason = '' } = await suite.run(checks.find(({ name }) => name === 'config.reconfig')!);
    if (outcome === 'failed' && reason.startsWith('the version: expected above 0')) report.pass(title);
    else report.fail(title, `${outcome}: ${reason}`);
  } finally {
    await wrong.close();
  }
}

async function runStandalone(kind: ServerKind, report: Report): Promise<void> {
  const folder = await mkdtemp(path.join(tmpdir(), 'tskeeper-conformance-'));
  const config = { tickTime, extendedTypesEnabled: true };
  const server = await startServer({ kind, folder, config, properties: superDigestProperty });
  try {
    await runChecks(kind, server.connectString, {}, report);
  } finally {
    if (server.alive) await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function runEnsemble(kind: ServerKind, report: Report): Promise<void> {
  const specs = [1, 2, 3].map((sid) => ({ sid, kind, role: 'participant' as const }));
  // Without extended types, since only standalone servers have them here.
  const config = { tickTime, maxSessionTimeout: 20 * tickTime, extendedTypesEnabled: false, reconfigEnabled: true };
  const ensemble = await createEnsemble(specs, { config });
  try {
    await ensemble.launch([1, 2, 3]);
    await ensemble.untilServing();
    await runChecks(`an ensemble of ${kind}`, ensemble.connectString, { reconfig: true }, report);
    await checkReconfigCanary(ensemble, report);
  } finally {
    await ensemble[Symbol.asyncDispose]();
  }
}

/**
 * With local sessions only what concerns them and the servers of an ensemble among each other is
 * new. The suite asks the servers whether they have them: `localSessionsEnabled`.
 */
async function runLocalSessions(kind: ServerKind, localSessions: LocalSessionMode, report: Report): Promise<void> {
  const specs = [1, 2, 3].map((sid) => ({ sid, kind, role: 'participant' as const }));
  const isUpgradable = localSessions === 'upgradable';
  const config = { tickTime, maxSessionTimeout: 20 * tickTime, localSessionsEnabled: true, localSessionsUpgradingEnabled: isUpgradable };
  const ensemble = await createEnsemble(specs, { config });
  const where = `an ensemble of ${kind} with local sessions ${localSessions}`;
  try {
    await ensemble.launch([1, 2, 3]);
    await ensemble.untilServing();
    await using suite = await Suite.prepare(ensemble.connectString, { slow: true });
    const found = suite.facts.localSessions;
    if (found !== localSessions) report.fail(`conformance of ${where}`, `the servers seem to have local sessions ${found}`);
    const groups = isUpgradable ? ['local-sessions.', 'ensemble.'] : ['local-sessions.'];
    await runSelected(where, suite, ({ name }) => groups.some((group) => name.startsWith(group)), report);
  } finally {
    await ensemble[Symbol.asyncDispose]();
  }
}

export async function runConformance(kinds: readonly ServerKind[], report: Report): Promise<void> {
  await twoAtATime(kinds, (kind) => runStandalone(kind, report));
  for (const kind of kinds.filter((each) => each === 'java-3.9.5' || each === 'ours')) {
    await runEnsemble(kind, report);
    for (const localSessions of ['enabled', 'upgradable'] as const) await runLocalSessions(kind, localSessions, report);
  }
}
