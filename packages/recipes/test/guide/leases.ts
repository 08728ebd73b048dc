/** What docs/guides/recipes/leases.md shows. */
import type { Client } from '@tskeeper/client';
import { Lease, MultiLease } from '@tskeeper/recipes';

/** Once an hour, on one host, which keeps the job for the next time: the lease is longer than the hour. Others come in when it fails. */
export async function hourly(zk: Client, host: string, job: () => Promise<void>): Promise<boolean> {
  const held = await new Lease(zk, '/leases/cleanup', { holder: host, durationMs: 70 * 60_000 }).tryAcquire();
  if (held === undefined) return false;
  await job();
  return true;
}

/** For as long as there are parts to do, each of which takes less than a minute. */
export async function allParts(zk: Client, host: string, parts: readonly ((signal: AbortSignal) => Promise<void>)[]): Promise<void> {
  await using held = await new Lease(zk, '/leases/import', { holder: host, durationMs: 60_000 }).acquire();
  for (const part of parts) {
    await held.renew();
    await part(held.signal);
  }
}

/** Three hosts, no matter which. */
export async function mayCrawl(zk: Client, host: string): Promise<boolean> {
  const options = { count: 3, holder: host, durationMs: 10 * 60_000 };
  return (await new MultiLease(zk, '/leases/crawl', options).tryAcquire()) !== undefined;
}
