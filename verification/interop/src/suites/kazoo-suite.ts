/**
 * kazoo's own tests, run by pytest. kazoo's harness keeps an ensemble of three servers on ports
 * from 20000 on, which it starts as `java ... QuorumPeerMain`, ends with SIGTERM and starts again
 * with other settings.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';

import { type PythonProgram, repositoryFolder } from '../../../../scripts/foreign-programs.js';
import type { ServerKind } from '@tskeeper/harness';
import type { Report } from '../report.ts';
import { versionOf } from '../settings.ts';
import { suiteEnvironment } from './environment.ts';
import { countResult, kazooSkips, kazooSuiteExceptions, type SuiteResult } from './exceptions.ts';

/** Fewer would mean that pytest has not found them all. */
const testsMin = 480;

/** The tests of the bounded form. */
const boundedTests: readonly string[] = [
  ...['TestClient', 'TestClientTransactions', 'TestAuthentication'].map((name) => `test_client.py::${name}`),
  'test_watchers.py::KazooDataWatcherTests',
  'test_sasl.py',
];
const boundedTestsMin = 80;

/** Only guards against a hang. */
const testTimeoutSeconds = 180;
const suiteTimeoutMs = 1_800_000;

export async function runKazooSuite(kind: ServerKind, isBounded: boolean, { pythonPath }: PythonProgram, report: Report): Promise<void> {
  const { variables, classpath } = await suiteEnvironment(kind);
  const tests = path.join(pythonPath, 'kazoo', 'tests');
  const chosen = isBounded ? boundedTests.map((name) => path.join(tests, name)) : [tests];
  const workDir = await mkdtemp(path.join(tmpdir(), 'tskeeper-kazoo-suite-'));
  const child = spawn(
    'python3',
    [
      '-m',
      'pytest',
      '-p',
      'report_results',
      '-p',
      'no:cacheprovider',
      '--rootdir',
      tests,
      '-q',
      '--tb=short',
      `--timeout=${testTimeoutSeconds}`,
      ...chosen,
    ],
    {
      cwd: workDir,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...variables,
        PYTHONPATH: [pythonPath, path.join(repositoryFolder, 'verification', 'interop', 'python')].join(':'),
        PYTHONDONTWRITEBYTECODE: '1',
        TMPDIR: workDir,
        ZOOKEEPER_CLASSPATH: classpath,
        ZOOKEEPER_VERSION: versionOf(kind).join('.'),
      },
    },
  );
  let printed = '';
  const keep = (text: string): void => {
    printed = (printed + text).slice(-3000);
  };
  child.stderr.on('data', (chunk: Buffer) => keep(chunk.toString('utf8')));
  const exited = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  const timer = setTimeout(() => child.kill('SIGTERM'), suiteTimeoutMs);
  let seen = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    if (!line.startsWith('{"test"')) {
      keep(`${line}\n`);
      continue;
    }
    const { test, detail } = JSON.parse(line) as { test: string; detail?: string };
    seen += 1;
    const result: SuiteResult = { test, detail };
    countResult('kazoo-suite', result, kind === 'ours' ? kazooSuiteExceptions : kazooSkips, report);
  }
  const [code, signal] = await exited;
  clearTimeout(timer);
  await rm(workDir, { recursive: true, force: true });
  // 1 means that tests failed, and these have been counted.
  if (code !== 0 && code !== 1) report.fail('kazoo-suite', `pytest ended with ${signal ?? `exit code ${code}`}:\n${printed}`);
  const expected = isBounded ? boundedTestsMin : testsMin;
  if (seen < expected) report.fail('kazoo-suite', `${seen} tests ran instead of ${expected} or more:\n${printed}`);
}
