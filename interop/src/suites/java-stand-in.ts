/**
 * Reads the command line of a JVM that would run a program of ZooKeeper, and runs ours in its place.
 *
 * ZooKeeper's own scripts and the test suites of its clients start servers as `java -cp ... -Dname=value <main class> <arguments>`. With
 * `interop/stand-in` at the front of PATH they start ours, unchanged. The server runs in the process that was started, so that the
 * caller's signals reach it and its pid file is right.
 *
 * Those programs configure TLS, SASL and the like for every server, also where a test needs none of it. tskeeper does not start with a
 * setting that it would have to ignore, so the server gets a copy of zoo.cfg without these lines. Each of them is named on standard error.
 */
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

import { repositoryFolder } from '../../../scripts/peers.js';

/** Settings of what tskeeper does not have: TLS on the client port, SASL, local sessions, read-only mode. */
const leftOut =
  /^(secureClientPort.*|ssl\..*|serverCnxnFactory|authProvider\..*|sessionRequireClientSASLAuth|localSessions(Upgrading)?Enabled|readonlymode\.enabled)$/;

interface JvmCommand {
  readonly properties: readonly string[];
  readonly mainClass: string;
  readonly args: readonly string[];
}

/** Options of the JVM itself, as `-Xmx1g` and the class path, have no effect here. */
function parse(argv: readonly string[]): JvmCommand {
  const properties: string[] = [];
  let at = 0;
  for (; at < argv.length && argv[at]!.startsWith('-'); at++) {
    const word = argv[at]!;
    if (word === '-cp' || word === '-classpath') at++;
    else if (word.startsWith('-D')) properties.push(word);
  }
  return { properties, mainClass: argv[at] ?? '', args: argv.slice(at + 1) };
}

function say(line: string): void {
  process.stderr.write(`java stand-in: ${line}\n`);
}

function isLeftOut(name: string): boolean {
  if (!leftOut.test(name.replace(/^zookeeper\./, ''))) return false;
  say(`the server starts without ${name}, which tskeeper does not have`);
  return true;
}

async function serve({ properties, args }: JvmCommand): Promise<void> {
  const [configFile = ''] = args;
  const text = await readFile(configFile, 'utf8');
  const lines = text.split('\n').filter((line) => !isLeftOut(line.split('=')[0]!.trim()));
  const copy = `${configFile}.tskeeper`;
  await writeFile(copy, lines.join('\n'));
  const kept = properties.filter((property) => !isLeftOut(property.slice('-D'.length).split('=')[0]!));
  await runTskeeper(['serve', copy, ...kept]);
}

/** Never returns: the command line ends the process. */
async function runTskeeper(args: readonly string[]): Promise<void> {
  const entry = path.join(repositoryFolder, 'packages', 'cli', 'bin', 'tskeeper.js');
  process.argv.splice(1, Infinity, entry, ...args);
  await import(pathToFileURL(entry).href);
}

async function printFourLetterWord([, port, word]: readonly string[]): Promise<void> {
  // Only here, since its module takes over the signals of the process.
  const { fourLetterWord } = await import('../../../scripts/server-process.js');
  process.stdout.write(await fourLetterWord(Number(port), word!));
}

const command = parse(process.argv.slice(2));
switch (command.mainClass) {
  case 'org.apache.zookeeper.server.quorum.QuorumPeerMain':
  case 'org.apache.zookeeper.server.ZooKeeperServerMain':
    await serve(command);
    break;
  case 'org.apache.zookeeper.ZooKeeperMain':
    await runTskeeper(command.args);
    break;
  case 'org.apache.zookeeper.client.FourLetterWordMain':
    await printFourLetterWord(command.args);
    break;
  default:
    say(`there is nothing to run in place of ${command.mainClass === '' ? 'no class at all' : command.mainClass}`);
    process.exitCode = 1;
}
