/** The program of docs/guides/moving-from-zookeeper.md. */
import { type Client, connect, KeeperError, type SessionEvent } from '@tskeeper/client';

/** Follows a setting until the signal, and counts how often it was applied. */
export async function follow(servers: string, apply: (setting: string) => void, signal: AbortSignal): Promise<void> {
  await using zk = await connect(servers, { sessionTimeoutMs: 20_000, retry: true, signal });
  zk.on('state', ({ state, reason }: SessionEvent) => console.log(state, reason ?? ''));
  await zk.ensurePath('/settings');

  for await (const event of zk.watch('/settings/colour', { signal })) {
    if (event.type === 'NodeDeleted' || event.type === 'NodeChildrenChanged') continue;
    try {
      const { data } = await zk.getData('/settings/colour');
      apply(new TextDecoder().decode(data ?? undefined));
      await count(zk);
    } catch (error) {
      if (!KeeperError.is(error, 'NoNode', 'ConnectionLoss')) throw error;
    }
  }
}

async function count(zk: Client): Promise<void> {
  const next = (data: Uint8Array | null | undefined) => Number(new TextDecoder().decode(data ?? undefined)) + 1;
  await zk.update('/settings/applied', (data) => String(next(data)), { create: true });
}
