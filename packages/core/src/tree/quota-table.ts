/**
 * Quotas: limits on the number of znodes and bytes of a subtree, and its usage.
 *
 * The limits for /p are the data of /zookeeper/quota/p/zookeeper_limits, the usage that of
 * /zookeeper/quota/p/zookeeper_stats. Both are ordinary znodes that an administrator creates; the
 * server rewrites the second. This table holds them parsed, so that a create under a quota need not
 * parse anything. The tree passes it every change below /zookeeper/quota, and writes the usage
 * back.
 *
 * Where ZooKeeper's own parser would throw and stop the server (ZOOKEEPER-1448), a value that is
 * not a number counts as unset, and is dropped.
 */

export const quotaRoot = '/zookeeper/quota';
const limitsName = 'zookeeper_limits';
const statsName = 'zookeeper_stats';

/** No limit, or unknown. */
const none = -1;

/** Why a change would exceed a quota. */
export interface QuotaViolation {
  /** True if a hard limit would be exceeded: the change must be refused if quotas are enforced. */
  readonly isHard: boolean;
  /** True if a soft limit would be exceeded: log a warning. */
  readonly isSoft: boolean;
  /** The path that has the quota. */
  readonly path: string;
  readonly what: 'count' | 'bytes';
  readonly limit: number;
  /** The usage after the change. */
  readonly usage: number;
}

/**
 * The sums of the quotas below one top-level znode. A number is undefined while no quota has it.
 */
export interface QuotaTotals {
  /** The first name of their paths. */
  readonly namespace: string;
  /**
   * Hard limits, or soft ones where there is no hard one; a quota without a limit adds -1, as in
   * ZooKeeper.
   */
  readonly countLimit: number | undefined;
  readonly bytesLimit: number | undefined;
  readonly usedCount: number | undefined;
  readonly usedBytes: number | undefined;
}

/** The sums as maintained by every change: reading them must not visit every quota. */
class Totals {
  readonly namespace: string;
  /** Number of quotas with limits, and of quotas with a usage znode. */
  limits = 0;
  usages = 0;
  countLimit = 0;
  bytesLimit = 0;
  usedCount = 0;
  usedBytes = 0;

  constructor(namespace: string) {
    this.namespace = namespace;
  }

  /** Adds a quota, or subtracts it with `sign` -1. */
  add(quota: Quota, sign: 1 | -1): void {
    if (quota.hasLimits) {
      this.limits += sign;
      this.countLimit += sign * limitOf(quota.countHard, quota.countSoft);
      this.bytesLimit += sign * limitOf(quota.bytesHard, quota.bytesSoft);
    }
    if (quota.statsNode !== 0) {
      this.usages += sign;
      this.usedCount += sign * quota.usedCount;
      this.usedBytes += sign * quota.usedBytes;
    }
  }
}

export class Quota {
  /** The path that has the quota; its usage includes the znode itself. */
  readonly path: string;
  readonly totals: Totals;
  /** False if only the usage znode exists: nothing is limited or updated, as in ZooKeeper. */
  hasLimits = false;
  countSoft = none;
  bytesSoft = none;
  countHard = none;
  bytesHard = none;
  /** The handle of the usage znode, 0 if there is none. */
  statsNode = 0;
  usedCount = none;
  usedBytes = none;
  /** Keys of the usage text besides count and bytes, in order; kept when the text is rewritten. */
  usageExtra = '';

  constructor(path: string, totals: Totals) {
    this.path = path;
    this.totals = totals;
  }
}

export class QuotaTable {
  readonly #quotas = new Map<string, Quota>();
  readonly #totals = new Map<string, Totals>();
  #limitedCount = 0;

  /** True if any path has limits; otherwise the rest of this class can be skipped. */
  get hasQuotas(): boolean {
    return this.#limitedCount > 0;
  }

  /** In the order in which the namespaces got their first quota. */
  *totals(): Generator<QuotaTotals, void, undefined> {
    for (const { namespace, limits, usages, countLimit, bytesLimit, usedCount, usedBytes } of this.#totals.values()) {
      yield {
        namespace,
        countLimit: limits === 0 ? undefined : countLimit,
        bytesLimit: limits === 0 ? undefined : bytesLimit,
        usedCount: usages === 0 ? undefined : usedCount,
        usedBytes: usages === 0 ? undefined : usedBytes,
      };
    }
  }

  clear(): void {
    this.#quotas.clear();
    this.#totals.clear();
    this.#limitedCount = 0;
  }

  /**
   * The quota with its limits at a path such as /zookeeper/quota/p/zookeeper_limits; undefined for
   * other paths and for the root, which cannot have one.
   */
  ofLimitsPath(path: string): Quota | undefined {
    return this.#ofPath(path, limitsName);
  }

  ofStatsPath(path: string): Quota | undefined {
    return this.#ofPath(path, statsName);
  }

  #ofPath(path: string, name: string): Quota | undefined {
    const end = path.length - name.length - 1;
    if (end <= quotaRoot.length || !path.endsWith(name) || path[end] !== '/' || !path.startsWith(`${quotaRoot}/`)) return undefined;
    const limitedPath = path.slice(quotaRoot.length, end);
    let quota = this.#quotas.get(limitedPath);
    if (quota === undefined) {
      quota = new Quota(limitedPath, this.#totalsOf(limitedPath));
      this.#quotas.set(limitedPath, quota);
    }
    return quota;
  }

  #totalsOf(path: string): Totals {
    const end = path.indexOf('/', 1);
    const namespace = path.slice(1, end === -1 ? undefined : end);
    let totals = this.#totals.get(namespace);
    if (totals === undefined) {
      totals = new Totals(namespace);
      this.#totals.set(namespace, totals);
    }
    return totals;
  }

  setLimits(quota: Quota, text: string): void {
    quota.totals.add(quota, -1);
    if (!quota.hasLimits) this.#limitedCount++;
    quota.hasLimits = true;
    const values = parse(text);
    quota.countSoft = numberOf(values, 'count');
    quota.bytesSoft = numberOf(values, 'bytes');
    quota.countHard = numberOf(values, 'countHardLimit');
    quota.bytesHard = numberOf(values, 'byteHardLimit');
    quota.totals.add(quota, 1);
  }

  clearLimits(quota: Quota): void {
    quota.totals.add(quota, -1);
    if (quota.hasLimits) this.#limitedCount--;
    quota.hasLimits = false;
    quota.totals.add(quota, 1);
    this.#maybeForget(quota);
  }

  setStatsNode(quota: Quota, node: number): void {
    quota.totals.add(quota, -1);
    quota.statsNode = node;
    quota.totals.add(quota, 1);
    this.#maybeForget(quota);
  }

  #maybeForget({ path, hasLimits, statsNode, totals }: Quota): void {
    if (hasLimits || statsNode !== 0) return;
    this.#quotas.delete(path);
    if (totals.limits === 0 && totals.usages === 0) this.#totals.delete(totals.namespace);
  }

  /** A client has written the usage znode: continue from its values. */
  setUsageText(quota: Quota, text: string): void {
    const values = parse(text);
    this.#setUsed(quota, numberOf(values, 'count'), numberOf(values, 'bytes'));
    values.delete('count');
    values.delete('bytes');
    quota.usageExtra = [...values.keys()]
      .sort()
      .map((key) => `;${key}=${values.get(key)!}`)
      .join('');
  }

  /** Sets the result of a recount: other keys of the text are dropped, as in ZooKeeper. */
  setUsage(quota: Quota, count: number, bytes: number): void {
    this.#setUsed(quota, count, bytes);
    quota.usageExtra = '';
  }

  /** Adds a change to the usage of this quota, the nearest one. */
  addUsage(quota: Quota, count: number, bytes: number): void {
    this.#setUsed(quota, quota.usedCount + count, quota.usedBytes + bytes);
  }

  #setUsed(quota: Quota, count: number, bytes: number): void {
    quota.totals.add(quota, -1);
    quota.usedCount = count;
    quota.usedBytes = bytes;
    quota.totals.add(quota, 1);
  }

  usageText(quota: Quota): string {
    // The additional = makes parsers before 3.6 ignore the rest.
    const extra = quota.usageExtra === '' ? '' : `=${quota.usageExtra}`;
    return `count=${quota.usedCount},bytes=${quota.usedBytes}${extra}`;
  }

  /** The limits that apply to a path: the nearest upward, including the path itself. */
  nearest(path: string): Quota | undefined {
    let end = path.length;
    while (end > 0) {
      const quota = this.#quotas.get(end === path.length ? path : path.slice(0, end));
      if (quota?.hasLimits) return quota;
      end = path.lastIndexOf('/', end - 1);
    }
    return undefined;
  }

  /**
   * Whether a change exceeds the limits; undefined if not. As in ZooKeeper, a hard limit hides the
   * soft one, a change of 0 is never checked, and a change that shrinks a subtree is refused while
   * it is still too large.
   */
  check(path: string, bytesDelta: number, countDelta: number): QuotaViolation | undefined {
    const quota = this.nearest(path);
    if (quota === undefined || quota.statsNode === 0) return undefined;
    const byCount =
      countDelta === 0 ? undefined : violationOf(quota, 'count', quota.usedCount + countDelta, quota.countSoft, quota.countHard);
    if (byCount?.isHard) return byCount;
    const byBytes =
      bytesDelta === 0 ? undefined : violationOf(quota, 'bytes', quota.usedBytes + bytesDelta, quota.bytesSoft, quota.bytesHard);
    if (byBytes?.isHard) return { ...byBytes, isSoft: byCount !== undefined };
    return byCount ?? byBytes;
  }
}

/** The data of a limits or usage znode as text. */
export function textOf(data: Uint8Array | null): string {
  return data === null ? '' : Buffer.from(data.buffer, data.byteOffset, data.length).toString('utf8');
}

/** A hard limit hides the soft one. */
function limitOf(hard: number, soft: number): number {
  return hard > none ? hard : soft;
}

function violationOf(
  quota: Quota,
  what: 'count' | 'bytes',
  usage: number,
  softLimit: number,
  hardLimit: number,
): QuotaViolation | undefined {
  const isHard = hardLimit > none;
  const limit = limitOf(hardLimit, softLimit);
  if (limit <= none || usage <= limit) return undefined;
  return { isHard, isSoft: !isHard, path: quota.path, what, limit, usage };
}

/**
 * The pairs of a text such as `count=2,bytes=-1=;countHardLimit=3`, with numbers in plain decimal.
 */
function parse(text: string): Map<string, string> {
  const values = new Map<string, string>();
  for (const pair of text.split(/[,;]+/)) {
    const [key, value] = pair.split('=');
    // A value that is not a number is omitted, and counts as unset.
    if (key !== undefined && key !== '' && value !== undefined && /^[+-]?\d{1,18}$/.test(value)) values.set(key, plainDecimal(value));
  }
  return values;
}

function numberOf(values: ReadonlyMap<string, string>, key: string): number {
  return Number(values.get(key) ?? none);
}

function plainDecimal(value: string): string {
  const digits = value.replace(/^[+-]?0*(?=\d)/, '');
  return value.startsWith('-') && digits !== '0' ? `-${digits}` : digits;
}
