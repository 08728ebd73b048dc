import { randomBytes } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { open, readdir, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { FolderInUse, type FolderLock } from '@tskeeper/runtime';

/**
 * Keeps two servers off one data folder, without a lock of the operating system, which Node does not offer.
 *
 * Each contender puts up a file of its own, `tskeeper.claim.<nonce>`, and only then looks who else is there. Of two contenders at least
 * the later one to look sees the other, so both cannot believe to be alone. Whoever sees a live owner gives up; of two live claims the
 * larger nonce gives up and the smaller waits for that; whoever is alone renames its claim to `tskeeper.lock.<nonce>`. No name is ever
 * used twice, so removing the file of a dead process cannot hit a living one, which is what makes taking over free of races.
 *
 * An owner is dead when its process is gone, or when the pid belongs to a process that started at another time. Both can be judged only
 * within the same run of the kernel and the same pid namespace (containers have their own). An owner that started under an earlier run of
 * the kernel on this host is dead. Any other owner is watched: a live one touches its file every two seconds.
 */
export interface LockTimes {
  /** How often an owner touches its file. */
  readonly beatMs: number;
  /** How long an owner elsewhere may be silent before it counts as dead. */
  readonly silenceMs: number;
}

const defaultTimes: LockTimes = { beatMs: 2000, silenceMs: 6000 };
const claimPrefix = 'tskeeper.claim.';
const lockPrefix = 'tskeeper.lock.';
/** How often a contender with precedence looks whether the other claim is gone. */
const lookAgainMs = 10;

/** A process, wherever it runs. What the system does not tell is an empty text. */
export interface Owner {
  readonly pid: number;
  readonly host: string;
  /** Start of the process, in clock ticks since the kernel booted. */
  readonly started: string;
  /** One run of one kernel. */
  readonly boot: string;
  readonly pidNamespace: string;
}

export async function lockFolder(folder: string, times: LockTimes = defaultTimes): Promise<FolderLock> {
  const nonce = randomBytes(8).toString('hex');
  const claim = join(folder, claimPrefix + nonce);
  const lock = join(folder, lockPrefix + nonce);
  await putUp(claim);
  const beat = setInterval(() => void touch(lock).catch(() => touch(claim).catch(() => undefined)), times.beatMs);
  beat.unref();
  try {
    await untilAlone(folder, nonce, times);
    await rename(claim, lock);
  } catch (error) {
    clearInterval(beat);
    await rm(claim, { force: true });
    throw error;
  }
  return {
    async release() {
      clearInterval(beat);
      await rm(lock, { force: true });
    },
  };
}

/** Returns when no other claim and no owner is left; throws FolderInUse when we have to give way. */
async function untilAlone(folder: string, nonce: string, times: LockTimes): Promise<void> {
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
      if (!(await isAlive(owner, path, times))) {
        await rm(path, { force: true });
        continue;
      }
      if (owned || other < nonce) throw new FolderInUse(inUseSentence(folder, owner, path));
      waiting = true;
    }
    if (!waiting) return;
    await delay(lookAgainMs);
  }
}

/** undefined: the file says nothing readable, as when its writer is just starting or lost power. */
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

async function isAlive(owner: Owner | undefined, path: string, times: LockTimes): Promise<boolean> {
  const verdict = owner === undefined ? 'unknown' : judge(owner, self(), processStart);
  return verdict === 'unknown' ? await beats(path, times) : verdict === 'alive';
}

/** `startOf` gives the start of a process of this namespace, '' when the system does not tell, undefined when there is none. */
export function judge(owner: Owner, here: Owner, startOf: (pid: number) => string | undefined): 'alive' | 'dead' | 'unknown' {
  if (owner.boot !== here.boot) return owner.host === here.host ? 'dead' : 'unknown';
  if (owner.pidNamespace !== here.pidNamespace || (owner.boot === '' && owner.host !== here.host)) return 'unknown';
  const started = startOf(owner.pid);
  return started === owner.started ? 'alive' : 'dead';
}

/**
 * Watches the file's time of change, which needs no clock to agree with another machine's. Silence is counted in looks: time in which this process
 * stood still may be time in which the owner's machine stood still as well.
 */
async function beats(path: string, { beatMs, silenceMs }: LockTimes): Promise<boolean> {
  const before = await changeTime(path);
  const pauseMs = Math.min(beatMs / 4, silenceMs);
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

async function putUp(path: string): Promise<void> {
  const file = await open(path, 'wx');
  try {
    await file.writeFile(`${JSON.stringify(self())}\n`);
  } finally {
    await file.close();
  }
}

async function touch(path: string): Promise<void> {
  const now = new Date();
  await utimes(path, now, now);
}

export function self(): Owner {
  return {
    pid: process.pid,
    host: hostname(),
    started: processStart(process.pid) ?? '',
    boot: attempt(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()),
    pidNamespace: attempt(() => readlinkSync('/proc/self/ns/pid')),
  };
}

/** Field 22 of /proc/<pid>/stat; the second field, the program's name in brackets, may itself hold blanks and brackets. */
function processStart(pid: number): string | undefined {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: it exists and is another user's.
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return undefined;
  }
  const text = attempt(() => readFileSync(`/proc/${pid}/stat`, 'utf8'));
  return text.slice(text.lastIndexOf(')') + 2).split(' ')[19] ?? '';
}

function attempt(read: () => string): string {
  try {
    return read();
  } catch {
    return '';
  }
}

function inUseSentence(folder: string, owner: Owner | undefined, path: string): string {
  const who =
    owner === undefined
      ? 'a process that does not say who it is'
      : `process ${owner.pid}${owner.host === hostname() ? '' : ` on ${owner.host}`}`;
  return `the folder ${folder} is in use by ${who}. Stop that server or choose another folder; if you are sure that none is running, remove ${path}.`;
}
