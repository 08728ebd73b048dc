/**
 * Packets between a leader and its learners, one after the other, without a length prefix.
 *
 *     int         type
 *     long        zxid
 *     buffer      data        null if the type has none
 *     vector<Id>  authinfo    null except in requests
 *
 * learner-records.ts defines the data; packet-decoder.ts finds the end of a packet.
 */
import { type Id, readId, writeId } from '../znode/acl.ts';
import type { Zxid } from '../jute/numbers.ts';
import { Reader } from '../jute/reader.ts';
import type { Writer } from '../jute/writer.ts';

/** By the names of ZooKeeper's `Leader`. */
export const PacketType = {
  /** From a learner: a write of one of its clients, or a sync. */
  REQUEST: 1,
  /** To followers: a txn to be logged. */
  PROPOSAL: 2,
  /** From a learner: a proposal is in its log; or it has processed NEWLEADER, or UPTODATE. */
  ACK: 3,
  /** To followers: a quorum has logged the proposal. */
  COMMIT: 4,
  /** Both ways, as a sign of life; a learner's contains the sessions with signs of life. */
  PING: 5,
  /** Both ways: whether a session is alive. */
  REVALIDATE: 6,
  /** To a learner: everything committed before its sync request has been sent. */
  SYNC: 7,
  /** To observers: a committed txn. */
  INFORM: 8,
  /** COMMIT of a reconfig. */
  COMMITANDACTIVATE: 9,
  /** To a learner: the history that it lacked has been sent. */
  NEWLEADER: 10,
  /** From a follower: introduces it. */
  FOLLOWERINFO: 11,
  /** To a learner: serve clients now. */
  UPTODATE: 12,
  /** To a learner: the txns that it lacks follow. */
  DIFF: 13,
  /** To a learner: truncate the txns that no other server has. */
  TRUNC: 14,
  /** To a learner: a snapshot follows in the stream, not in a packet. */
  SNAP: 15,
  /** From an observer: introduces it. */
  OBSERVERINFO: 16,
  /** To a learner: the new epoch. */
  LEADERINFO: 17,
  /** From a learner: it has accepted the epoch; contains its last zxid. */
  ACKEPOCH: 18,
  /** INFORM of a reconfig. */
  INFORMANDACTIVATE: 19,
  /**
   * To a learner: its leader stops leading, and the server in the data leads next. ZooKeeper has no
   * such packet, so it is sent only to learners that have announced that they know it
   * (`LearnerInfo.leaderPriority`). The number begins with 'tk'.
   */
  HANDOVER: 0x746b_0001,
} as const;
export type PacketType = (typeof PacketType)[keyof typeof PacketType];

const names = new Map<number, string>(Object.entries(PacketType).map(([name, type]) => [type, name]));

/** `PROPOSAL`; `UNKNOWN 77` for an unknown type. */
export function packetTypeName(type: number): string {
  return names.get(type) ?? `UNKNOWN ${type}`;
}

export interface QuorumPacket {
  /** One of `PacketType`; others can be decoded too, and have no meaning. */
  readonly type: number;
  readonly zxid: Zxid;
  readonly data: Uint8Array | null;
  readonly authinfo: readonly Id[] | null;
}

/** Type, zxid, and the length of data. */
export const packetHeadBytes = 16;
/** A packet without data and authinfo. */
export const packetBytesMin = 20;
/** Minimum size of an identity in authinfo. */
export const authinfoIdBytesMin = 8;

/** Decodes one packet. Its data is a view into the reader's bytes. */
export function readQuorumPacket(reader: Reader): QuorumPacket {
  return {
    type: reader.int32(),
    zxid: reader.exactInt64('a zxid'),
    data: reader.buffer(),
    authinfo: reader.vector(authinfoIdBytesMin, readId),
  };
}

export function writeQuorumPacket(writer: Writer, packet: QuorumPacket): void {
  writer.int32(packet.type);
  writer.int64(packet.zxid);
  writer.buffer(packet.data);
  writer.vector(packet.authinfo, writeId);
}

/** Writes a packet without data: ACK, COMMIT, the leader's PING and others. */
export function writeEmptyPacket(writer: Writer, type: PacketType, zxid: Zxid): void {
  writer.int32(type);
  writer.int64(zxid);
  writer.int32(-1);
  writer.int32(-1);
}

/**
 * Begins a packet with data, which the caller writes next; returns the argument of
 * `endQuorumPacket`.
 */
export function beginQuorumPacket(writer: Writer, type: PacketType, zxid: Zxid): number {
  writer.int32(type);
  writer.int64(zxid);
  return writer.beginFrame();
}

export function endQuorumPacket(writer: Writer, start: number, authinfo: readonly Id[] | null = null): void {
  writer.endFrame(start);
  writer.vector(authinfo, writeId);
}

/**
 * A packet in place, without a copy and without an object for each. One view serves many packets,
 * one after the other, and is valid as long as their bytes are.
 */
export class PacketView {
  type = 0;
  zxid: Zxid = 0;
  /** The packet is [start, end) of these. */
  bytes: Buffer = Buffer.alloc(0);
  start = 0;
  end = 0;
  /** Whether the data is not null; null differs from empty data. */
  hasData = false;
  /** Placed over the data; empty if it is null. */
  readonly data = new Reader();

  /** `lengthMax` limits buffers and texts within the data: jute.maxbuffer and its extra. */
  constructor(lengthMax: number = 0x7fffffff) {
    this.data.lengthMax = lengthMax;
  }

  /**
   * Places this view over a packet that fills [start, end). Throws a ProtocolError if its zxid is
   * beyond the exact range; the connection must then be closed.
   */
  wrap(bytes: Buffer, start: number, end: number): this {
    const { data } = this;
    data.wrap(bytes, start, end);
    this.type = data.int32();
    this.zxid = data.exactInt64('a zxid');
    this.hasData = data.range();
    this.bytes = bytes;
    this.start = start;
    this.end = end;
    data.wrap(bytes, data.rangeStart, data.rangeEnd);
    return this;
  }

  /** Identities of the client that sent the request; null if the packet has none. */
  authinfo(): readonly Id[] | null {
    const { data } = this;
    const reader = new Reader(this.bytes, data.limit, this.end);
    reader.lengthMax = data.lengthMax;
    return reader.vector(authinfoIdBytesMin, readId);
  }

  /** The packet as a value; its data remains a view. */
  toPacket(): QuorumPacket {
    const reader = new Reader(this.bytes, this.start, this.end);
    reader.lengthMax = this.data.lengthMax;
    return readQuorumPacket(reader);
  }
}
