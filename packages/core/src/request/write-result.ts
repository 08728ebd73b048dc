/**
 * Writes the result of a write, after the reply's header, once its txn has been applied.
 */
import { type MultiTxn, OpCode, type Writer, writeMultiEnd } from '@tskeeper/protocol';
import { isKeeperWrite, type Proposal } from '../pending/proposal.ts';
import type { Replica } from './replica.ts';

/**
 * @param multiResults the results of the parts of a multi in wire form; not read for any other txn.
 */
export function writeResult(writer: Writer, { txn, origin }: Proposal, replica: Replica, multiResults: Writer): void {
  switch (txn.kind) {
    case 'create':
    case 'createContainer':
    case 'createTTL':
      if (origin.opCode === OpCode.create || origin.opCode === OpCode.createIfNotExists) writer.ustring(txn.path);
      else replica.writeCreated(writer, txn);
      return;
    case 'setData':
      if (origin.opCode === OpCode.reconfig) writer.buffer(txn.data);
      replica.tree.writeStat(replica.tree.find(txn.path), writer);
      return;
    case 'setACL':
      replica.tree.writeStat(replica.tree.find(txn.path), writer);
      return;
    case 'multi':
      if (isKeeperWrite(origin.opCode)) {
        if (origin.opCode === OpCode.createIfNotExists) writer.ustring(existingPath(txn));
        return;
      }
      writer.raw(multiResults.bytes, 0, multiResults.offset);
      writeMultiEnd(writer);
      return;
    case 'delete':
    case 'check':
    case 'error':
    case 'createSession':
    case 'closeSession':
      return;
    default:
      txn satisfies never;
  }
}

/** The path that a createIfNotExists has found: its txn is a multi with one check. */
function existingPath({ txns: [only] }: MultiTxn): string | null {
  return only?.txn.kind === 'check' ? only.txn.path : null;
}
