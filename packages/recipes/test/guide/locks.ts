/** The code in docs/guides/recipes/locks.md. */
import { type Client, op } from '@tskeeper/client';
import { type Contender, type Hold, Lock, MultiLock, PriorityLock, ReadWriteLock, type Sessions } from '@tskeeper/recipes';

const utf8 = new TextDecoder();

/** Adds one. The write goes through the hold, so a process that has lost the lock writes nothing. */
export async function countUp(source: Client | Sessions): Promise<number> {
  await using held = await new Lock(source, '/locks/counter', { data: 'worker 7' }).acquire({ timeoutMs: 30_000 });
  const { data, stat } = await held.client.getData('/counter', { retry: true });
  const next = Number(utf8.decode(data ?? undefined)) + 1;
  await held.multi([op.setData('/counter', String(next), { version: stat.version })], { retry: true });
  return next;
}

/** Passes the token to a store, which rejects a token lower than one it has seen. */
export async function writeReport(source: Client | Sessions, store: (report: string, token: bigint) => Promise<void>): Promise<void> {
  await new Lock(source, '/locks/report').run(async (held) => {
    for (const report of ['january', 'february']) {
      held.signal.throwIfAborted();
      await store(report, held.fencingToken);
    }
  });
}

/**
 * With `mine` it uses the caller's hold, without it acquires the lock. The lock is released after all
 * of its holds are released.
 */
export async function append(source: Client | Sessions, line: string, mine?: Hold): Promise<void> {
  await using held = mine?.share() ?? (await new Lock(source, '/locks/log').acquire());
  await held.multi([op.create('/log/line-', line, { mode: 'persistentSequential' })]);
}

/** Appends two lines; no other process appends between them. */
export async function appendBoth(source: Client | Sessions, one: string, other: string): Promise<void> {
  await new Lock(source, '/locks/log').run(async (held) => {
    await append(source, one, held);
    await append(source, other, held);
  });
}

/** Acquires both locks or neither, in the order of their paths to avoid a deadlock. */
export async function move(source: Client | Sessions, from: string, to: string): Promise<void> {
  const both = new MultiLock([new Lock(source, `/locks/${from}`), new Lock(source, `/locks/${to}`)]);
  await both.run((held) => held.multi([op.delete(`/things/${from}`), op.create(`/things/${to}`)]));
}

/** Pauses while it is unknown whether the hold lasts. */
export function pauses(held: Hold, pause: () => void, goOn: () => void): () => void {
  return held.onStateChange((state) => {
    if (state === 'suspended') pause();
    if (state === 'held') goOn();
  });
}

/**
 * Writes alone. Asks the readers to release the lock, and waits at most ten seconds for those that
 * do not.
 */
export async function rebuild(source: Client | Sessions, work: (held: Hold) => Promise<void>): Promise<void> {
  const lock = new ReadWriteLock(source, '/locks/index');
  const ask = async () => {
    const readers = (await lock.contenders()).filter(({ prefix }) => prefix === 'read-');
    await Promise.all(readers.map((reader) => lock.revoke(reader, { deleteAfterMs: 10_000 })));
  };
  await Promise.all([lock.writeLock.run(work), ask()]);
}

/**
 * Reads until a writer revokes the hold, and releases it after the current query. Rejects when the
 * hold is lost.
 */
export async function readUntilAsked(source: Client | Sessions, query: () => Promise<void>): Promise<void> {
  const asked = new AbortController();
  let isOver!: () => void;
  const over = new Promise<void>((resolve) => (isOver = resolve));
  const onRevocation = () => {
    asked.abort();
    return over;
  };
  await new ReadWriteLock(source, '/locks/index').readLock.run(
    async (held) => {
      while (!asked.signal.aborted) {
        held.signal.throwIfAborted();
        await query();
      }
      isOver();
    },
    { onRevocation },
  );
}

/** Urgent work runs before all other work, and revokes the holds of less urgent work. */
export async function urgently(source: Client | Sessions, work: (held: Hold) => Promise<void>): Promise<void> {
  const lock = new PriorityLock(source, '/locks/table');
  await lock.writeLock(0, { preempt: { deleteAfterMs: 10_000 } }).run(work);
}

/**
 * Work that can wait runs after all other work. Its signal is aborted when the lock is revoked or
 * lost. A revoked lock is released when the work has stopped.
 */
export async function whenThereIsTime(source: Client | Sessions, work: (stop: AbortSignal) => Promise<void>): Promise<void> {
  const asked = new AbortController();
  let stopped!: () => void;
  const over = new Promise<void>((resolve) => (stopped = resolve));
  const onRevocation = () => {
    asked.abort();
    return over;
  };
  await new PriorityLock(source, '/locks/table')
    .readLock(90)
    .run((held) => work(AbortSignal.any([asked.signal, held.signal])).finally(stopped), { onRevocation });
}

/** The data of the holder and of all waiting contenders. */
export async function shows(zk: Client, path: string): Promise<string[]> {
  const line = await new Lock(zk, path).contenders();
  const who = async ({ path: each }: Contender) => utf8.decode((await zk.getData(each)).data ?? undefined);
  return Promise.all(line.map(who));
}
