/** What docs/guides/recipes/values.md shows. */
import type { Client } from '@tskeeper/client';
import { AtomicNumber, CachedNumber, jsonCodec, SharedCount, SharedValue, textInteger } from '@tskeeper/recipes';

interface Limits {
  readonly requestsPerSecond: number;
}

/** Limits that every process has at hand. */
export function limitsOf(zk: Client): SharedValue<Limits> {
  return new SharedValue(zk, '/app/limits', jsonCodec<Limits>());
}

/** Follows them; keeps to the last that were known while there is no connection. */
export async function obey(limits: SharedValue<Limits>, limit: (requestsPerSecond: number) => void): Promise<void> {
  for await (const { current, inStep } of limits.changes()) {
    if (inStep && current !== undefined) limit(current.value.requestsPerSecond);
  }
}

/** Sets them if they are as this operator has seen them. */
export async function raise(limits: SharedValue<Limits>, to: number): Promise<boolean> {
  return (await limits.compareAndSet(limits.current, { requestsPerSecond: to })) !== undefined;
}

/** Doubles them, whoever else is at it. */
export async function double(limits: SharedValue<Limits>): Promise<number> {
  const { value } = await limits.update((now) => ({ requestsPerSecond: (now?.requestsPerSecond ?? 50) * 2 }));
  return value.requestsPerSecond;
}

/** How many workers there should be: read by all, set by one. */
export async function scale(zk: Client, workers: number): Promise<void> {
  await using count = new SharedCount(zk, '/app/workers');
  await count.set(workers);
}

/** Counts an order, once, whatever is lost on the way. */
export async function countOrder(zk: Client): Promise<bigint> {
  await using count = new AtomicNumber(zk, '/orders/count');
  const { after } = await count.increment({ timeoutMs: 10_000 });
  return after;
}

/** Numbers for invoices; each process asks once for a hundred of them. */
export function invoiceNumbers(zk: Client): CachedNumber<number> {
  return new CachedNumber(new AtomicNumber(zk, '/orders/invoices', { format: textInteger }), 100);
}
