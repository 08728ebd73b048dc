/**
 * What a leader and its learners send each other: one packet after the other, without a length before them.
 *
 *     int         type
 *     long        zxid
 *     buffer      data        null where the type has none
 *     vector<Id>  authinfo    null but in requests
 *
 * What stands in the data is in learner-records.ts; packet-cutter.ts finds where a packet ends.
 */
import { type Id, readId, writeId } from './acl.ts';
import type { Zxid } from './numbers.ts';
import { Reader } from './reader.ts';
import type { Writer } from './writer.ts';

/** Under the names of ZooKeeper's `Leader`. */
export const PacketType = {
  /** From a learner: a write of one of its clients, or a sync. */
  REQUEST: 1,
  /** To followers: a txn to be logged. */
  PROPOSAL: 2,
  /** From a learner: a proposal is in its log; or it has followed as far as NEWLEADER, or UPTODATE. */
  ACK: 3,
  /** To followers: a quorum has logged the proposal. */
  COMMIT: 4,
  /** Both ways, so that either side hears that the other lives; sessions that were heard of go along. */
  PING: 5,
  /** Both ways: does this session still live? */
  REVALIDATE: 6,
  /** To a learner: everything committed before its sync request has been sent. */
  SYNC: 7,
  /** To observers: a txn that is committed. */
  INFORM: 8,
  /** COMMIT of a reconfig. */
  COMMITANDACTIVATE: 9,
  /** To a learner: what it had to be told to be in sync has been sent. */
  NEWLEADER: 10,
  /** From a follower: here I am. */
  FOLLOWERINFO: 11,
  /** To a learner: serve clients now. */
  UPTODATE: 12,
  /** To a learner: the txns that it lacks follow. */
  DIFF: 13,
  /** To a learner: its log has txns that nobody else has, and is cut. */
  TRUNC: 14,
  /** To a learner: a snapshot follows, in the stream, and no packet. */
  SNAP: 15,
  /** From an observer: here I am. */
  OBSERVERINFO: 16,
  /** To a learner: the epoch that begins. */
  LEADERINFO: 17,
  /** From a learner: the epoch is accepted; this is how far my log goes. */
  ACKEPOCH: 18,
  /** INFORM of a reconfig. */
  INFORMANDACTIVATE: 19,
} as const;
export type PacketType = (typeof PacketType)[keyof typeof PacketType];

const names = new Map<number, string>(Object.entries(PacketType).map(([name, type]) => [type, name]));

/** `PROPOSAL`; `UNKNOWN 77` for a type that is none. */
export function packetTypeName(type: number): string {
  return names.get(type) ?? `UNKNOWN ${type}`;
}

export interface QuorumPacket {
  /** One of `PacketType`; others can be read too, and mean nothing. */
  readonly type: number;
  readonly zxid: Zxid;
  readonly data: Uint8Array | null;
  readonly authinfo: readonly Id[] | null;
}

/** Type, zxid, and the length of data. */
export const packetHeadBytes = 16;
/** A packet without data and authinfo. */
export const packetBytesMin = 20;
/** Of an identity in authinfo. */
export const authinfoIdBytesMin = 8;

/** Reads one packet. Its data is a view into the reader's bytes. */
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

/** Writes a packet without data: ACK, COMMIT, the leader's PING and the like. */
export function writeEmptyPacket(writer: Writer, type: PacketType, zxid: Zxid): void {
  writer.int32(type);
  writer.int64(zxid);
  writer.int32(-1);
  writer.int32(-1);
}

/** Opens a packet with data, which is written behind it; returns what `endQuorumPacket` wants to know. */
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
 * A packet that lies somewhere, without a copy and without an object for each. One view serves many packets, one after the other, and is
 * valid for as long as their bytes are.
 */
export class PacketView {
  type = 0;
  zxid: Zxid = 0;
  /** The packet is [start, end) of these. */
  bytes: Buffer = Buffer.alloc(0);
  start = 0;
  end = 0;
  /** Whether there is data at all; none is told from empty data. */
  hasData = false;
  /** Placed over the data; empty when there is none. */
  readonly data = new Reader();

  /** `lengthMax` holds for buffers and texts within the data: jute.maxbuffer and its extra. */
  constructor(lengthMax: number = 0x7fffffff) {
    this.data.lengthMax = lengthMax;
  }

  /**
   * Points this view at a packet that fills [start, end). Throws a ProtocolError if its zxid is beyond what a number can hold, which its
   * sender will not take back: the connection has to be closed.
   */
  place(bytes: Buffer, start: number, end: number): this {
    const { data } = this;
    data.place(bytes, start, end);
    this.type = data.int32();
    this.zxid = data.exactInt64('a zxid');
    this.hasData = data.range();
    this.bytes = bytes;
    this.start = start;
    this.end = end;
    data.place(bytes, data.rangeStart, data.rangeEnd);
    return this;
  }

  /** Identities of the client whose request this is; null when the packet has none. */
  authinfo(): readonly Id[] | null {
    const { data } = this;
    const reader = new Reader(this.bytes, data.limit, this.end);
    reader.lengthMax = data.lengthMax;
    return reader.vector(authinfoIdBytesMin, readId);
  }

  /** The packet as a value; its data still lies where it lay. */
  toPacket(): QuorumPacket {
    const reader = new Reader(this.bytes, this.start, this.end);
    reader.lengthMax = this.data.lengthMax;
    return readQuorumPacket(reader);
  }
}
