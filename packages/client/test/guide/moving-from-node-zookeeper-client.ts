/** What docs/guides/moving-from-node-zookeeper-client.md shows. */
import { type Client, connect, KeeperError, op } from '@tskeeper/client';

/** Does jobs until the signal: registers, and takes what is in /app/jobs and what comes there. */
export async function work(servers: string, name: string, signal: AbortSignal): Promise<void> {
  await using zk = await connect(servers, { sessionTimeoutMs: 10_000, retry: true, signal });
  await zk.ensurePath('/app/jobs');
  await zk.ensurePath('/app/done');
  await zk.create('/app/workers/worker-', name, { mode: 'ephemeralSequential', parents: true, protection: true });

  for await (const event of zk.watch('/app/jobs', { signal })) {
    if (event.type !== 'Reread' && event.type !== 'NodeChildrenChanged') continue;
    const { children } = await zk.getChildren('/app/jobs');
    for (const job of children.toSorted()) await finish(zk, job, name);
  }
}

async function finish(zk: Client, job: string, name: string): Promise<void> {
  try {
    await zk.multi([op.delete(`/app/jobs/${job}`), op.create(`/app/done/${job}`, name)]);
  } catch (error) {
    // Another was faster; or no answer came, and then a Reread follows: the job is still there, or it is done.
    if (!KeeperError.is(error, 'NoNode', 'ConnectionLoss')) throw error;
  }
}
