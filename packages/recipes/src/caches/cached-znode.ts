/** What a cache shows of a znode, and what it tells of its changes. */
import type { KeeperError, Stat } from '@tskeeper/client';

/** One znode as one answer of a server had it. It never changes; when the znode does, another takes its place. */
export interface CachedZnode<Data = Uint8Array | null> {
  readonly path: string;
  /** As read, or as `decode` made it; undefined with `data: false`, and when `decode` has thrown. */
  readonly data: Data | undefined;
  /** What `decode` has thrown at these data; undefined when it has not. */
  readonly decodeError: unknown;
  /**
   * `czxid`, `mzxid`, `version` and what else is of the data belong to `data`. What is of its children and its ACL (`pzxid`, `cversion`, `numChildren`,
   * `aversion`) is as of the last time the znode was read, which their changes are no occasion for.
   */
  readonly stat: Stat;
}

/**
 * What has happened to what a cache shows. Changes of one znode are told in their order; several that follow each other faster than they can be
 * read are told as one, and what was made and deleted meanwhile is not told at all.
 */
export type CacheChange<Data = Uint8Array | null> =
  /** It is shown from now on: it was made, or was found when the cache began, or READ has been granted. */
  | { readonly kind: 'created'; readonly path: string; readonly before: undefined; readonly after: CachedZnode<Data> }
  /** Its data were set. To the same as before, perhaps. */
  | { readonly kind: 'changed'; readonly path: string; readonly before: CachedZnode<Data>; readonly after: CachedZnode<Data> }
  /** It is gone. One that was deleted and made again is told of as `deleted` and `created`. */
  | { readonly kind: 'deleted'; readonly path: string; readonly before: CachedZnode<Data>; readonly after: undefined }
  /** This client may not READ it, so neither it nor what is below it is shown. `before` is what was shown until now. */
  | {
      readonly kind: 'unreadable';
      readonly path: string;
      readonly before: CachedZnode<Data> | undefined;
      readonly after: undefined;
      readonly error: KeeperError;
    }
  | CacheMark;

/** What is told between the changes, of the cache as a whole. */
export type CacheMark =
  /** The connection is lost, or events were: what is shown from here on may be of the past. */
  | { readonly kind: 'outOfStep' }
  /** All has been read again, and every change of it been told. */
  | { readonly kind: 'inStep' }
  /** More than `maxQueuedChanges` were not taken, and were dropped with all others: look at the cache itself. */
  | { readonly kind: 'overflowed'; readonly dropped: number };

/** Makes a value of a znode's data. What it throws becomes `decodeError`. Called once for each change of the data. */
export type Decode<Data> = (data: Uint8Array | null, path: string, stat: Stat) => Data;

export interface CacheOptions<Data> {
  /** Default: the data as they are. */
  readonly decode?: Decode<Data> | undefined;
}

export interface ReadingOptions {
  /** Reads under way at most. Default: 16. */
  readonly concurrency?: number | undefined;
}

export interface ManyZnodesOptions<Data> extends CacheOptions<Data>, ReadingOptions {
  /** Whether to read data. Without them a cache knows names and Stats, in less memory. Default: true. */
  readonly data?: boolean | undefined;
}
