/** Facts about this program and its machine, for srvr, envi and mntr. */
import { readdirSync, readFileSync } from 'node:fs';
import { arch, freemem, homedir, hostname, release, tmpdir, totalmem, type, userInfo } from 'node:os';
import type { HostFacts } from '@tskeeper/runtime';

/** The release of Apache ZooKeeper with this behaviour. Tools compare it with version numbers. */
export const zookeeperRelease = '3.9.5';
const megabyte = 1024 * 1024;
/** What Java prints for a property without a value. */
const notKnown = '<NA>';

/**
 * Each release sets `buildDate` along with `version`: an installed package has no date of its own.
 */
const own = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string; buildDate: string };
export const ownVersion = own.version;

export const hostFacts: HostFacts = {
  version: `${zookeeperRelease}-tskeeper-${own.version}, built on ${formatBuildDate(own.buildDate)}`,
  environment,
  openFileDescriptors,
  maxFileDescriptors,
};

/**
 * `mm/dd/yyyy hh:mm GMT`, as ZooKeeper up to 3.6 prints it. Later releases print `yyyy-mm-dd hh:mm
 * UTC`, which go-zookeeper cannot parse; no parser is known that needs the later form.
 */
export function formatBuildDate(text: string): string {
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) {
    throw new Error(`buildDate in package.json must be a date such as 2026-01-31T12:00Z, not "${text}"`);
  }
  const [year, month, day, time] = date.toISOString().split(/[-T]/);
  return `${month}/${day}/${year} ${time!.slice(0, 5)} GMT`;
}

function* environment(): Iterable<readonly [string, string]> {
  yield ['zookeeper.version', hostFacts.version];
  yield ['host.name', valueOf(hostname)];
  // Scripts and ZooKeeper's own tests expect these names.
  yield ['java.version', `none (Node ${process.version})`];
  yield ['java.vendor', 'none (tskeeper)'];
  yield ['java.home', notKnown];
  yield ['java.class.path', notKnown];
  yield ['java.library.path', notKnown];
  yield ['java.io.tmpdir', tmpdir()];
  yield ['java.compiler', notKnown];
  yield ['node.version', process.version];
  yield ['node.home', process.execPath];
  yield ['node.arguments', process.execArgv.join(' ')];
  yield ['os.name', type()];
  yield ['os.arch', arch()];
  yield ['os.version', release()];
  yield ['user.name', userName()];
  yield ['user.home', valueOf(homedir)];
  yield ['user.dir', valueOf(() => process.cwd())];
  yield ['os.memory.free', inMegabytes(freemem())];
  yield ['os.memory.max', inMegabytes(totalmem())];
  yield ['os.memory.total', valueOf(() => inMegabytes(process.memoryUsage.rss()))];
}

function inMegabytes(bytes: number): string {
  return `${Math.floor(bytes / megabyte)}MB`;
}

/** The system may refuse: the folder is gone, or no descriptor is left. */
function valueOf(read: () => string): string {
  try {
    return read();
  } catch {
    return notKnown;
  }
}

/** The process may run under a number without a user. */
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
