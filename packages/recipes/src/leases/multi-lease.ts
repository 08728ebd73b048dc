/**
 * Any one of several leases: kazoo's MultiNonBlockingLease, for work that a few hosts shall do.
 *
 *     /leases/crawl
 *       ├─ 0         a lease
 *       └─ 1         another
 */
import { childPath } from '@tskeeper/client/internal';
import { checkArgumentCount, checkOptions, checkSourceAndPath, checkConstructorOptions } from '../validation.ts';
import { Deadline } from '../waiting/deadline.ts';
import type { SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../wait-options.ts';
import type { HeldLease } from './held-lease.ts';
import { Lease, type LeaseOptions } from './lease.ts';

/** How several leases are kept. */
export interface MultiLeaseOptions extends LeaseOptions {
  /** How many leases there are. */
  readonly count: number;
}

/** Any one of several leases: kazoo's MultiNonBlockingLease. */
export class MultiLease {
  /** The znode above the leases. */
  readonly path: string;
  readonly #source: SessionSource;
  readonly #leases: readonly Lease[];

  /**
   * Sends no request. Throws as `Lease` does, and a RangeError for a count that is not a positive
   * integer.
   */
  constructor(source: SessionSource, path: string, options: MultiLeaseOptions) {
    checkSourceAndPath(source, path);
    checkOptions(options, "{ count: 3, durationMs: 60_000, holder: 'host7' }");
    checkConstructorOptions(options, 'MultiLease', arguments.length);
    const { count, ...ofEach } = options;
    if (!Number.isSafeInteger(count) || count < 1) throw new RangeError(`count must be a whole number from 1, not ${count}`);
    this.path = path;
    this.#source = source;
    this.#leases = Array.from({ length: count }, (_, at) => new Lease(source, childPath(path, String(at)), ofEach));
  }

  /**
   * The first lease that is free; undefined if all have other holders. Rejects as
   * `Lease.tryAcquire` does.
   */
  async tryAcquire(options: WaitOptions = {}): Promise<HeldLease | undefined> {
    checkArgumentCount(arguments.length, 1, 'tryAcquire(options)');
    using deadline = new Deadline(this.#source, options, `a reply about the leases of ${this.path}`);
    for (const lease of this.#leases) {
      const hold = await lease.tryAcquire({ signal: deadline.signal });
      if (hold !== undefined) return hold;
    }
    return undefined;
  }
}
