/** The code in docs/guides/recipes/values.md. */
import type { Client } from '@tskeeper/client';
import { AtomicNumber, CachedAtomicNumber, jsonCodec, SharedCount, SharedValue, textInteger } from '@tskeeper/recipes';

interface Limits {
  readonly requestsPerSecond: number;
}

/** Limits that every process has in memory. */
export function limitsOf(zk: Client): SharedValue<Limits> {
  return new SharedValue(zk, '/app/limits', jsonCodec<Limits>());
}

/** Applies each change; keeps the last known limits while the connection is lost. */
export async function obey(limits: SharedValue<Limits>, limit: (requestsPerSecond: number) => void): Promise<void> {
  for await (const { current, isSynced } of limits.changes()) {
    if (isSynced && current !== undefined) limit(current.value.requestsPerSecond);
  }
}

/** Sets the limits only if they have not changed since this operator saw them. */
export async function raise(limits: SharedValue<Limits>, to: number): Promise<boolean> {
  return (await limits.compareAndSet(limits.current, { requestsPerSecond: to })) !== undefined;
}

/** Doubles the limits, also while others change them. */
export async function double(limits: SharedValue<Limits>): Promise<number> {
  const { value } = await limits.update((now) => ({ requestsPerSecond: (now?.requestsPerSecond ?? 50) * 2 }));
  return value.requestsPerSecond;
}

/** Sets the number of workers, which all processes read. */
export async function scale(zk: Client, workers: number): Promise<void> {
  await using count = new SharedCount(zk, '/app/workers');
  await count.set(workers);
}

/** Counts an order once, even if replies are lost. */
export async function countOrder(zk: Client): Promise<bigint> {
  await using count = new AtomicNumber(zk, '/orders/count');
  const { after } = await count.increment({ timeoutMs: 10_000 });
  return after;
}

/** Numbers for invoices; each process reserves a hundred of them at a time. */
export function invoiceNumbers(zk: Client): CachedAtomicNumber<number> {
  return new CachedAtomicNumber(new AtomicNumber(zk, '/orders/invoices', { format: textInteger }), 100);
}
