/**
 * Which requests a server in read-only mode refuses with NotReadOnly, as ZooKeeper's
 * ReadOnlyRequestProcessor does. They are answered in the place of a read, in the order of their
 * connection's requests.
 */
import { OpCode } from '@tskeeper/protocol';
import { isWrite } from '../pending/proposal.ts';

/**
 * A closeSession too, unless it ends a local session. A client's own deleteContainer is known to
 * ZooKeeper, and so refused like any other write. A check outside a multi is not: it closes the
 * connection, as everywhere. A sync is a promise about the ensemble, which this server cannot give.
 */
export function isRefused(opCode: number): boolean {
  return isWrite(opCode) || opCode === OpCode.sync || opCode === OpCode.deleteContainer;
}
