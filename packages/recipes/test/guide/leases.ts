/** The code in docs/guides/recipes/leases.md. */
import { type Client, KeeperError } from '@tskeeper/client';
import { type HeldLease, Lease, MultiLease, type Sessions } from '@tskeeper/recipes';

/**
 * Runs a job on one host; call it once an hour. The lease is longer than an hour, so the host keeps
 * the job. Another host takes it after this one has failed.
 */
export async function hourly(source: Client | Sessions, host: string, job: () => Promise<void>): Promise<boolean> {
  const held = await new Lease(source, '/leases/cleanup', { holder: host, durationMs: 70 * 60_000 }).tryAcquire();
  if (held === undefined) return false;
  await job();
  return true;
}

/** Renews the lease before each part; each part takes less than a minute. */
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

/** Retries after a lost connection while the lease is held; a second renewal does no harm. */
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

/** Any three hosts. */
export async function mayCrawl(source: Client | Sessions, host: string): Promise<boolean> {
  const options = { count: 3, holder: host, durationMs: 10 * 60_000 };
  return (await new MultiLease(source, '/leases/crawl', options).tryAcquire()) !== undefined;
}
