/** How values are printed under the names of metrics: a summary becomes a line per statistic. */
import type { MetricValue } from './metrics.ts';
import { AdvancedSummary, type SummaryValues } from './summary.ts';

/** Names and values, in the order of printing. */
export type MetricEntries = Generator<readonly [string, MetricValue], void, undefined>;

export function whole(value: number): MetricValue {
  return { value, isDouble: false };
}

export function* summaryEntries(name: string, summary: SummaryValues): MetricEntries {
  yield [`avg_${name}`, { value: summary.avg, isDouble: true }];
  yield [`min_${name}`, whole(summary.min)];
  yield [`max_${name}`, whole(summary.max)];
  yield [`cnt_${name}`, whole(summary.count)];
  yield [`sum_${name}`, whole(summary.sum)];
  if (!(summary instanceof AdvancedSummary)) return;
  yield [`p50_${name}`, whole(summary.percentile(0.5))];
  yield [`p95_${name}`, whole(summary.percentile(0.95))];
  yield [`p99_${name}`, whole(summary.percentile(0.99))];
  yield [`p999_${name}`, whole(summary.percentile(0.999))];
}
