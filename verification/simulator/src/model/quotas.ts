/**
 * Quotas: a znode below /zookeeper/quota holds the limits of a subtree, and its sibling the usage,
 * both as text.
 */
import type { Data } from './operation-types.ts';
import { ancestorsOf } from './znode-path.ts';

export const quotaRoot = '/zookeeper/quota';
export const limitsName = 'zookeeper_limits';
export const statsName = 'zookeeper_stats';

export function parseQuota(data: Data): Map<string, number> {
  const values = new Map<string, number>();
  for (const pair of (data ?? '').split(/[,;]+/)) {
    const [key, value] = pair.split('=');
    if (key !== undefined && key !== '') values.set(key, value === undefined || value === '' ? -1 : Number(value));
  }
  return values;
}

export function formatQuota(values: ReadonlyMap<string, number>): string {
  const more = [...values.keys()].filter((key) => key !== 'count' && key !== 'bytes').sort();
  const head = `count=${values.get('count') ?? -1},bytes=${values.get('bytes') ?? -1}`;
  return more.length === 0 ? head : `${head}=${more.map((key) => `;${key}=${values.get(key)}`).join('')}`;
}

/**
 * The limits of each quota, and its usage if there is such a znode, by the path that has the quota.
 */
export type Quotas = ReadonlyMap<string, { readonly limits: Data; readonly usage: Data | undefined }>;

/** The nearest path upwards, the path itself included, that has limits. */
export function quotaPathOf(path: string, quotaPaths: { has(path: string): boolean }): string | undefined {
  return [path, ...ancestorsOf(path)].find((candidate) => quotaPaths.has(candidate));
}

/** What a request would add, and where. */
export interface QuotaCheck {
  readonly path: string;
  readonly bytes: number;
  readonly count: number;
  /** The index of the operation in a multi; 0 for any other request. */
  readonly part: number;
}

/**
 * Whether a hard limit of the nearest quota upwards, the path itself included, would be exceeded.
 */
export function exceedsQuota(quotas: Quotas, { path, bytes, count }: QuotaCheck): boolean {
  const quotaPath = quotaPathOf(path, quotas);
  const quota = quotaPath === undefined ? undefined : quotas.get(quotaPath)!;
  if (quota?.usage === undefined) return false;
  const limits = parseQuota(quota.limits);
  const usage = parseQuota(quota.usage);
  const over = (growth: number, hardLimit: string, counter: string): boolean => {
    const hard = limits.get(hardLimit) ?? -1;
    return growth !== 0 && hard > -1 && (usage.get(counter) ?? -1) + growth > hard;
  };
  return over(count, 'countHardLimit', 'count') || over(bytes, 'byteHardLimit', 'bytes');
}
