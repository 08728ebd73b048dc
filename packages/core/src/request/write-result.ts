/**
 * Writes the result of a write, after the reply's header, once its txn has been applied.
 */
import { OpCode, type Writer, writeMultiEnd } from '@tskeeper/protocol';
import type { Proposal } from '../pending/proposal.ts';
import type { Replica } from './replica.ts';

/**
 * @param multiResults the results of the parts of a multi in wire form; not read for any other txn.
 */
export function writeResult(writer: Writer, { txn, origin }: Proposal, replica: Replica, multiResults: Writer): void {
  switch (txn.kind) {
    case 'create':
    case 'createContainer':
    case 'createTTL':
      if (origin.opCode === OpCode.create) writer.ustring(txn.path);
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
