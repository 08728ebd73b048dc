/**
 * Requests of operators to servers of tskeeper: who leads, who is to lead, and which server has too
 * many connections. Servers of ZooKeeper answer Unimplemented and close the connection.
 */
import { operations, type Sid } from '@tskeeper/protocol';
import type { Operation } from './operation.ts';

/** The result of `getLeader`. */
export interface LeaderInfo {
  /** The number of the server that leads; undefined if the server asked is standalone. */
  readonly leader: number | undefined;
  /** Its epoch, which grows with each change of leader; 0 if the server asked is standalone. */
  readonly epoch: number;
}

export function getLeaderOperation(): Operation<LeaderInfo> {
  const { opCode, request, reply } = operations.getLeader;
  return { opCode, write: (writer) => request.write(writer, undefined), read: (reader) => reply.read(reader) };
}

export function transferLeaderOperation(target: Sid | undefined): Operation<void> {
  const { opCode, request } = operations.transferLeader;
  return { opCode, write: (writer) => request.write(writer, { target }), read: () => undefined };
}

/** @param share from 0 to 1. */
export function shedConnectionsOperation(share: number): Operation<number> {
  const { opCode, request, reply } = operations.shedConnections;
  return {
    opCode,
    write: (writer) => request.write(writer, { perMille: Math.round(share * 1000) }),
    read: (reader) => reply.read(reader).count,
  };
}
