/**
 * Operations for operators that ZooKeeper does not have. A server of ZooKeeper answers each with
 * Unimplemented and closes the connection.
 *
 *     getLeader        which server leads, as the server asked knows it
 *     transferLeader   another server should lead; a write, since learners forward it to the leader
 *     shedConnections  the server asked closes a share of its connections
 *
 * The last two require the permission to write /zookeeper/config, as reconfig does.
 */
import type { Reader } from '../jute/reader.ts';
import type { Writer } from '../jute/writer.ts';

/** No server, in the two records with a sid. */
const noSid = -1;

export interface GetLeaderReply {
  /** Undefined from a standalone server. */
  readonly leader: number | undefined;
  /** Of the leader; 0 from a standalone server. */
  readonly epoch: number;
}

export interface TransferLeaderRequest {
  /** Undefined: the leader chooses. */
  readonly target: number | undefined;
}

export interface ShedRequest {
  /** How many of 1000 connections are closed; 0 to 1000. */
  readonly perMille: number;
}

export interface ShedReply {
  /** How many connections will be closed. */
  readonly count: number;
}

function readSid(reader: Reader): number | undefined {
  const sid = reader.exactInt64('a server id');
  return sid === noSid ? undefined : sid;
}

export function readGetLeaderReply(reader: Reader): GetLeaderReply {
  return { leader: readSid(reader), epoch: reader.int32() };
}

export function writeGetLeaderReply(writer: Writer, { leader = noSid, epoch }: GetLeaderReply): void {
  writer.int64(leader);
  writer.int32(epoch);
}

export function readTransferLeaderRequest(reader: Reader): TransferLeaderRequest {
  return { target: readSid(reader) };
}

export function writeTransferLeaderRequest(writer: Writer, { target = noSid }: TransferLeaderRequest): void {
  writer.int64(target);
}

export function readShedRequest(reader: Reader): ShedRequest {
  return { perMille: reader.int32() };
}

export function writeShedRequest(writer: Writer, { perMille }: ShedRequest): void {
  writer.int32(perMille);
}

export function readShedReply(reader: Reader): ShedReply {
  return { count: reader.int32() };
}

export function writeShedReply(writer: Writer, { count }: ShedReply): void {
  writer.int32(count);
}
