/** What a cache shows of a znode, and the changes that it reports. */
import type { KeeperError, Stat } from '@tskeeper/client';

/**
 * One znode as one reply of a server had it. It never changes; when the znode does, a new value
 * replaces it.
 */
export interface CachedZnode<Data = Uint8Array | null> {
  /** In the paths of the client, or the view, that the cache was created with. */
  readonly path: string;
  /**
   * As read, or the result of `decode`; undefined with `data: false`, and when `decode` has thrown.
   */
  readonly data: Data | undefined;
  /** What `decode` has thrown for these data; undefined if it has not. */
  readonly decodeError: unknown;
  /**
   * `czxid`, `mzxid`, `version` and the other fields about the data belong to `data`. The fields
   * about children and the ACL (`pzxid`, `cversion`, `numChildren`, `aversion`) are as of the last
   * read of the znode; their changes do not cause a read.
   */
  readonly stat: Stat;
}

/**
 * A change of what a cache shows. Changes of one znode are reported in their order; several that
 * follow each other faster than the cache can read are reported as one, and a znode that was
 * created and deleted meanwhile is not reported.
 */
export type CacheChange<Data = Uint8Array | null> =
  /** Shown from now on: it was created, or found when the cache began, or READ has been granted. */
  | { readonly kind: 'created'; readonly path: string; readonly before: undefined; readonly after: CachedZnode<Data> }
  /** Its data were set, perhaps to the same. */
  | { readonly kind: 'changed'; readonly path: string; readonly before: CachedZnode<Data>; readonly after: CachedZnode<Data> }
  /** It is gone. One that was deleted and created again is reported as `deleted` and `created`. */
  | { readonly kind: 'deleted'; readonly path: string; readonly before: CachedZnode<Data>; readonly after: undefined }
  /**
   * This client may not READ it, so neither it nor anything below it is shown. `before` is what was
   * shown until now.
   */
  | {
      readonly kind: 'unreadable';
      readonly path: string;
      readonly before: CachedZnode<Data> | undefined;
      readonly after: undefined;
      readonly error: KeeperError;
    }
  | CacheStatusChange;

/** Reported between the changes, about the cache as a whole. */
export type CacheStatusChange =
  /** The connection, or events, were lost: what is shown from here on may be out of date. */
  | { readonly kind: 'outOfStep' }
  /** Everything has been read again, and all changes have been reported. */
  | { readonly kind: 'inStep' }
  /**
   * The loop did not take more than `maxQueuedChanges`, which were dropped together with all
   * others: read the cache itself.
   */
  | { readonly kind: 'overflowed'; readonly dropped: number };

/**
 * Makes a value of a znode's data. What it throws becomes `decodeError`. Called once for each
 * change of the data.
 */
export type Decode<Data> = (data: Uint8Array | null, path: string, stat: Stat) => Data;

/** The options of every cache. */
export interface CacheOptions<Data> {
  /** Decodes the data. Default: the bytes as they are. */
  readonly decode?: Decode<Data> | undefined;
}

/** How a cache reads. */
export interface ConcurrencyOption {
  /** The maximum number of reads in flight. Default: 16. */
  readonly concurrency?: number | undefined;
}

/** The options of caches of many znodes. */
export interface MultiZnodeCacheOptions<Data> extends CacheOptions<Data>, ConcurrencyOption {
  /**
   * Whether to read data. Without them a cache has names and Stats, in less memory. Default: true.
   */
  readonly data?: boolean | undefined;
}
