import { randomBytes } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { open, readdir, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Clock, FolderInUse, type FolderLock } from '@tskeeper/runtime';
import { SystemClock } from './system-clock.ts';

/**
 * Prevents two servers from using one data folder, without a lock of the operating system, which
 * Node does not offer.
 *
 * Each contender first creates a file of its own, `tskeeper.claim.<nonce>`, and only then looks for
 * others. Of two contenders at least the one that looks later sees the other, so that they cannot
 * both believe to be alone. A contender that sees a live owner gives up. Of two live claims the one
 * with the larger nonce gives up, and the other waits for that. A contender that is alone renames
 * its claim to `tskeeper.lock.<nonce>`. No name is ever used twice, so removing the file of a dead
 * process cannot hit the file of a live one; this makes a takeover free of races.
 *
 * An owner is dead when its process does not exist, when it is a zombie (it has ended, and its
 * parent has not waited for it), or when the pid belongs to a process that started at another time.
 * A killed process takes a moment to end, so a contender retries for a second (`endingMs`) before
 * it refuses the folder because of another process of this machine. All of that can be decided only
 * within the same run of the kernel and the same pid namespace (containers have their own). An
 * owner that started under an earlier run of the kernel on this host is dead. Any other owner is
 * observed: a live one touches its file every two seconds.
 */
export interface LockTimes {
  /** How often an owner touches its file. */
  readonly heartbeatMs: number;
  /** How long an owner elsewhere may be silent before it counts as dead. */
  readonly silenceMs: number;
}

const defaultTimes: LockTimes = { heartbeatMs: 2000, silenceMs: 6000 };
const claimPrefix = 'tskeeper.claim.';
const lockPrefix = 'tskeeper.lock.';
/** How often a contender with precedence checks whether the other claim is removed. */
const recheckMs = 10;
/** How long a process may take to end: a contender retries that long. */
const endingMs = 1000;
/** How often a contender retries while the owner may be ending. */
const retryMs = 50;

/** A process on any machine. Facts that the system hides are empty texts. */
export interface Owner {
  readonly pid: number;
  readonly host: string;
  /** Start of the process, in clock ticks since the kernel booted. */
  readonly started: string;
  /** Identifies one run of one kernel. */
  readonly boot: string;
  readonly pidNamespace: string;
}

/** Times and clock of `lockFolder`. */
export interface LockOptions {
  /** Default: an owner touches its file every 2000 ms and is dead after 6000 ms of silence. */
  readonly times?: LockTimes;
  /** The clock for the wait for an owner that may be ending. Default: the clock of this machine. */
  readonly clock?: Clock;
}

/** A living contender or owner that has precedence. */
interface Holder {
  readonly owner: Owner | undefined;
  readonly path: string;
  /** Another process of this machine, which may have been killed a moment ago. */
  readonly mayBeEnding: boolean;
}

/**
 * Locks the folder for this process. Rejects with FolderInUse when a live process has locked it.
 */
export async function lockFolder(
  folder: string,
  { times = defaultTimes, clock = new SystemClock() }: LockOptions = {},
): Promise<FolderLock> {
  const giveUpAtMs = clock.now().elapsedMs + endingMs;
  for (;;) {
    const result = await tryToLock(folder, times);
    if ('release' in result) return result;
    if (!result.mayBeEnding || clock.now().elapsedMs >= giveUpAtMs) {
      throw new FolderInUse(inUseSentence(folder, result.owner, result.path));
    }
    await new Promise<void>((resolve) => clock.after(retryMs, resolve));
  }
}

async function tryToLock(folder: string, times: LockTimes): Promise<FolderLock | Holder> {
  const nonce = randomBytes(8).toString('hex');
  const claim = join(folder, claimPrefix + nonce);
  const lock = join(folder, lockPrefix + nonce);
  await writeClaim(claim);
  const heartbeat = setInterval(() => void touch(lock).catch(() => touch(claim).catch(() => undefined)), times.heartbeatMs);
  heartbeat.unref();
  try {
    const holder = await awaitPrecedence(folder, nonce, times);
    if (holder !== undefined) {
      clearInterval(heartbeat);
      await rm(claim, { force: true });
      return holder;
    }
    await rename(claim, lock);
  } catch (error) {
    clearInterval(heartbeat);
    await rm(claim, { force: true });
    throw error;
  }
  return {
    async release() {
      clearInterval(heartbeat);
      await rm(lock, { force: true });
    },
  };
}

/**
 * Returns undefined when there is no other claim and no owner, otherwise the one with precedence.
 */
async function awaitPrecedence(folder: string, nonce: string, times: LockTimes): Promise<Holder | undefined> {
  for (;;) {
    let waiting = false;
    for (const name of await readdir(folder)) {
      const owned = name.startsWith(lockPrefix);
      if (!owned && !name.startsWith(claimPrefix)) continue;
      const other = name.slice(owned ? lockPrefix.length : claimPrefix.length);
      if (other === nonce) continue;
      const path = join(folder, name);
      const owner = await readOwner(path);
      if (owner === 'gone') continue;
      const state = owner === undefined ? 'unknown' : ownerStateOf(owner, ownIdentity(), processStart);
      if (state === 'dead' || (state === 'unknown' && !(await hasHeartbeat(path, times)))) {
        await rm(path, { force: true });
        continue;
      }
      if (owned || other < nonce) return { owner, path, mayBeEnding: state === 'alive' && owner?.pid !== process.pid };
      waiting = true;
    }
    if (!waiting) return undefined;
    await delay(recheckMs);
  }
}

/** undefined: the file is not readable, as when its writer has just created it or lost power. */
async function readOwner(path: string): Promise<Owner | undefined | 'gone'> {
  try {
    const read: unknown = JSON.parse(await readFile(path, 'utf8'));
    if (typeof read !== 'object' || read === null) return undefined;
    const { pid, host, started, boot, pidNamespace } = read as Record<string, unknown>;
    if (!Number.isSafeInteger(pid) || [host, started, boot, pidNamespace].some((value) => typeof value !== 'string')) return undefined;
    return read as Owner;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'gone' : undefined;
  }
}

/**
 * `startOf` returns the start of a process of this namespace, '' when the system hides it,
 * undefined when there is no live process with that pid.
 */
export function ownerStateOf(owner: Owner, here: Owner, startOf: (pid: number) => string | undefined): 'alive' | 'dead' | 'unknown' {
  if (owner.boot !== here.boot) return owner.host === here.host ? 'dead' : 'unknown';
  if (owner.pidNamespace !== here.pidNamespace || (owner.boot === '' && owner.host !== here.host)) return 'unknown';
  const started = startOf(owner.pid);
  // A /proc mounted with hidepid hides other users' processes.
  if (started === '' && owner.started !== '') return 'unknown';
  return started === owner.started ? 'alive' : 'dead';
}

/**
 * Observes the file's time of change, so that the clocks of two machines need not agree. Silence is
 * counted in looks: while this process was suspended, the owner's machine may have been suspended
 * too.
 */
async function hasHeartbeat(path: string, { heartbeatMs, silenceMs }: LockTimes): Promise<boolean> {
  const before = await changeTime(path);
  const pauseMs = Math.min(heartbeatMs / 4, silenceMs);
  for (let looks = Math.ceil(silenceMs / pauseMs); looks > 0; looks--) {
    await delay(pauseMs);
    const now = await changeTime(path);
    if (now === undefined) return false;
    if (now !== before) return true;
  }
  return false;
}

async function changeTime(path: string): Promise<bigint | undefined> {
  try {
    return (await stat(path, { bigint: true })).mtimeNs;
  } catch {
    return undefined;
  }
}

async function writeClaim(path: string): Promise<void> {
  const file = await open(path, 'wx');
  try {
    await file.writeFile(`${JSON.stringify(ownIdentity())}\n`);
  } finally {
    await file.close();
  }
}

async function touch(path: string): Promise<void> {
  const now = new Date();
  await utimes(path, now, now);
}

export function ownIdentity(): Owner {
  return {
    pid: process.pid,
    host: hostname(),
    started: processStart(process.pid) ?? '',
    boot: attempt(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()),
    pidNamespace: attempt(() => readlinkSync('/proc/self/ns/pid')),
  };
}

/**
 * Field 22 of /proc/<pid>/stat, unless field 3, the state, says that the process has ended (Z: a
 * zombie, X: dead). The main thread of a process may be a zombie while another one still waits for
 * the disk; then field 20, the number of threads, is larger than 1, and the process is alive. The
 * second field, the program's name in brackets, may itself contain blanks and brackets.
 */
function processStart(pid: number): string | undefined {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: the process exists and belongs to another user.
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return undefined;
  }
  const text = attempt(() => readFileSync(`/proc/${pid}/stat`, 'utf8'));
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  if ((fields[0] === 'Z' || fields[0] === 'X') && !(Number(fields[17]) > 1)) return undefined;
  return fields[19] ?? '';
}

function attempt(read: () => string): string {
  try {
    return read();
  } catch {
    return '';
  }
}

function inUseSentence(folder: string, owner: Owner | undefined, path: string): string {
  const who = owner === undefined ? 'an unknown process' : `process ${owner.pid}${owner.host === hostname() ? '' : ` on ${owner.host}`}`;
  return `the folder ${folder} is in use by ${who}. Stop that server or choose another folder; if you are sure that none is running, remove ${path}.`;
}
