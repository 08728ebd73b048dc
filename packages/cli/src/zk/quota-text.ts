/**
 * Quotas as ZooKeeper stores them: znodes below /zookeeper/quota with data such as
 * `count=5,bytes=100`, and further values after a second `=`.
 */

export const quotaRoot = '/zookeeper/quota';

export function quotaPath(path: string): string {
  return quotaRoot + path;
}

export function quotaLimitPath(path: string): string {
  return `${quotaRoot}${path}/${quotaLimitName}`;
}

export function quotaStatPath(path: string): string {
  return `${quotaRoot}${path}/${quotaStatName}`;
}

export const quotaLimitName = 'zookeeper_limits';
export const quotaStatName = 'zookeeper_stats';

export type QuotaField = 'count' | 'bytes' | 'countHardLimit' | 'byteHardLimit';
/** Values by name, in no particular order; -1 means no limit. */
export type QuotaValues = ReadonlyMap<string, number>;

export function parseQuota(data: Uint8Array | null): Map<string, number> {
  const values = new Map<string, number>();
  for (const pair of Buffer.from(data ?? [])
    .toString()
    .split(/[,;]+/)) {
    const [name = '', value = ''] = pair.split('=');
    if (name !== '') values.set(name, value === '' ? -1 : Number(value));
  }
  return values;
}

/**
 * The format of ZooKeeper's StatsTrack: first what older servers know, then a second `=`, at which
 * they stop reading.
 */
export function formatQuota(values: QuotaValues): string {
  const base = `count=${values.get('count') ?? -1},bytes=${values.get('bytes') ?? -1}`;
  const others = [...values].filter(([name]) => name !== 'count' && name !== 'bytes').toSorted(([a], [b]) => (a < b ? -1 : 1));
  return others.length === 0 ? base : `${base}=${others.map(([name, value]) => `;${name}=${value}`).join('')}`;
}

export function quotaView(values: QuotaValues): Record<string, number> {
  return Object.fromEntries(values);
}
