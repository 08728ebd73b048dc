/**
 * The metrics that are printed once for each namespace: reads, writes and quotas. A namespace is
 * the first part of a path; the core numbers those that it counts.
 */
import { type Inspector, namespaceIdEnd, type NamespaceId, noNamespace, type QuotaTotals } from '@tskeeper/core';
import { statBytes } from '@tskeeper/protocol';
import { type MetricEntries, summaryEntries, whole } from './metric-entries.ts';
import { NamespaceSummaries } from './namespace-summaries.ts';

export class NamespaceMetrics {
  readonly #names: string[] = [];
  /** No reads are printed for a namespace that was never read. */
  readonly #reads = new NamespaceSummaries();
  readonly #writes = new NamespaceSummaries();
  readonly #quotasExceeded = new NamespaceSummaries();
  readonly #all = [this.#reads, this.#writes, this.#quotasExceeded];

  assign(namespace: NamespaceId, name: string): void {
    this.#names[namespace] = name;
    for (const summaries of this.#all) summaries.forget(namespace);
  }

  read(namespace: NamespaceId, bytes: number): void {
    // Every read counts as a read of the Stat too.
    if (namespace !== noNamespace) this.#reads.add(namespace, bytes + statBytes);
  }

  written(namespace: NamespaceId, bytes: number): void {
    if (namespace !== noNamespace) this.#writes.add(namespace, bytes);
  }

  quotaExceeded(namespace: NamespaceId): void {
    this.#quotasExceeded.add(namespace, 1);
  }

  /** Namespaces are still printed, with 0, as in ZooKeeper. */
  reset(): void {
    for (const summaries of this.#all) summaries.reset();
  }

  /** The values of one set, by the name that the table of metrics gives it. */
  *entries(name: string, inspect: Inspector): MetricEntries {
    switch (name) {
      case 'read_per_namespace':
        return yield* this.#summarySet(name, this.#reads);
      case 'write_per_namespace':
        return yield* this.#summarySet(name, this.#writes);
      case 'quota_exceeded_error_per_namespace':
        for (const [id, { count }] of this.#quotasExceeded.entries()) yield [`${this.#names[id]!}_${name}`, whole(count)];
        return;
      case 'quota_count_limit_per_namespace':
        return yield* quotaSet(name, inspect, 'countLimit');
      case 'quota_bytes_limit_per_namespace':
        return yield* quotaSet(name, inspect, 'bytesLimit');
      case 'quota_count_usage_per_namespace':
        return yield* quotaSet(name, inspect, 'usedCount');
      case 'quota_bytes_usage_per_namespace':
        return yield* quotaSet(name, inspect, 'usedBytes');
      default:
        throw new Error(`no values are kept for the set ${name}`);
    }
  }

  *#summarySet(name: string, summaries: NamespaceSummaries): MetricEntries {
    for (const [id, values] of summaries.entries()) yield* summaryEntries(`${this.#names[id]!}_${name}`, values);
  }
}

/**
 * For no more namespaces than other sets have, so that clients cannot make the reply any longer.
 */
function* quotaSet(name: string, inspect: Inspector, number: Exclude<keyof QuotaTotals, 'namespace'>): MetricEntries {
  let left = namespaceIdEnd;
  for (const totals of inspect.quotaTotals()) {
    if (left-- === 0) return;
    const value = totals[number];
    if (value !== undefined) yield [`${totals.namespace}_${name}`, whole(value)];
  }
}
