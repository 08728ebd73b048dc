/** What docs/guides/recipes/locks.md shows. */
import { type Client, op } from '@tskeeper/client';
import { type Contender, type Held, Lock, MultiLock, PriorityLock, type Sessions, SharedLock } from '@tskeeper/recipes';

const utf8 = new TextDecoder();

/** One at a time. What is written goes through the hold, so that nothing is written by one who has lost it. */
export async function countUp(source: Client | Sessions): Promise<number> {
  await using held = await new Lock(source, '/locks/counter', { data: 'worker 7' }).acquire({ timeoutMs: 30_000 });
  const { data, stat } = await held.zk.getData('/counter', { retry: true });
  const next = Number(utf8.decode(data ?? undefined)) + 1;
  await held.multi([op.setData('/counter', String(next), { version: stat.version })], { retry: true });
  return next;
}

/** What is written elsewhere takes the token along; whoever stores it refuses a token lower than one it has seen. */
export async function writeReport(source: Client | Sessions, store: (report: string, token: bigint) => Promise<void>): Promise<void> {
  await new Lock(source, '/locks/report').run(async (held) => {
    for (const report of ['january', 'february']) {
      held.signal.throwIfAborted();
      await store(report, held.fencingToken);
    }
  });
}

/** For whoever has the lock already, and for whoever has not: it is given back when everyone who has it has given it back. */
export async function append(source: Client | Sessions, line: string, mine?: Held): Promise<void> {
  await using held = mine?.again() ?? (await new Lock(source, '/locks/log').acquire());
  await held.multi([op.create('/log/line-', line, { mode: 'persistentSequential' })]);
}

/** Two lines, with nothing of others between them. */
export async function appendBoth(source: Client | Sessions, one: string, other: string): Promise<void> {
  await new Lock(source, '/locks/log').run(async (held) => {
    await append(source, one, held);
    await append(source, other, held);
  });
}

/** Both, or neither: in the order of their paths, so that nobody waits for one who waits for them. */
export async function move(source: Client | Sessions, from: string, to: string): Promise<void> {
  const both = new MultiLock([new Lock(source, `/locks/${from}`), new Lock(source, `/locks/${to}`)]);
  await both.run((held) => held.multi([op.delete(`/things/${from}`), op.create(`/things/${to}`)]));
}

/** Stands still while nobody knows whether the hold lasts. */
export function pauses(held: Held, pause: () => void, goOn: () => void): () => void {
  return held.onStateChange((state) => {
    if (state === 'suspended') pause();
    if (state === 'held') goOn();
  });
}

/** Many readers, or one writer, who asks the readers to go and waits no longer than ten seconds for those who do not. */
export async function rebuild(source: Client | Sessions, work: (held: Held) => Promise<void>): Promise<void> {
  const lock = new SharedLock(source, '/locks/index');
  const ask = async () => {
    const readers = (await lock.contenders()).filter(({ kind }) => kind === 'read-');
    await Promise.all(readers.map((reader) => lock.revoke(reader, { deleteAfterMs: 10_000 })));
  };
  await Promise.all([lock.writing.run(work), ask()]);
}

/** Reads until a writer asks for the hold back, and releases it after the query that runs. Rejects when the hold is lost. */
export async function readUntilAsked(source: Client | Sessions, query: () => Promise<void>): Promise<void> {
  const asked = new AbortController();
  let isOver!: () => void;
  const over = new Promise<void>((resolve) => (isOver = resolve));
  const onRevocation = () => {
    asked.abort();
    return over;
  };
  await new SharedLock(source, '/locks/index').reading.run(
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

/** Urgent work goes ahead of all other, and asks those for the lock who have it for something less urgent. */
export async function urgently(source: Client | Sessions, work: (held: Held) => Promise<void>): Promise<void> {
  const lock = new PriorityLock(source, '/locks/table');
  await lock.writing(0, { preempt: { deleteAfterMs: 10_000 } }).run(work);
}

/** What has time waits for all other work. Its signal is aborted when the lock is asked back, which is given back when the work has stopped, and when the lock is lost. */
export async function whenThereIsTime(source: Client | Sessions, work: (stop: AbortSignal) => Promise<void>): Promise<void> {
  const asked = new AbortController();
  let stopped!: () => void;
  const over = new Promise<void>((resolve) => (stopped = resolve));
  const onRevocation = () => {
    asked.abort();
    return over;
  };
  await new PriorityLock(source, '/locks/table')
    .reading(90)
    .run((held) => work(AbortSignal.any([asked.signal, held.signal])).finally(stopped), { onRevocation });
}

/** Who has a lock, and who waits for it. */
export async function shows(zk: Client, path: string): Promise<string[]> {
  const line = await new Lock(zk, path).contenders();
  const who = async ({ path: each }: Contender) => utf8.decode((await zk.getData(each)).data ?? undefined);
  return Promise.all(line.map(who));
}
