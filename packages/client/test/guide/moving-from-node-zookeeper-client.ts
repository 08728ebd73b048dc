/** The program of docs/guides/moving-from-node-zookeeper-client.md. */
import { type Client, connect, KeeperError, op } from '@tskeeper/client';

/** Registers, and takes the current and future jobs in /app/jobs, until the signal. */
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
    // Another worker was faster. Or no answer arrived: a Reread follows, and the job is still there or done.
    if (!KeeperError.is(error, 'NoNode', 'ConnectionLoss')) throw error;
  }
}
