/** What docs/guides/recipes/semaphores.md shows. */
import type { Client } from '@tskeeper/client';
import { Semaphore } from '@tskeeper/recipes';

/** Five at a time, in all processes together. */
export async function fetchPage(zk: Client, fetchIt: (signal: AbortSignal) => Promise<string>): Promise<string> {
  const semaphore = new Semaphore(zk, '/semaphores/crawler', { size: 5 });
  return semaphore.run((lease) => fetchIt(lease.signal), { timeoutMs: 60_000 });
}

/** A big job takes three of the five at once: all of them, or it goes on waiting. */
export async function fetchSite(zk: Client, fetchAll: (atATime: number, signal: AbortSignal) => Promise<void>): Promise<void> {
  await using leases = await new Semaphore(zk, '/semaphores/crawler', { size: 5 }).acquireMany(3);
  await fetchAll(leases.holds.length, leases.signal);
}

/** Whoever uses it without a size goes by what the znode says, at once when that changes. */
export async function atMost(zk: Client, size: number): Promise<void> {
  await new Semaphore(zk, '/semaphores/mail').resize(size);
}
