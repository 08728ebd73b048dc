/** Told by the paths in the log alone, without the model: whoever counts must never name two znodes alike. */
import { CreateMode, type CreateRequest, type MultiRequest, OpCode, type Txn, type Zxid } from '@tskeeper/protocol';
import { parentOf } from '../replay/replay.ts';
import type { Checker } from './checker.ts';

const sequential: ReadonlySet<number> = new Set([
  CreateMode.persistentSequential,
  CreateMode.ephemeralSequential,
  CreateMode.persistentSequentialWithTtl,
]);

const nearTheEnd = 2 ** 31 - 1000;

export const sequences: Checker = {
  property: 'P25',
  promise: 'The counter in the names of sequential znodes rises under one parent, and is never used again, not after a delete or a crash.',
  check({ log }, { txns }) {
    const faults: string[] = [];
    const requests = new Map(txns.map(({ zxid, request }) => [zxid, request]));
    /** By the path of the parent: the last counter. A parent that goes takes it along. */
    const counters = new Map<string, number>();
    const visit = (txn: Txn, asked: Asked | undefined, zxid: Zxid) => {
      if (txn.kind === 'delete') counters.delete(txn.path);
      if (asked === undefined || (txn.kind !== 'create' && txn.kind !== 'createContainer' && txn.kind !== 'createTTL')) return;
      const parent = parentOf(txn.path);
      const counter = Number(txn.path.slice(asked.path.length));
      const last = counters.get(parent);
      // It runs over at the end of 32 bits.
      const rose = last === undefined || counter > last || (last > nearTheEnd && counter < 0);
      if (!rose) faults.push(`${txn.path} at ${zxid} comes after counter ${last} under ${parent}`);
      counters.set(parent, counter);
    };
    for (const { logged } of log) {
      const { zxid } = logged.header;
      const request = requests.get(zxid);
      if (logged.txn.kind === 'multi') {
        // One that has failed stands in the log as far as it was judged, and none of it has happened.
        if (logged.txn.txns.some(({ type }) => type === OpCode.error)) continue;
        for (const [at, { txn }] of logged.txn.txns.entries())
          visit(txn, askedFor((request?.record as MultiRequest | undefined)?.ops[at]), zxid);
      } else visit(logged.txn, askedFor(request?.record), zxid);
    }
    return faults;
  },
};

interface Asked {
  readonly path: string;
}

/** The name that was asked for, if it was to be counted. */
function askedFor(record: unknown): Asked | undefined {
  const { path, flags } = (record ?? {}) as Partial<CreateRequest>;
  return typeof path === 'string' && flags !== undefined && sequential.has(flags) ? { path } : undefined;
}
