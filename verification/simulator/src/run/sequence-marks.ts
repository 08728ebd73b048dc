/** Marks of the numbers of sequential znodes beyond 32 bits. */
import { systemPath, type Txn } from '@tskeeper/protocol';
import type { Outcome } from './seed-run.ts';

export const sequenceMarks: Readonly<Record<string, (outcome: Outcome) => number>> = {
  'a sequential znode got a number beyond 31 bits': ({ recording }) => createdFrom(recording, 2 ** 31),
  'a sequential znode got a number beyond 32 bits': ({ recording }) => createdFrom(recording, 2 ** 32),
  'the number of a parent was recorded': ({ recording }) =>
    recording.log.filter(({ logged: { txn } }) => txn.kind === 'multi' && txn.txns.some((member) => isRecord(member.txn))).length,
  'the record of a number was renewed': ({ recording }) =>
    recording.log.filter(({ logged: { txn } }) => txn.kind === 'setData' && isRecord(txn)).length,
};

function createdFrom({ log }: Outcome['recording'], number: number): number {
  return log.filter(({ logged: { txn } }) => txn.kind === 'create' && Number(/-(\d{10,})$/.exec(txn.path)?.[1] ?? 0) >= number).length;
}

function isRecord(txn: Txn): boolean {
  return (txn.kind === 'create' || txn.kind === 'setData') && txn.path.startsWith(`${systemPath.sequences}/`);
}
