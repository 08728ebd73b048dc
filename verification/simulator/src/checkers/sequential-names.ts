/** Uses only the paths in the log, not the model: two znodes must never get the same name. */
import { CreateMode, type CreateRequest, type MultiRequest, OpCode, type Txn, type Zxid } from '@tskeeper/protocol';
import { parentOf } from '../record/parent-of.ts';
import { membersByOp } from '../replay/request-of-txn.ts';
import type { Checker } from './checker.ts';

const sequential: ReadonlySet<number> = new Set([
  CreateMode.persistentSequential,
  CreateMode.ephemeralSequential,
  CreateMode.persistentSequentialWithTtl,
]);

const nearOverflow = 2 ** 31 - 1000;

export const sequentialNames: Checker = {
  property: 'P25',
  promise: 'The counter of sequential znodes rises under one parent and is never reused, also after deletes and crashes.',
  check({ log }, { txns }) {
    const violations: string[] = [];
    const requests = new Map(txns.map(({ zxid, request }) => [zxid, request]));
    /** By parent path: the last counter. Deleting the parent resets it. */
    const counters = new Map<string, number>();
    const visit = (txn: Txn, asked: SequentialCreate | undefined, zxid: Zxid) => {
      if (txn.kind === 'delete') counters.delete(txn.path);
      if (asked === undefined || (txn.kind !== 'create' && txn.kind !== 'createContainer' && txn.kind !== 'createTTL')) return;
      const parent = parentOf(txn.path);
      const counter = Number(txn.path.slice(asked.path.length));
      const last = counters.get(parent);
      // The counter wraps at 32 bits.
      const rose = last === undefined || counter > last || (last > nearOverflow && counter < 0);
      if (!rose) violations.push(`${txn.path} at ${zxid} comes after counter ${last} under ${parent}`);
      counters.set(parent, counter);
    };
    for (const { logged } of log) {
      const { zxid } = logged.header;
      const request = requests.get(zxid);
      if (logged.txn.kind === 'multi') {
        // The log has a failed multi up to the operation that failed; none of it took effect.
        if (logged.txn.txns.some(({ type }) => type === OpCode.error)) continue;
        const ops = (request?.name === 'multi' ? (request.record as MultiRequest) : undefined)?.ops ?? [];
        const opOf = new Map(membersByOp(ops, logged.txn.txns)?.flatMap((members, at) => members.map((member) => [member, ops[at]])));
        for (const member of logged.txn.txns) visit(member.txn, sequentialCreate(opOf.get(member)), zxid);
      } else visit(logged.txn, sequentialCreate(request?.record), zxid);
    }
    return violations;
  },
};

interface SequentialCreate {
  readonly path: string;
}

/** The requested name, if the znode is sequential. */
function sequentialCreate(record: unknown): SequentialCreate | undefined {
  const { path, flags } = (record ?? {}) as Partial<CreateRequest>;
  return typeof path === 'string' && flags !== undefined && sequential.has(flags) ? { path } : undefined;
}
