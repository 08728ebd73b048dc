/**
 * Reads the command line of a JVM that would run a program of ZooKeeper, and runs ours instead.
 *
 * ZooKeeper's own scripts and the test suites of its clients start servers as `java -cp ...
 * -Dname=value <main class> <arguments>`. With `verification/interop/stand-in` at the front of PATH
 * they start ours, unchanged. The server runs in the started process, so that signals and pid files
 * of the caller reach it. It reads a copy of zoo.cfg, and standard error names each setting that
 * the copy omits.
 */
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

import { repositoryFolder } from '../../../../scripts/foreign-programs.js';
import { type JvmCommand, parseJvmCommand, withoutUnsupported } from './jvm-command.ts';

function say(line: string): void {
  process.stderr.write(`java stand-in: ${line}\n`);
}

/** Never returns: the command line ends the process. */
async function runTskeeper(args: readonly string[]): Promise<void> {
  const entry = path.join(repositoryFolder, 'packages', 'cli', 'bin', 'tskeeper.js');
  process.argv.splice(1, Infinity, entry, ...args);
  await import(pathToFileURL(entry).href);
}

async function serve({ properties, args: [configFile = ''] }: JvmCommand): Promise<void> {
  const kept = withoutUnsupported({ config: await readFile(configFile, 'utf8'), properties });
  for (const name of kept.leftOut) say(`the server starts without ${name}, which tskeeper does not have`);
  const copy = `${configFile}.tskeeper`;
  await writeFile(copy, kept.config);
  await runTskeeper(['serve', copy, ...kept.properties]);
}

async function printFourLetterWord([, port, word]: readonly string[]): Promise<void> {
  // Loaded only here, since the module handles the signals of its process.
  const { fourLetterWord } = await import('@tskeeper/harness');
  process.stdout.write(await fourLetterWord(Number(port), word!));
}

const command = parseJvmCommand(process.argv.slice(2));
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
    say(`tskeeper has no program for the class "${command.mainClass}"`);
    process.exitCode = 1;
}
