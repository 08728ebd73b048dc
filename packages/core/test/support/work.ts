/**
 * Work as a number, which is the same on every machine, however busy.
 */
import { Reader, Writer } from '@tskeeper/protocol';
import { SessionTable } from '../../src/session/session-table.ts';
import { PagedDoubles, PagedInts } from '../../src/tables/paged-numbers.ts';
import { ByteArena } from '../../src/tree/byte-arena.ts';
import { DataTree } from '../../src/tree/data-tree.ts';
import { EphemeralTable } from '../../src/tree/ephemeral-table.ts';
import { NodeStore } from '../../src/tree/node-store.ts';
import { PathIndex } from '../../src/tree/path-index.ts';
import { WatchTable } from '../../src/tree/watch-table.ts';

/** Operations on each znode, session, watch, part or name use one of these. */
const classes = [
  DataTree,
  NodeStore,
  PathIndex,
  ByteArena,
  EphemeralTable,
  WatchTable,
  SessionTable,
  PagedInts,
  PagedDoubles,
  Reader,
  Writer,
];

type Method = (this: unknown, ...args: unknown[]) => unknown;

let work = 0;

/** The number of table accesses and of reads and writes of frames since counting started. */
export function workSoFar(): number {
  return work;
}

/** Starts counting in this thread; returns a function that stops it. */
export function countWork(): () => void {
  const ends = classes.flatMap(({ prototype }) =>
    Object.entries(Object.getOwnPropertyDescriptors(prototype)).flatMap(([name, { value }]) => {
      if (name === 'constructor' || typeof value !== 'function') return [];
      Object.assign(prototype, { [name]: counted(value as Method) });
      return () => Object.assign(prototype, { [name]: value as Method });
    }),
  );
  return () => {
    for (const end of ends) end();
  };
}

function counted(own: Method): Method {
  return function (this: unknown, ...args) {
    work++;
    return own.apply(this, args);
  };
}
