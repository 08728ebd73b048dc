/**
 * How a path can be watched, and the key under which a watch is found.
 *
 * In ZooKeeper's terms a server has two tables. A data watch (getData, exists) is in the table
 * "data", a child watch (getChildren) in "child", a persistent watch in both, a
 * persistent-recursive one in "data". Data and child watches are one-shot.
 */
import { WatcherType } from '@tskeeper/protocol';

/**
 * How a path is watched. One connection may watch one path in several modes at once, hence bits.
 */
export const WatchMode = { data: 1, child: 2, persistent: 4, recursive: 8 } as const;

/** The same modes as positions, which rows use. */
export const data = 0;
export const child = 1;
export const persistent = 2;
export const recursive = 3;
export const modeCount = 4;

export const dataTable: readonly number[] = [data, persistent, recursive];
export const childTable: readonly number[] = [child, persistent];

/**
 * The key of a row: path number, colour, mode. Firing a one-shot mode of a path detaches a whole
 * ring at once and toggles the path's colour for that mode, so that rows that have fired, but whose
 * events are not sent yet, are never taken for live ones.
 */
export const keyModeMask = 3;
export const keyColour = 4;
export const keyPathShift = 3;

export function isOneShot(mode: number): boolean {
  return mode === data || mode === child;
}

/** The modes of a WatcherType; none for an unknown type. */
export function modesOf(type: number): number {
  switch (type) {
    case WatcherType.children:
      return WatchMode.child;
    case WatcherType.data:
      return WatchMode.data;
    case WatcherType.any:
      return WatchMode.data | WatchMode.child | WatchMode.persistent | WatchMode.recursive;
    case WatcherType.persistent:
      return WatchMode.persistent;
    case WatcherType.persistentRecursive:
      return WatchMode.recursive;
    default:
      return 0;
  }
}
