/**
 * zkCli.sh, that is org.apache.zookeeper.ZooKeeperMain: one list of commands is typed into it against two fresh servers, and what it
 * prints must be the same. Only what has to differ is taken out of the text first: times, session ids, the address in the prompt.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';

import { repositoryFolder } from '../../../scripts/peers.js';
import type { ServerProcess } from '../../../scripts/server-process.js';
import type { Report } from '../report.ts';

/** What is typed, one command a line. Watch events are off, since they come between the lines as time has it. */
export const typed: readonly string[] = [
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

/** One command each, given on the command line of a process of its own. */
const single = [
  ['ls', '/'],
  ['stat', '/zookeeper'],
  ['get', '/missing'],
  ['create', '/from-the-command-line', 'x'],
];

/**
 * Typed behind every command, so that the text can be cut into one piece per command: a line that zkCli prints on its standard output,
 * and one that it prints on its standard error.
 */
export function withMarkers(lines: readonly string[]): string[] {
  return lines.flatMap((line, index) => [line, `set /marker marker-${index}`, 'get /marker', `stat /marker-${index}`]);
}

export interface Output {
  /** Standard output as it was. */
  readonly raw: string;
  readonly out: string;
  readonly err: string;
  readonly code: number | null;
}

export function javaCli(
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
export const bin: string = path.join(repositoryFolder, 'packages', 'cli', 'bin', 'tskeeper.js');

/** For a program to say its last words. It takes less unless something is wrong. */
const lastWordsMs = 20_000;

/**
 * Runs a program that talks to `server`, typing lines into it. Their end is its end; `lastWords` are what it has to print before, where it does so in
 * its own time.
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
  const timer = setTimeout(end, lastWords === undefined ? 0 : lastWordsMs);
  // A character may come in two pieces.
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
 * Only what must differ between two servers is taken out, and only what has no order is sorted. That the connection stands is told by a
 * thread of its own, in two lines that land wherever the command's text has got to, within a line of it too, or nowhere if the process ends
 * before. Each brings its own line break before and behind.
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
  const input = ['create /marker', ...withMarkers(typed), 'quit'];
  const tested = await javaCli(classpath, server, [], input);
  const expected = await javaCli(classpath, reference, [], input);
  const pieces = [cutByMarkers(tested), cutByMarkers(expected)] as const;
  for (const [index, command] of typed.entries()) {
    compare(`zkCli: ${command}`, pieces[0][index], pieces[1][index], report);
  }
  compare('zkCli: how it ends', `code ${tested.code}\n${pieces[0].at(-1)}`, `code ${expected.code}\n${pieces[1].at(-1)}`, report);
  for (const args of single) {
    const [a, b] = [await javaCli(classpath, server, args, []), await javaCli(classpath, reference, args, [])];
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
  if (expected === undefined) report.fail(name, 'the reference did not get so far');
  else if (tested === expected) report.pass(name);
  else report.fail(name, `printed\n${tested?.trim()}\n    and not\n${expected.trim()}`);
}
