/**
 * zkCli.sh, that is org.apache.zookeeper.ZooKeeperMain: types one list of commands into it with two
 * fresh servers, and compares its output. Only what has to differ is removed first: times, session
 * ids, the address in the prompt.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';

import { repositoryFolder } from '../../../../scripts/foreign-programs.js';
import type { ServerProcess } from '@tskeeper/harness';
import type { Report } from '../report.ts';

/**
 * The lines, one command each. Watch events are off, since they appear between the lines at
 * arbitrary times.
 */
export const typedLines: readonly string[] = [
  'printwatches off',
  'ls /',
  'create /a one',
  'create /a again',
  'create /no/such x',
  'create -s /a/s- two',
  'create -e /a/e three',
  'create -s -e /a/es- four',
  'create -c /c',
  'create -t 100000 /t ttl',
  'create /a/e/below x',
  'create /empty',
  'create /acl data world:anyone:r',
  'create /bad data nosuch:x:r',
  'get /a',
  'get -s /a',
  'get /empty',
  'get /missing',
  'get -w /a',
  'set /a changed',
  'set -s /a changed-again',
  'set -v 0 /a stale',
  'set -v 2 /a fresh',
  'stat /a',
  'stat /missing',
  'stat -w /a',
  'ls -s /a',
  'ls -R /',
  'ls -w /a',
  'ls /missing',
  'getAllChildrenNumber /',
  'getAllChildrenNumber /missing',
  'getEphemerals /',
  'getEphemerals /a/e',
  'getAcl /a',
  'getAcl -s /acl',
  'set /acl x',
  'setAcl /acl world:anyone:rwa',
  'addauth digest ann:secret',
  'whoami',
  'create /own mine auth::cdrwa',
  'getAcl /own',
  'setAcl -s /own digest:bob:abc=:r',
  'get /own',
  'setAcl -R /a world:anyone:cdrwa',
  'setquota -n 5 -b 100 /a',
  'listquota /a',
  'setquota -N 6 -B 50 /a',
  'listquota /a',
  'create /a/more 0123456789012345678901234567890123456789',
  'delquota -n /a',
  'listquota /a',
  'delquota /a',
  'listquota /a',
  'addWatch -m PERSISTENT /a',
  'addWatch /a/x',
  'addWatch -m PERSISTENT_RECURSIVE /',
  'removewatches /a',
  'removewatches /nothing',
  'sync /a',
  'config',
  'config -s',
  'reconfig -remove 1',
  'delete /a',
  'delete -v 9 /empty',
  'delete /empty',
  'delete /zookeeper',
  'delete /missing',
  'deleteall /a',
  'deleteall /c',
  'ls -R /',
  'version',
  'nonsense',
];

/** One command each, on the command line of its own process. */
const oneShotCommands = [
  ['ls', '/'],
  ['stat', '/zookeeper'],
  ['get', '/missing'],
  ['create', '/from-the-command-line', 'x'],
];

/**
 * Typed after every command, so that the text can be split into one piece per command: a line that
 * zkCli prints on standard output, and one on standard error.
 */
export function withMarkers(lines: readonly string[]): string[] {
  return lines.flatMap((line, index) => [line, `set /marker marker-${index}`, 'get /marker', `stat /marker-${index}`]);
}

export interface Output {
  /** Standard output unchanged. */
  readonly raw: string;
  readonly out: string;
  readonly err: string;
  readonly code: number | null;
}

export function runJavaCli(
  classpath: string,
  server: ServerProcess,
  args: readonly string[],
  input: readonly string[],
  lastWords?: RegExp,
): Promise<Output> {
  const options = ['-Xmx256m', '-Dlog.level=OFF', '-cp', classpath, 'org.apache.zookeeper.ZooKeeperMain'];
  return runProgram('java', [...options, '-server', server.connectString, ...args], input, server, lastWords);
}

/** Our command line. */
export const ownCliPath: string = path.join(repositoryFolder, 'packages', 'cli', 'bin', 'tskeeper.js');

/** How long to wait for a program's last output. It takes less unless something is wrong. */
const finalOutputMs = 20_000;

/**
 * Runs a program that talks to `server`, typing lines into it. The end of the lines is the end of
 * its input; `lastWords` is what it has to print before, if it prints that at its own pace.
 */
export async function runProgram(
  program: string,
  args: readonly string[],
  input: readonly string[],
  server: ServerProcess,
  lastWords?: RegExp,
): Promise<Output> {
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] });
  let out = '';
  let err = '';
  child.stdin.write(input.map((line) => `${line}\n`).join(''));
  const end = (): void => void child.stdin.end();
  const timer = setTimeout(end, lastWords === undefined ? 0 : finalOutputMs);
  // A character may arrive in two pieces.
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    out += chunk;
    if (lastWords?.test(out) === true) end();
  });
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (err += chunk));
  const [code] = (await once(child, 'close')) as [number | null];
  clearTimeout(timer);
  return { raw: out, out: normalised(out, server.connectString), err: normalised(err, server.connectString), code };
}

/**
 * Removes only what must differ between two servers, and sorts only what has no order. A separate
 * thread reports the connection in two lines that appear anywhere in the command's text, even
 * within a line, or not at all if the process ends before. Each has its own line breaks before and
 * after.
 */
export function normalised(text: string, connectString: string): string {
  return text
    .replaceAll(/\nWATCHER::\n/g, '')
    .replaceAll(/\nWatchedEvent state:SyncConnected type:None path:null zxid: -1\n/g, '')
    .replaceAll('(CONNECTING)', '(CONNECTED)')
    .replaceAll(connectString, 'SERVER')
    .replaceAll(/^([cm]time = ).*$/gm, '$1TIME')
    .replaceAll(/0x100[0-9a-f]{12,13}/g, 'SESSION')
    .replaceAll(/(?<=^Auth scheme: User\n)((?:[a-z0-9]+: .*\n)+)/gm, (lines) => `${lines.trimEnd().split('\n').toSorted().join('\n')}\n`);
}

export async function runZkCli(classpath: string, server: ServerProcess, reference: ServerProcess, report: Report): Promise<void> {
  const input = ['create /marker', ...withMarkers(typedLines), 'quit'];
  const tested = await runJavaCli(classpath, server, [], input);
  const expected = await runJavaCli(classpath, reference, [], input);
  const pieces = [cutByMarkers(tested), cutByMarkers(expected)] as const;
  for (const [index, command] of typedLines.entries()) {
    compare(`zkCli: ${command}`, pieces[0][index], pieces[1][index], report);
  }
  compare('zkCli: exit code', `code ${tested.code}\n${pieces[0].at(-1)}`, `code ${expected.code}\n${pieces[1].at(-1)}`, report);
  for (const args of oneShotCommands) {
    const [a, b] = [await runJavaCli(classpath, server, args, []), await runJavaCli(classpath, reference, args, [])];
    compare(`zkCli: ${args.join(' ')} as a command line`, `code ${a.code}\n${a.out}${a.err}`, `code ${b.code}\n${b.out}${b.err}`, report);
  }
}

/** One piece of text per command, from both streams. */
export function cutByMarkers({ out, err }: Output): string[] {
  const outPieces = out.split(/^marker-\d+\n/m);
  const errPieces = err.split(/^Node does not exist: \/marker-\d+\n/m);
  return outPieces.map((piece, index) => `${piece}${errPieces[index] ?? ''}`);
}

function compare(name: string, tested: string | undefined, expected: string | undefined, report: Report): void {
  if (expected === undefined) report.fail(name, 'the reference did not reach this command');
  else if (tested === expected) report.pass(name);
  else report.fail(name, `printed\n${tested?.trim()}\n    instead of\n${expected.trim()}`);
}
