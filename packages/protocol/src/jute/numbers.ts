/**
 * The 64-bit numbers of ZooKeeper, and their representation here.
 *
 * A zxid is a JavaScript number. It is exact up to 2^53, that is up to epoch 2,097,151; a folder or
 * a peer with a later epoch is refused at the boundary (see docs/decisions/zxid-as-number.md).
 * Numbers that a client merely sends us, such as lastZxidSeen, may lie beyond that; they are only
 * ever compared, and rounding to the nearest double keeps the order.
 *
 * A session id uses all 64 bits, so it is a bigint where users see it and two int32 halves where
 * speed matters.
 */

/** Transaction id: epoch in the high 32 bits, counter in the low ones. -1 means none. */
export type Zxid = number;
/** A duration or a wall-clock time in milliseconds. */
export type Millis = number;
/** A session's id, signed 64 bits as on the wire. */
export type SessionId = bigint;

const twoTo32 = 4294967296;

/** The latest epoch whose zxids are exact here. */
export const epochMax = 0x1fffff;

/**
 * Joins two halves of a signed 64-bit number. Exact if the result is below 2^53 in magnitude,
 * otherwise rounded.
 */
export function int64(high: number, low: number): number {
  return high * twoTo32 + (low >>> 0);
}

/** The high 32 bits, signed, of a number within the exact range. */
export function highHalf(value: number): number {
  return Math.floor(value / twoTo32) | 0;
}

/** The low 32 bits, signed, of a number within the exact range. */
export function lowHalf(value: number): number {
  return value | 0;
}

export function makeZxid(epoch: number, counter: number): Zxid {
  return epoch * twoTo32 + counter;
}

export function epochOf(zxid: Zxid): number {
  return Math.floor(zxid / twoTo32);
}

export function counterOf(zxid: Zxid): number {
  return zxid >>> 0;
}

/** As ZooKeeper prints it: `0x10000002a`. -1 prints as `0xffffffffffffffff`. */
export function formatZxid(zxid: Zxid | bigint): string {
  return zxid < 0 ? `0x${BigInt.asUintN(64, BigInt(zxid)).toString(16)}` : `0x${zxid.toString(16)}`;
}

export function sessionIdOf(high: number, low: number): SessionId {
  // The value in most Stats, those of znodes that are not ephemeral; building a bigint takes longer
  // than reading the rest of a Stat.
  if (high === 0 && low === 0) return 0n;
  return BigInt.asIntN(64, (BigInt(high) << 32n) | BigInt(low >>> 0));
}

export function sessionHigh(id: SessionId): number {
  return Number(BigInt.asIntN(32, id >> 32n));
}

export function sessionLow(id: SessionId): number {
  return Number(BigInt.asIntN(32, id));
}

/** As ZooKeeper prints it: `0x100000ceb4c0000`, unsigned and without padding. */
export function formatSessionId(id: SessionId): string {
  return `0x${BigInt.asUintN(64, id).toString(16)}`;
}
