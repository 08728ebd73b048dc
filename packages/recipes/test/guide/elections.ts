/** The code in docs/guides/recipes/elections.md. */
import { type Client, op } from '@tskeeper/client';
import { Election, LeaderLatch, type Leadership, type Sessions } from '@tskeeper/recipes';

/**
 * Leads whenever it is elected, also in later sessions, until the signal is aborted. `work` stops
 * when its own signal is aborted.
 */
export async function leadForever(
  source: Client | Sessions,
  id: string,
  work: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  await using candidate = new LeaderLatch(source, '/election', { data: id });
  await candidate.run(
    async (leadership, stop) => {
      await leadership.multi([op.setData('/settings', `led by ${id}`)], { retry: true });
      await leadership.acknowledge();
      await work(stop);
    },
    { signal },
  );
}

/** Starts something when it becomes the leader, and stops it when it no longer leads. */
export function whileLeading(source: Client | Sessions, id: string, start: (leadership: Leadership) => () => void): LeaderLatch {
  const candidate = new LeaderLatch(source, '/election', { data: id });
  let stop: (() => void) | undefined;
  candidate.onChange((leadership) => {
    stop?.();
    stop = leadership && start(leadership);
  });
  return candidate;
}

/** Leads once, to do one thing. */
export async function onceAsLeader(source: Client | Sessions, id: string, work: (leadership: Leadership) => Promise<void>): Promise<void> {
  await new Election(source, '/election', { data: id }).run(work, { timeoutMs: 60_000 });
}

/** Reports the leader, now and after each change. */
export async function tellLeaders(source: Client | Sessions, tell: (leader: string) => void, signal: AbortSignal): Promise<void> {
  for await (const leader of new Election(source, '/election').observe({ signal })) {
    const id = leader === undefined ? 'no leader' : new TextDecoder().decode(leader.data ?? undefined);
    tell(leader?.acknowledged === false ? `${id}, from now on` : id);
  }
}
