/** What docs/guides/recipes/elections.md shows. */
import { type Client, op } from '@tskeeper/client';
import { Election } from '@tskeeper/recipes';

/** Leads whenever it is its turn, until the program ends it. `work` stops when the leadership is lost, which its signal says. */
export async function leadForever(
  zk: Client,
  id: string,
  work: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const election = new Election(zk, '/election', { data: id });
  while (!signal.aborted) {
    await election.run(
      async (leadership) => {
        await leadership.multi([op.setData('/settings', `led by ${id}`)]);
        await leadership.acknowledge();
        await work(AbortSignal.any([leadership.signal, signal]));
      },
      { signal },
    );
  }
}

/** Tells who leads, now and whenever that changes. */
export async function tellLeaders(zk: Client, tell: (leader: string) => void, signal: AbortSignal): Promise<void> {
  for await (const leader of new Election(zk, '/election').observe({ signal })) {
    const id = leader === undefined ? 'nobody' : new TextDecoder().decode(leader.data ?? undefined);
    tell(leader?.acknowledged === false ? `${id}, from now on` : id);
  }
}
