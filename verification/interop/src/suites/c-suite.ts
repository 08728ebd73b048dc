/**
 * The C client's own tests, from Debian's source package, with the servers that its scripts start.
 *
 * Each fixture (cppunit's word for a class of tests) runs in its own process: a failed test leaves
 * a client and its threads running, and the functions of the C library that other fixtures replace
 * make these crash.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

import type { JavaProgram, SourcePackage } from '../../../../scripts/foreign-programs.js';
import type { ServerKind } from '@tskeeper/harness';
import type { Report } from '../report.ts';
import { buildCSuite, type CProgram } from './c-suite-build.ts';
import { suiteEnvironment } from './environment.ts';
import { countResult, cSuiteExceptions, type SuiteResult } from './exceptions.ts';

/**
 * Number of tests of each fixture in each program: a suite that lost some of them would otherwise
 * look green.
 */
const fixtures: Readonly<Record<CProgram, Readonly<Record<string, number>>>> = {
  mt: {
    Zookeeper_init: 14,
    Zookeeper_close: 5,
    Zookeeper_clientretry: 1,
    Zookeeper_logClientEnv: 1,
    Zookeeper_multi: 13,
    Zookeeper_operations: 5,
    Zookeeper_reconfig: 5,
    Zookeeper_watchers: 7,
    Zookeeper_simpleSystem: 25,
    Zookeeper_readOnly: 1,
    Zookeeper_SASLAuth: 1,
    TestReconfigServer: 5,
  },
  st: {
    Zookeeper_init: 14,
    Zookeeper_close: 4,
    Zookeeper_logClientEnv: 1,
    Zookeeper_operations: 15,
    Zookeeper_reconfig: 7,
    Zookeeper_watchers: 7,
  },
};

/** The fixtures of the bounded form: those with a server that take less than half a minute. */
const boundedFixtures: readonly string[] = ['Zookeeper_multi', 'Zookeeper_clientretry', 'Zookeeper_logClientEnv', 'Zookeeper_SASLAuth'];

/** Only a guard against a hang. */
const fixtureTimeoutMs = 600_000;

/**
 * The only file outside of their folder: their script ends the process whose pid it finds there.
 */
const pidFile = path.join('/tmp', 'zk.pid');

/** The files that the tests expect: the source, and folders for their output. */
async function makeWorkFolder(source: string): Promise<string> {
  const workDir = await mkdtemp(path.join(tmpdir(), 'tskeeper-c-suite-'));
  for (const name of ['bin', 'zookeeper-client']) await symlink(path.join(source, name), path.join(workDir, name));
  await symlink(path.join('zookeeper-client', 'zookeeper-client-c', 'tests'), path.join(workDir, 'tests'));
  return workDir;
}

/** Ends the servers left by an aborted program, by the pid files of their scripts. */
async function endServers(workDir: string): Promise<void> {
  const ensemble = path.join(workDir, 'build', 'test', 'test-cppunit');
  const members = (await readdir(ensemble).catch(() => [])).map((name) => path.join(ensemble, name, 'zookeeper_server.pid'));
  for (const file of [pidFile, ...members]) {
    const pid = Number(await readFile(file, 'utf8').catch(() => ''));
    if (pid > 1) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It has ended already.
      }
    }
    await rm(file, { force: true });
  }
}

/**
 * A test's name, and later its result; the output of the test, its servers and their scripts is in
 * between. Two of these texts begin right after the name.
 */
const resultPattern =
  /^((?:Zookeeper|Test)\w+::\w+?)(?=Log Message|terminate called|\W|$)|( : assertion| : error)? : elapsed \d+( : OK)?$/gm;

/**
 * At the end each failure has its own line, in the order in which the tests ran, with only its
 * place in the source.
 */
const failurePattern = /^\S+:\d+: (?:Assertion|Error): .*$/gm;

/** Reads the output of a run of one fixture test by test. `ending` says how its process ended. */
export function readResults(printed: string, fixture: string, expected: number, ending: string): SuiteResult[] {
  const reasons = [...printed.matchAll(failurePattern)].map(([line]) => line);
  const results: SuiteResult[] = [];
  let current: string | undefined;
  for (const [, name, , isOk] of printed.matchAll(resultPattern)) {
    if (name !== undefined) current = name;
    else if (current !== undefined) {
      results.push({ test: current, detail: isOk === undefined ? (reasons.shift() ?? 'no reason given') : undefined });
      current = undefined;
    }
  }
  const tail = `${ending}; ${printed.trim().slice(-500)}`;
  if (current !== undefined) results.push({ test: current, detail: `it ended the process: ${tail}` });
  if (results.length !== expected) results.push({ test: fixture, detail: `${results.length} tests ran instead of ${expected}; ${tail}` });
  return results;
}

async function runFixture(program: string, fixture: string, workDir: string, variables: NodeJS.ProcessEnv): Promise<[string, string]> {
  const child = spawn(program, [fixture], { cwd: workDir, env: variables, stdio: ['ignore', 'pipe', 'pipe'] });
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      printed += chunk.toString('latin1');
    });
  }
  const timer = setTimeout(() => child.kill('SIGKILL'), fixtureTimeoutMs);
  // Not 'close': the started servers hold the pipes open.
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  clearTimeout(timer);
  return [printed, signal === null ? `exit code ${code}` : `signal ${signal}`];
}

export async function runCSuite(
  kind: ServerKind,
  isBounded: boolean,
  suite: SourcePackage,
  java: JavaProgram,
  report: Report,
): Promise<void> {
  const { variables, classpath } = await suiteEnvironment(kind);
  const listed = kind === 'ours' ? cSuiteExceptions : new Map<string, string>();
  // Their ports and their pid file are the same in every checkout, so a pid of an earlier run may
  // now belong to another process.
  await rm(pidFile, { force: true });
  for (const program of isBounded ? (['mt'] as const) : (['mt', 'st'] as const)) {
    const executable = await buildCSuite(program, suite, java);
    for (const [fixture, expected] of Object.entries(fixtures[program])) {
      if (isBounded && !boundedFixtures.includes(fixture)) continue;
      const workDir = await makeWorkFolder(suite.source);
      try {
        const places = { base_dir: workDir, ZKROOT: workDir, CLASSPATH: classpath };
        const [printed, ending] = await runFixture(executable, fixture, workDir, { ...variables, ...places });
        for (const { test, detail } of readResults(printed, fixture, expected, ending)) {
          countResult('c-suite', { test: `${program} ${test}`, detail }, listed, report);
        }
      } finally {
        await endServers(workDir);
        await rm(workDir, { recursive: true, force: true });
      }
    }
  }
}
