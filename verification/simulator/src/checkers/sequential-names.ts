/** Uses only the paths in the log, not the model: two znodes must never get the same name. */
import { CreateMode, type CreateRequest, type MultiRequest, OpCode, systemPath, type Txn, type Zxid } from '@tskeeper/protocol';
import { parentOf } from '../record/parent-of.ts';
import { membersByOp } from '../replay/request-of-txn.ts';
import type { Checker } from './checker.ts';

const sequential: ReadonlySet<number> = new Set([
  CreateMode.persistentSequential,
  CreateMode.ephemeralSequential,
  CreateMode.persistentSequentialWithTtl,
]);

const nearOverflow = 2 ** 31 - 1000;
/** A server may end once or twice at the moment when a record is due. */
const lateMax = 3;

export const sequentialNames: Checker = {
  property: 'P25',
  promise:
    'The counter of sequential znodes rises under one parent and is never reused, also after deletes and crashes; with wide numbers a record of it is never older than 2^30 creates.',
  check({ log, seedState }, { txns }) {
    const violations: string[] = [];
    const requests = new Map(txns.map(({ zxid, request }) => [zxid, request]));
    /** By parent path: the last counter. Deleting the parent resets it. */
    const counters = new Map<string, number>();
    const records = new Map(seedState.znodes.flatMap(({ path, data }) => recordOf(path, data)));
    /** By parent path: the txns with creates whose record is missing. */
    const late = new Map<string, Set<Zxid>>();
    const visit = (txn: Txn, asked: SequentialCreate | undefined, zxid: Zxid) => {
      if (txn.kind === 'delete') {
        counters.delete(txn.path);
        late.delete(txn.path);
      }
      if (txn.kind === 'create' || txn.kind === 'setData') {
        for (const [path, number] of recordOf(txn.path, txn.data)) {
          records.set(path, number);
          late.delete(path);
        }
      }
      if (asked === undefined || (txn.kind !== 'create' && txn.kind !== 'createContainer' && txn.kind !== 'createTTL')) return;
      const parent = parentOf(txn.path);
      const counter = Number(txn.path.slice(asked.path.length));
      const last = counters.get(parent);
      // The counter wraps at 32 bits.
      const rose = last === undefined || counter > last || (last > nearOverflow && counter < 0);
      if (!rose) violations.push(`${txn.path} at ${zxid} comes after counter ${last} under ${parent}`);
      counters.set(parent, counter);
      // The record follows in the next txn, unless its leader ends first.
      if (counter >= (records.get(parent) ?? 2 ** 30) + 2 ** 30) late.set(parent, (late.get(parent) ?? new Set()).add(zxid));
      if ((late.get(parent)?.size ?? 0) > lateMax) violations.push(`${txn.path} at ${zxid} has no record of its number`);
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

/** The parent and the number that a record names; nothing if the znode is not a record. */
function recordOf(path: string | null, data: string | Uint8Array | null | undefined): [string, number][] {
  if (path?.startsWith(`${systemPath.sequences}/`) !== true) return [];
  const number = /^number=(\d+)$/m.exec(Buffer.from(data ?? '').toString('latin1'))?.[1];
  return [[decodeURIComponent(path.slice(systemPath.sequences.length + 1)), Number(number)]];
}

interface SequentialCreate {
  readonly path: string;
}

/** The requested name, if the znode is sequential. */
function sequentialCreate(record: unknown): SequentialCreate | undefined {
  const { path, flags } = (record ?? {}) as Partial<CreateRequest>;
  return typeof path === 'string' && flags !== undefined && sequential.has(flags) ? { path } : undefined;
}
