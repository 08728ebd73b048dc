/**
 * The data of packets between leader and learners (quorum-packet.ts), by packet type. Readers are
 * placed over the data. PROPOSAL and INFORM contain the bytes of a log entry, see `readTxn`;
 * NEWLEADER the text of a configuration, see quorum-config.ts; ACK, COMMIT, SYNC, UPTODATE, DIFF,
 * TRUNC, SNAP and a leader's PING nothing.
 */
import type { Sid } from './notification.ts';
import type { Millis } from '../jute/numbers.ts';
import { ProtocolError } from '../jute/protocol-error.ts';
import type { Reader } from '../jute/reader.ts';
import type { Writer } from '../jute/writer.ts';

/**
 * The version of leaders and learners since 3.4; earlier versions do not agree on the epoch first.
 */
export const learnerProtocolVersion = 0x10000;
/** The version of learners that send none. */
const oldestProtocolVersion = 1;

/** FOLLOWERINFO, OBSERVERINFO. */
export interface LearnerInfo {
  /** Undefined from a learner that has none; the leader assigns a negative number. */
  readonly serverId: Sid | undefined;
  /** 1 if the learner sends none. */
  readonly protocolVersion: number;
  /** Version of the learner's configuration; undefined if it sends none. */
  readonly configVersion: number | undefined;
  /**
   * Distinguishes processes that give the same id; 0 if the learner sends none, as those of
   * ZooKeeper, which also ignore it.
   */
  readonly incarnation: number;
  /**
   * How much the learner is preferred as leader (`tskeeper.leaderPriority`). A learner that sends it
   * knows HANDOVER. Undefined from others; those of ZooKeeper ignore it, too.
   */
  readonly leaderPriority: number | undefined;
}

/**
 * `hasData` is false if the packet has none, as from the oldest learners. Bytes after the record
 * are not read.
 */
export function readLearnerInfo(reader: Reader, hasData = true): LearnerInfo {
  if (!hasData)
    return {
      serverId: undefined,
      protocolVersion: oldestProtocolVersion,
      configVersion: undefined,
      incarnation: 0,
      leaderPriority: undefined,
    };
  const serverId = reader.exactInt64('a server id');
  const protocolVersion = reader.remaining < 4 ? oldestProtocolVersion : reader.int32();
  const configVersion = reader.remaining < 8 ? undefined : reader.exactInt64('the version of a configuration');
  const isOurs = reader.remaining >= 8;
  const incarnation = isOurs ? incarnationOf(reader.int32(), reader.int32()) : 0;
  const leaderPriority = isOurs && reader.remaining >= 4 ? reader.int32() : undefined;
  return { serverId, protocolVersion, configVersion, incarnation, leaderPriority };
}

/** Keeps the result within the exact range of numbers. */
const incarnationHighMask = 0x1f_ffff;

/** Converts 64 bits into a number. */
export function incarnationOf(high: number, low: number): number {
  return (high & incarnationHighMask) * 2 ** 32 + (low >>> 0);
}

/** What `writeLearnerInfo` writes; the last two are of ours alone. */
export interface LearnerIntroduction {
  readonly serverId: Sid;
  readonly configVersion: number;
  readonly incarnation?: number | undefined;
  /** Only together with `incarnation`, which it follows. */
  readonly leaderPriority?: number | undefined;
}

/** Writes the whole record, as learners have sent it since 3.5; and what only ours send, if any. */
export function writeLearnerInfo(writer: Writer, info: LearnerIntroduction): void {
  writer.int64(info.serverId);
  writer.int32(learnerProtocolVersion);
  writer.int64(info.configVersion);
  if (info.incarnation === undefined) return;
  writer.int64(info.incarnation);
  if (info.leaderPriority !== undefined) writer.int32(info.leaderPriority);
}

/**
 * LEADERINFO: the leader's version of this protocol, and after it what a leader of tskeeper
 * supports beyond ZooKeeper, as bits of `LeaderFeature`. Leaders of ZooKeeper send no such bits,
 * and its learners do not read them.
 */
export function readLeaderInfo(reader: Reader): { readonly protocolVersion: number; readonly features: number } {
  return { protocolVersion: reader.int32(), features: reader.remaining < 4 ? 0 : reader.int32() };
}

/** `features`: undefined for a learner that would not read them. */
export function writeLeaderInfo(writer: Writer, features?: number): void {
  writer.int32(learnerProtocolVersion);
  if (features !== undefined) writer.int32(features);
}

/** What a leader of tskeeper supports beyond ZooKeeper. */
export const LeaderFeature = {
  /**
   * A learner that accepts observers may name, in the authinfo of a REQUEST or REVALIDATE, the
   * observer that it comes from.
   */
  origins: 1,
  /** It accepts the operation `transferLeader` from its learners. */
  transfer: 2,
  /** It orders writes of ClickHouse Keeper, and multis with its operations: `OpCode.keeperMulti`. */
  keeperWrites: 4,
  /**
   * The learner has no vote in the leader's configuration, so it may follow in an earlier epoch than
   * it has accepted.
   */
  noVote: 8,
} as const;

/**
 * ACKEPOCH: the learner's currentEpoch; -1 if it had accepted the new epoch before, and so must not
 * be counted again.
 */
export function readAckEpoch(reader: Reader): number {
  return reader.int32();
}

export function writeAckEpoch(writer: Writer, currentEpoch: number): void {
  writer.int32(currentEpoch);
}

/** REQUEST: a client's request to the learner. */
export interface LearnerRequest {
  readonly sessionHigh: number;
  readonly sessionLow: number;
  readonly cxid: number;
  /** An opcode. */
  readonly type: number;
  /** The client's record, without its header; a view of the decoded bytes. */
  readonly payload: Uint8Array;
}

export function readLearnerRequest(reader: Reader): LearnerRequest {
  return {
    sessionHigh: reader.int32(),
    sessionLow: reader.int32(),
    cxid: reader.int32(),
    type: reader.int32(),
    payload: reader.remainingBytes(),
  };
}

export function writeLearnerRequest(writer: Writer, request: LearnerRequest): void {
  writer.int64Halves(request.sessionHigh, request.sessionLow);
  writer.int32(request.cxid);
  writer.int32(request.type);
  writer.raw(request.payload);
}

/** REVALIDATE from a learner: asks whether a session is alive that a client wants to resume. */
export interface RevalidateRequest {
  readonly sessionHigh: number;
  readonly sessionLow: number;
  readonly timeOut: Millis;
}

export function readRevalidateRequest(reader: Reader): RevalidateRequest {
  return { sessionHigh: reader.int32(), sessionLow: reader.int32(), timeOut: reader.int32() };
}

export function writeRevalidateRequest(writer: Writer, request: RevalidateRequest): void {
  writer.int64Halves(request.sessionHigh, request.sessionLow);
  writer.int32(request.timeOut);
}

/** REVALIDATE from a leader. */
export interface RevalidateReply {
  readonly sessionHigh: number;
  readonly sessionLow: number;
  /** False if the session is unknown or being closed. */
  readonly valid: boolean;
}

export function readRevalidateReply(reader: Reader): RevalidateReply {
  return { sessionHigh: reader.int32(), sessionLow: reader.int32(), valid: reader.boolean() };
}

export function writeRevalidateReply(writer: Writer, answer: RevalidateReply): void {
  writer.int64Halves(answer.sessionHigh, answer.sessionLow);
  writer.boolean(answer.valid);
}

/** Size of one session in a learner's PING. */
export const touchedSessionBytes = 12;

/**
 * PING from a learner: visits each session with a sign of life since its last PING, with the
 * timeout of the client's connection. All or nothing: data that does not consist of complete
 * entries is refused before the first.
 */
export function readTouchedSessions(reader: Reader, touch: (high: number, low: number, timeOut: Millis) => void): void {
  if (reader.remaining % touchedSessionBytes !== 0) {
    throw new ProtocolError(`sessions of ${touchedSessionBytes} bytes each, not ${reader.remaining} bytes`, reader.offset);
  }
  while (reader.remaining > 0) touch(reader.int32(), reader.int32(), reader.int32());
}

/** One entry of a learner's PING; without entries it has empty data, not null. */
export function writeTouchedSession(writer: Writer, high: number, low: number, timeOut: Millis): void {
  writer.int64Halves(high, low);
  writer.int32(timeOut);
}

/**
 * COMMITANDACTIVATE, INFORMANDACTIVATE, HANDOVER: the server that leads next. In
 * INFORMANDACTIVATE the bytes of the txn follow, and are not read here.
 */
export function readDesignatedLeader(reader: Reader): Sid {
  return reader.exactInt64('a server id');
}

export function writeDesignatedLeader(writer: Writer, leader: Sid): void {
  writer.int64(leader);
}

const snapshotSignature = 'BenWasHere';

/**
 * The end of the snapshot after a packet SNAP: it follows the path "/", where a file has its seal.
 */
export const snapshotSignatureBytes: Uint8Array = Uint8Array.of(
  0,
  0,
  0,
  snapshotSignature.length,
  ...Buffer.from(snapshotSignature, 'latin1'),
);

export function readSnapshotSignature(reader: Reader): void {
  const at = reader.offset;
  if (reader.ustring() !== snapshotSignature) throw new ProtocolError(`"${snapshotSignature}" after a snapshot`, at);
}

export function writeSnapshotSignature(writer: Writer): void {
  writer.raw(snapshotSignatureBytes);
}
