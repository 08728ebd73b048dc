/** Data that getData returns for paths without a znode: what a server of this project can do. */
import type { Body } from './operation-types.ts';

const features = new Map([['/zookeeper/tskeeper', 'childrenPages']]);

/**
 * Bit 7 of the first byte is flag 0. Flags 0, 2, 3, 4, 6, 9 and 10 are the operations from 500 to
 * 506.
 */
const keeper = new Map([
  ['/keeper/api_version', '1'],
  ['/keeper/feature_flags', '\xba\x60'],
]);

export function virtualZnode(path: string, keeperExtensions: boolean): Body | undefined {
  const data = features.get(path) ?? (keeperExtensions ? keeper.get(path) : undefined);
  if (data === undefined) return undefined;
  const zero = { czxid: 0, mzxid: 0, ctime: 0, mtime: 0, version: 0, cversion: 0, aversion: 0, numChildren: 0, pzxid: 0 };
  return { data, stat: { ...zero, ephemeralOwner: 0n, dataLength: data.length } };
}
