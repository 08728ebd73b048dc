/**
 * Creates session ids.
 */
import { epochOf, type Millis, type SessionId, type Zxid } from '../jute/numbers.ts';

/** The owner that marks a container, which no session may have as its id. */
const containerOwner = -0x8000000000000000n;
const clockBits = 32;
const zxidBits = 24;
/**
 * 2 to the power of 32, divided by the golden ratio: about 31 days between one epoch and the next.
 */
const clockShiftPerEpochMs = 0x9e3779b9;

/**
 * The first id that a server assigns after its start; each later one is greater by one. The top
 * byte is the server's id, followed by 32 bits of the wall clock in milliseconds, and 24 bits of
 * the last zxid.
 *
 * The clock alone distinguishes two starts unless it is set back, or has the same time at each
 * boot. Then the zxid does: every session takes a zxid, so zxids continue even if the log and the
 * snapshots no longer contain the sessions of an earlier start. The zxid alone is not enough
 * either: the log of a restarted follower may lack the sessions that the follower has opened, and
 * zxids restart when the folder is emptied or replaced by an old copy.
 *
 * Each epoch counts zxids from 1. So the clock is also advanced by `clockShiftPerEpochMs` per
 * epoch: a clock that was set back by minutes or hours then still gives another value than in the
 * epoch before.
 *
 * Local sessions take no zxid, so between two starts at the same time the zxid may be the same. A
 * server with local sessions adds a random number to those 24 bits.
 *
 * (ZooKeeper's SessionTrackerImpl uses 40 bits of the clock in milliseconds and no zxid. Programs
 * that parse an id rely only on the top byte.)
 */
export function initialSessionId(serverId: number, wallMs: Millis, lastZxid: Zxid, salt = 0): SessionId {
  const clock = BigInt.asUintN(clockBits, BigInt(Math.floor(wallMs)) + BigInt(epochOf(lastZxid)) * BigInt(clockShiftPerEpochMs));
  const start = (clock << BigInt(zxidBits)) + BigInt.asUintN(zxidBits, BigInt(lastZxid) + BigInt(salt) + 1n);
  const id = BigInt.asIntN(64, (BigInt(serverId) << 56n) | start);
  return id === containerOwner || id === 0n ? id + 1n : id;
}
