/**
 * Compares our command line with zkCli.sh: both get the same lines, each with a fresh server of one
 * kind, and must print the same except for the intended differences (cli-differences.ts). Standard
 * output and error are compared together, since the stream of a text is one of those differences.
 */
import type { ServerProcess } from '@tskeeper/harness';
import type { Report } from '../report.ts';
import { normalizeOutputs, cliDifferences } from './cli-differences.ts';
import { ownCliPath, cutByMarkers, runJavaCli, type Output, runProgram, typedLines, withMarkers } from './zkcli.ts';

/**
 * Further lines besides those typed into zkCli against two servers: parsing of lines and options.
 */
const ownCliLines = [
  'history',
  'printwatches',
  'create "/with space" \'quoted "data"\'',
  'get "/with space"',
  'create /joined x',
  'ls -Rs /joined',
  'get -sw /joined',
  'get -xs /joined',
  'get -b /joined',
  'set -b /joined aGVsbG8=',
  'get /joined',
  'set /joined -s -v=1 other',
  'set /joined -v2 more',
  'set -s /joined -- -dashed',
  'get /joined',
  'get',
  'get -q /joined',
  'get /joined -v',
  'ls',
  'ls -?',
  'stat',
  'set /joined',
  'create',
  'create -c -e /nothing',
  'create -t 0 /nothing',
  'create -t x /nothing',
  'create -t 5 -e /nothing',
  'create -t 5 -c /nothing',
  'create -t 100000 -s /ttl-',
  'delete',
  'delete -v',
  'deleteall',
  'setAcl /joined',
  'setAcl /joined nonsense',
  'setAcl /joined world:anyone:rx',
  'setAcl /joined world:anyone:cdrwa',
  'getAcl',
  'getAllChildrenNumber',
  'setquota /joined',
  'setquota -n x',
  'setquota -n 0 /joined',
  'setquota -B 1 /joined',
  'setquota -n 1 /missing',
  'setquota -n 1 /zookeeper/quota/x',
  'create /joined/below x',
  'setquota -n 1 /joined/below',
  'setquota -n 1 /',
  'delquota -n /joined',
  'delquota -B /joined',
  'listquota /joined',
  'delquota /joined',
  'delquota /joined',
  'listquota /joined/below',
  'listquota',
  'addWatch',
  'addWatch -m NONSENSE /joined',
  'addWatch -m persistent /joined',
  'removewatches /joined -p',
  'removewatches',
  'reconfig',
  'reconfig -v xyz -remove 1',
  'reconfig -members x -remove 1',
  'reconfig -file /nonexistent -members x',
  'config -c',
  'config -c -s',
  'addauth',
  'version x',
  'get relative',
  'get /ends/',
  'get /a//b',
  'get /a/../b',
  'create /a/./b',
  'stat relative',
  'ls relative',
  'sync relative',
  'set relative x',
  'delete relative',
  'deleteall relative',
  'getAcl relative',
  'setAcl relative world:anyone:r',
  'getEphemerals relative',
  'getAllChildrenNumber relative',
  'listquota relative',
  'delquota relative',
  'setquota -n 1 relative',
  'removewatches relative',
  'get /joined true',
  'stat /joined true',
  'ls /joined true',
  'deleteall /joined -b 1',
  'deleteall /missing',
  'redo 1',
  'redo 99999',
  'create -s -e /ephemeral-',
  'getEphemerals',
  'getEphemerals /eph',
  'getEphemerals /other',
];

/** Watches of every kind, and changes that fire them. */
const watchLines = [
  'create /watched x',
  'get -w /watched',
  'set /watched y',
  'stat -w /watched/later',
  'ls -w /watched',
  'create /watched/later',
  'ls -R -w /watched',
  'addWatch -m PERSISTENT /watched/later',
  'addWatch /watched',
  'set /watched/later z',
  'removewatches /watched/later -p',
  'config -w',
  'delete /watched/later',
  'deleteall /watched',
  'sync /',
];

/**
 * The last of these events. A separate thread of zkCli prints events, possibly after the last line.
 */
const lastEvent = /type:NodeDeleted path:\/watched zxid/;

/** The events in order, without their zxids, since the sessions begin and end differently. */
function eventsIn({ out, err }: Output): string {
  return [...`${out}${err}`.matchAll(/^WatchedEvent state:\w+ type:(?!None).*(?= zxid:)/gm)].map(([line]) => line).join('\n');
}

/** One command each, on the command line. */
const oneShotCommands = [
  ['ls', '/'],
  ['stat', '/zookeeper'],
  ['get', '/missing'],
  ['create', '/from-the-command-line', 'x'],
  ['get', '-s', '/from-the-command-line'],
  ['delete', '/from-the-command-line'],
  ['getAcl', '/zookeeper'],
  ['config'],
];

function runOwnCli(server: ServerProcess, args: readonly string[], input: readonly string[], lastWords?: RegExp): Promise<Output> {
  return runProgram('node', [ownCliPath, '-server', server.connectString, ...args], input, server, lastWords);
}

export async function compareClis(classpath: string, forOurs: ServerProcess, forZkCli: ServerProcess, report: Report): Promise<void> {
  const lines = [...typedLines, ...ownCliLines];
  // Output before the first marker is not compared.
  const input = ['create /marker', ...withMarkers(['printwatches off', ...lines]), 'quit'];
  const [ours, theirs] = [await runOwnCli(forOurs, ['shell'], input), await runJavaCli(classpath, forZkCli, [], input)];
  const [a, b] = [cutByMarkers(ours).slice(1), cutByMarkers(theirs).slice(1)];
  const needed = new Set<string>();
  const compareOne = (line: string, own: string, other: string | undefined) => {
    for (const rule of compare(line, own, other, report)) needed.add(rule);
  };
  for (const [index, line] of lines.entries()) compareOne(line, a[index] ?? 'nothing, it ended before', b[index]);
  for (const args of oneShotCommands) {
    const [own, other] = [await runOwnCli(forOurs, args, []), await runJavaCli(classpath, forZkCli, args, [])];
    compareOne(`${args.join(' ')} (one-shot)`, own.out + own.err, other.out + other.err);
    const agree = (own.code === 0) === (other.code === 0);
    if (agree) report.pass(`exit code of ${args.join(' ')}`);
    else report.fail(`exit code of ${args.join(' ')}`, `${own.code}, zkCli's is ${other.code}`);
  }
  const seen = await runOwnCli(forOurs, ['shell'], watchLines, lastEvent);
  const received = await runJavaCli(classpath, forZkCli, [], watchLines, lastEvent);
  const events = eventsIn(received);
  if (events === '') report.fail('events of watches', 'zkCli printed none');
  compareOne('events of watches', eventsIn(seen), events);
  for (const { id } of cliDifferences) {
    if (needed.has(id)) report.pass(`the difference ${id} appears`);
    else report.fail(`the difference ${id}`, 'it did not appear; remove it from the list');
  }
}

/** Returns the rules that applied. */
function compare(line: string, own: string, other: string | undefined, report: Report): readonly string[] {
  const name = `cli: ${line}`;
  if (other === undefined) {
    report.fail(name, 'zkCli did not reach this command');
    return [];
  }
  const { ours, theirs, rules } = normalizeOutputs(line, own, other);
  if (ours === theirs) report.pass(name);
  else report.fail(name, `printed\n${ours}\n    and zkCli\n${theirs}`);
  return rules;
}
