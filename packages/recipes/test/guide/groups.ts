/** The code in docs/guides/recipes/groups.md. */
import type { Client, ConnectOptions } from '@tskeeper/client';
import { Group, type Hold, type Membership, PersistentNode, Sessions, SetPartitioner } from '@tskeeper/recipes';

/** Stays a member until the signal is aborted, even if its session expires. */
export async function serve(servers: string, address: string, until: AbortSignal, options: ConnectOptions = {}): Promise<void> {
  await using sessions = await Sessions.start(servers, options);
  await using member = await new Group(sessions, '/workers').join('alice', { data: address });
  member.onStateChange((state) => console.log(`${member.path} is ${state}`));
  if (!until.aborted) await new Promise((resolve) => until.addEventListener('abort', resolve, { once: true }));
}

/** Reports the members, and whether the list is up to date. */
export async function look(source: Client | Sessions, tell: (line: string) => void): Promise<void> {
  for await (const { members, isSynced } of new Group(source, '/workers').observe()) {
    tell(`${members.map(({ name }) => name).join(', ') || 'no members'}${isSynced ? '' : ', possibly out of date'}`);
  }
}

/** Looks a member up in the last list; sends no request. */
export function addressOf({ members }: Membership, name: string): string | undefined {
  const member = members.find((each) => each.name === name);
  return member && new TextDecoder().decode(member.data ?? undefined);
}

/** Announces that this machine is up; the znode lasts a day longer than this process. */
export async function sign(source: Client | Sessions): Promise<PersistentNode> {
  const node = new PersistentNode(source, '/machines/m7', 'up', { mode: 'persistentWithTtl', ttlMs: 24 * 3_600_000 });
  await node.ready({ timeoutMs: 30_000 });
  await node.setData('up, and warm');
  return node;
}

/** Works on its share of the queues, also when members join or leave. */
export function share(source: Client | Sessions, name: string, process: (queue: string, held: Hold) => Promise<void>): SetPartitioner {
  const queues = ['mail', 'pictures', 'reports'];
  return new SetPartitioner(
    source,
    '/queues',
    name,
    queues,
    async ({ item, signal, hold }) => {
      while (!signal.aborted) await process(item, hold);
    },
    { timeBoundaryMs: 5000 },
  );
}
