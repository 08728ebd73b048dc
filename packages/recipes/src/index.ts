export { Cache } from './caches/cache.ts';
export type {
  CacheChange,
  CachedZnode,
  CacheMark,
  CacheOptions,
  Decode,
  ManyZnodesOptions,
  ReadingOptions,
} from './caches/cached-znode.ts';
export type { ChangesOptions, ChangeStream } from './caches/change-stream.ts';
export { ChildrenCache, type ChildrenCacheOptions } from './caches/children-cache.ts';
export { NodeCache, type NodeCacheOptions } from './caches/node-cache.ts';
export { TreeCache, type TreeCacheOptions } from './caches/tree-cache.ts';
export { RecipeError, type RecipeErrorCode } from './recipe-error.ts';
export type { WaitOptions } from './waiting.ts';
