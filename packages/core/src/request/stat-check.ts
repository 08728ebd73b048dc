/** Compares the fields of a Stat, as Keeper's checkStat does. */
import type { Stat } from '@tskeeper/protocol';

/** Whether each field of `expected` that is not -1 is the same in `actual`. */
export function isStatOf(expected: Stat, actual: Stat): boolean {
  const isEqual = (one: number, other: number) => one === -1 || one === other;
  return (
    isEqual(expected.czxid, actual.czxid) &&
    isEqual(expected.mzxid, actual.mzxid) &&
    isEqual(expected.ctime, actual.ctime) &&
    isEqual(expected.mtime, actual.mtime) &&
    isEqual(expected.version, actual.version) &&
    isEqual(expected.cversion, actual.cversion) &&
    isEqual(expected.aversion, actual.aversion) &&
    (expected.ephemeralOwner === -1n || expected.ephemeralOwner === actual.ephemeralOwner) &&
    isEqual(expected.dataLength, actual.dataLength) &&
    isEqual(expected.numChildren, actual.numChildren) &&
    isEqual(expected.pzxid, actual.pzxid)
  );
}
