/** What docs/guides/recipes/leases.md shows. */
import { type Client, KeeperError } from '@tskeeper/client';
import { type HeldLease, Lease, MultiLease, type Sessions } from '@tskeeper/recipes';

/** Once an hour, on one host, which keeps the job for the next time: the lease is longer than the hour. Others come in when it fails. */
export async function hourly(source: Client | Sessions, host: string, job: () => Promise<void>): Promise<boolean> {
  const held = await new Lease(source, '/leases/cleanup', { holder: host, durationMs: 70 * 60_000 }).tryAcquire();
  if (held === undefined) return false;
  await job();
  return true;
}

/** For as long as there are parts to do, each of which takes less than a minute. */
export async function allParts(
  source: Client | Sessions,
  host: string,
  parts: readonly ((signal: AbortSignal) => Promise<void>)[],
): Promise<void> {
  await using held = await new Lease(source, '/leases/import', { holder: host, durationMs: 60_000 }).acquire();
  for (const part of parts) {
    await renew(held);
    await part(held.signal);
  }
}

/** Once more when there was no answer, as twice does no harm, and for as long as it is held. */
async function renew(held: HeldLease): Promise<void> {
  for (;;) {
    try {
      await held.renew({ retry: true, signal: held.signal });
      return;
    } catch (error) {
      if (!KeeperError.is(error, 'ConnectionLoss')) throw error;
    }
  }
}

/** Three hosts, no matter which. */
export async function mayCrawl(source: Client | Sessions, host: string): Promise<boolean> {
  const options = { count: 3, holder: host, durationMs: 10 * 60_000 };
  return (await new MultiLease(source, '/leases/crawl', options).tryAcquire()) !== undefined;
}
