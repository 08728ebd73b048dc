/** What this program is and what it runs on, for srvr, envi and mntr. */
import { readdirSync, readFileSync } from 'node:fs';
import { arch, freemem, homedir, hostname, release, totalmem, type, userInfo } from 'node:os';
import type { HostFacts } from '@tskeeper/runtime';

/** The release of Apache ZooKeeper whose behaviour this is. Tools that ask for a version compare it with such numbers. */
export const zookeeperRelease = '3.9.5';
const megabyte = 1024 * 1024;

export const ownVersion = (JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }).version;

export const hostFacts: HostFacts = {
  version: `${zookeeperRelease}-tskeeper-${ownVersion}, built on node ${process.version}`,
  environment,
  openFileDescriptors,
  maxFileDescriptors,
};

function* environment(): Iterable<readonly [string, string]> {
  yield ['zookeeper.version', hostFacts.version];
  yield ['host.name', hostname()];
  yield ['node.version', process.version];
  yield ['node.home', process.execPath];
  yield ['node.arguments', process.execArgv.join(' ')];
  yield ['os.name', type()];
  yield ['os.arch', arch()];
  yield ['os.version', release()];
  yield ['user.name', userName()];
  yield ['user.home', homedir()];
  yield ['user.dir', process.cwd()];
  yield ['os.memory.free', inMegabytes(freemem())];
  yield ['os.memory.max', inMegabytes(totalmem())];
  yield ['os.memory.total', inMegabytes(process.memoryUsage.rss())];
}

function inMegabytes(bytes: number): string {
  return `${Math.floor(bytes / megabyte)}MB`;
}

/** A process may run under a number that no user has. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? '');
  }
}

function openFileDescriptors(): number | undefined {
  try {
    return readdirSync('/proc/self/fd').length;
  } catch {
    return undefined;
  }
}

function maxFileDescriptors(): number | undefined {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    return soft === undefined ? undefined : Number(soft);
  } catch {
    return undefined;
  }
}
