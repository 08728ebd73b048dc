import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Clock, FolderInUse } from '@tskeeper/runtime';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ownerStateOf, lockFolder, type Owner, ownIdentity } from '../src/folder-lock.ts';

let folder: string;
const quick = { heartbeatMs: 20, silenceMs: 100 };

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tskeeper-lock-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

function plant(owner: Partial<Owner> | string, name = 'tskeeper.lock.0123456789abcdef'): string {
  const path = join(folder, name);
  writeFileSync(path, typeof owner === 'string' ? owner : JSON.stringify({ ...ownIdentity(), ...owner }));
  return path;
}

/** The pid of a process that has been killed and reaped, and its start time. */
async function killedProcess(): Promise<{ pid: number; started: string }> {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
  await once(child, 'spawn');
  const started = startTimeOf(child.pid!);
  child.kill('SIGKILL');
  await once(child, 'exit');
  return { pid: child.pid!, started };
}

/** Field 22 of /proc/<pid>/stat. */
function startTimeOf(pid: number): string {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]!;
}

/**
 * A killed process that stays in the process table, because its parent (a shell that has become
 * `sleep`) never waits for it.
 */
async function zombieProcess(): Promise<{ pid: number; started: string; endParent(): void }> {
  const parent = spawn('sh', ['-c', 'sleep 600 & echo $!; exec sleep 600'], { stdio: ['ignore', 'pipe', 'ignore'] });
  const [line] = (await once(parent.stdout, 'data')) as [Buffer];
  const pid = Number(line.toString());
  const started = startTimeOf(pid);
  // Before the exec a shell would wait for its child.
  await expect.poll(() => readFileSync(`/proc/${parent.pid}/comm`, 'utf8')).toBe('sleep\n');
  process.kill(pid, 'SIGKILL');
  await expect.poll(() => readFileSync(`/proc/${pid}/stat`, 'utf8')).toContain(') Z ');
  return { pid, started, endParent: () => void parent.kill('SIGKILL') };
}

/** A clock that the test advances. */
class HandClock implements Clock {
  #nowMs = 0;
  #timers: { atMs: number; callback: () => void }[] = [];
  #asked: (() => void)[] = [];

  now(): { elapsedMs: number; wallMs: number } {
    return { elapsedMs: this.#nowMs, wallMs: this.#nowMs };
  }

  after(delayMs: number, callback: () => void): { atMs: number; callback: () => void } {
    const timer = { atMs: this.#nowMs + delayMs, callback };
    this.#timers.push(timer);
    for (const asked of this.#asked.splice(0)) asked();
    return timer;
  }

  cancel(timer: unknown): void {
    this.#timers = this.#timers.filter((one) => one !== timer);
  }

  setImmediate(callback: () => void): void {
    setImmediate(callback);
  }

  /** Resolves when a timer is waiting. */
  async asked(): Promise<void> {
    if (this.#timers.length === 0) await new Promise<void>((resolve) => this.#asked.push(resolve));
  }

  pass(ms: number): void {
    this.#nowMs += ms;
    const due = this.#timers.filter(({ atMs }) => atMs <= this.#nowMs);
    this.#timers = this.#timers.filter((timer) => !due.includes(timer));
    for (const { callback } of due) callback();
  }
}

describe('a folder', () => {
  it('is locked once, and can be locked again after its release', async () => {
    const lock = await lockFolder(folder);
    expect(readdirSync(folder)).toEqual([expect.stringMatching(/^tskeeper\.lock\.[0-9a-f]{16}$/)]);
    await expect(lockFolder(folder)).rejects.toThrow(FolderInUse);
    await lock.release();
    expect(readdirSync(folder)).toEqual([]);
    await (await lockFolder(folder)).release();
  });

  it('is refused when it is in use, with a message that names the process, the folder and the remedy', async () => {
    const lock = await lockFolder(folder);
    const [name] = readdirSync(folder);
    await expect(lockFolder(folder)).rejects.toThrow(
      `the folder ${folder} is in use by process ${process.pid}. Stop that server or choose another folder; if you are sure that none is running, remove ${join(folder, name!)}.`,
    );
    expect(readdirSync(folder)).toEqual([name]);
    await lock.release();
  });

  it('is locked by exactly one of many contenders at the same time', async () => {
    for (let round = 0; round < 20; round++) {
      const results = await Promise.allSettled(Array.from({ length: 8 }, () => lockFolder(folder)));
      const winners = results.filter((result) => result.status === 'fulfilled');
      expect(winners).toHaveLength(1);
      expect(readdirSync(folder)).toHaveLength(1);
      await winners[0]!.value.release();
    }
  });

  it('left by a killed process is taken over at once by exactly one contender', async () => {
    plant(await killedProcess());
    const results = await Promise.allSettled(Array.from({ length: 8 }, () => lockFolder(folder)));
    const winners = results.filter((result) => result.status === 'fulfilled');
    expect(winners).toHaveLength(1);
    expect(readdirSync(folder)).toHaveLength(1);
    await winners[0]!.value.release();
  });

  it.skipIf(process.platform !== 'linux')(
    'left by a killed process that its parent has not waited for (a zombie) is taken over at once',
    async () => {
      const zombie = await zombieProcess();
      try {
        plant(zombie);
        // A clock that never advances: the test fails if the lock waits.
        const lock = await lockFolder(folder, { clock: new HandClock() });
        expect(readdirSync(folder)).toHaveLength(1);
        await lock.release();
      } finally {
        zombie.endParent();
      }
    },
  );

  it('of a process that ends within a second is taken over when it has ended', async () => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
    await once(child, 'spawn');
    plant({ pid: child.pid!, started: startTimeOf(child.pid!) });
    const clock = new HandClock();
    const locking = lockFolder(folder, { clock });
    await clock.asked();
    child.kill('SIGKILL');
    await once(child, 'exit');
    clock.pass(50);
    await (await locking).release();
    expect(readdirSync(folder)).toEqual([]);
  });

  it('of a process that still runs after a second is refused, and not before', async () => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
    await once(child, 'spawn');
    try {
      plant({ pid: child.pid!, started: startTimeOf(child.pid!) });
      const clock = new HandClock();
      const locking = lockFolder(folder, { clock });
      const isOver = locking.then(
        () => true,
        () => true,
      );
      const waits = async (): Promise<boolean> => !(await Promise.race([clock.asked().then(() => false), isOver]));
      while (await waits()) {
        // While it waits there is no claim of its own.
        expect(readdirSync(folder)).toHaveLength(1);
        clock.pass(50);
      }
      await expect(locking).rejects.toThrow(`is in use by process ${child.pid}.`);
      expect(clock.now().elapsedMs).toBe(1000);
    } finally {
      child.kill('SIGKILL');
    }
  });

  it('whose owner has ended is taken over, although another process has its pid now', async () => {
    plant({ pid: process.ppid, started: '1' });
    await (await lockFolder(folder)).release();
    expect(readdirSync(folder)).toEqual([]);
  });

  it('left before this machine was restarted is taken over at once', async () => {
    plant({ boot: 'an earlier run' });
    const lock = await lockFolder(folder, { times: { heartbeatMs: 1000, silenceMs: 600_000 } });
    expect(readdirSync(folder)).toHaveLength(1);
    await lock.release();
  });

  it.each([
    ['another container', { pidNamespace: 'pid:[1]', host: 'other' }],
    ['another machine', { boot: 'another kernel', host: 'other' }],
  ])('of a silent owner in %s is taken over after a while', async (_, owner) => {
    plant(owner);
    await (await lockFolder(folder, { times: quick })).release();
    expect(readdirSync(folder)).toEqual([]);
  });

  it('of an owner elsewhere that touches its file stays locked', async () => {
    const path = plant({ pid: 7, pidNamespace: 'pid:[1]', host: 'other' });
    const beat = setInterval(() => utimesSync(path, new Date(), new Date()), quick.heartbeatMs);
    try {
      await expect(lockFolder(folder, { times: quick })).rejects.toThrow('is in use by process 7 on other.');
    } finally {
      clearInterval(beat);
    }
    expect(readdirSync(folder)).toHaveLength(1);
  });

  it('of an owner elsewhere stays locked when the machine of both was suspended for longer than an owner may be silent', async () => {
    const path = plant({ pid: 7, pidNamespace: 'pid:[1]', host: 'other' });
    const locking = lockFolder(folder, { times: quick });
    while (!readdirSync(folder).some((name) => name.startsWith('tskeeper.claim.'))) await delay(1);
    await delay(quick.heartbeatMs);
    const until = performance.now() + 2 * quick.silenceMs;
    while (performance.now() < until);
    const beat = setInterval(() => utimesSync(path, new Date(), new Date()), quick.heartbeatMs);
    try {
      await expect(locking).rejects.toThrow(FolderInUse);
    } finally {
      clearInterval(beat);
    }
    expect(readdirSync(folder)).toHaveLength(1);
  });

  it('stays locked because its owner touches the lock file', async () => {
    const lock = await lockFolder(folder, { times: quick });
    const path = join(folder, readdirSync(folder)[0]!);
    const text = readFileSync(path, 'utf8');
    // From elsewhere, only the beat shows that the owner lives.
    writeFileSync(path, JSON.stringify({ ...(JSON.parse(text) as Owner), pidNamespace: 'pid:[1]' }));
    await expect(lockFolder(folder, { times: quick })).rejects.toThrow(FolderInUse);
    await lock.release();
  });

  it.each(['', '{', '[]', '{"pid":"x"}'])(
    'with a lock file that contains %j, and is not touched, is taken over after a while',
    async (text) => {
      plant(text);
      await (await lockFolder(folder, { times: quick })).release();
      expect(readdirSync(folder)).toEqual([]);
    },
  );

  it('keeps every other file when it is locked', async () => {
    writeFileSync(join(folder, 'log.1'), 'x');
    await (await lockFolder(folder)).release();
    expect(readdirSync(folder)).toEqual(['log.1']);
  });

  it('cannot be locked when it does not exist', async () => {
    await expect(lockFolder(join(folder, 'none'))).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

describe('an owner', () => {
  const here: Owner = { pid: 1, host: 'h', started: '10', boot: 'b', pidNamespace: 'n' };
  const running = (pid: number) => (pid === 5 ? '50' : pid === 7 ? '' : undefined);

  it.each<[string, Partial<Owner>, string]>([
    ['whose process runs is alive', { pid: 5, started: '50' }, 'alive'],
    ['whose process has ended is dead', { pid: 6 }, 'dead'],
    ['whose pid started at another time is dead', { pid: 5, started: '49' }, 'dead'],
    ['of an earlier run of this host is dead', { pid: 5, started: '50', boot: 'c' }, 'dead'],
    ['of another host is unknown', { pid: 6, boot: 'c', host: 'i' }, 'unknown'],
    ['of another user, whose start the system hides, is unknown', { pid: 7, started: '70' }, 'unknown'],
    ['of another container is unknown', { pid: 6, pidNamespace: 'm' }, 'unknown'],
  ])('%s', (_, owner, verdict) => {
    expect(ownerStateOf({ ...here, ...owner }, here, running)).toBe(verdict);
  });

  it('without /proc counts as alive by its pid, on the same host only', () => {
    const plain: Owner = { pid: 1, host: 'h', started: '', boot: '', pidNamespace: '' };
    const startOf = (pid: number) => (pid === 5 ? '' : undefined);
    expect(ownerStateOf({ ...plain, pid: 5 }, plain, startOf)).toBe('alive');
    expect(ownerStateOf({ ...plain, pid: 6 }, plain, startOf)).toBe('dead');
    expect(ownerStateOf({ ...plain, pid: 6, host: 'i' }, plain, startOf)).toBe('unknown');
  });

  it('is described for this process by its pid and host', () => {
    expect(ownIdentity()).toMatchObject({ pid: process.pid, host: hostname() });
  });
});
