/** The code in docs/guides/recipes/semaphores.md. */
import type { Client } from '@tskeeper/client';
import { Semaphore } from '@tskeeper/recipes';

/** At most five at a time, over all processes. */
export async function fetchPage(zk: Client, fetchIt: (signal: AbortSignal) => Promise<string>): Promise<string> {
  const semaphore = new Semaphore(zk, '/semaphores/crawler', { size: 5 });
  return semaphore.run((lease) => fetchIt(lease.signal), { timeoutMs: 60_000 });
}

/** A big job takes three of the five leases together: it waits until it can have all three. */
export async function fetchSite(zk: Client, fetchAll: (atATime: number, signal: AbortSignal) => Promise<void>): Promise<void> {
  await using leases = await new Semaphore(zk, '/semaphores/crawler', { size: 5 }).acquireMany(3);
  await fetchAll(leases.holds.length, leases.signal);
}

/** Sets the size. Clients without a size of their own apply a change at once. */
export async function atMost(zk: Client, size: number): Promise<void> {
  await new Semaphore(zk, '/semaphores/mail').resize(size);
}
