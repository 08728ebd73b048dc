/** Where the ids of sessions come from. */
import { epochOf, type Millis, type SessionId, type Zxid } from './numbers.ts';

/** The owner that marks a container, which no session may have as its id. */
const containerOwner = -0x8000000000000000n;
const clockBits = 28;
const zxidBits = 28;
/** Of 2 to the power of 28, the golden section: one epoch and the next are years apart by it. */
const epochSeconds = 0x9e3779b;

/**
 * The first id a server gives out after its start; each later one is greater by one. The top byte is the server's id, the rest the wall
 * clock in seconds and the last zxid, 28 bits of each.
 *
 * Each session takes a zxid of its own, so no id is given twice while zxids go on: not when the clock was set back, or stands at the same
 * second at each boot, and not when log and snapshot have long forgotten the sessions of an earlier start. And when zxids begin anew,
 * because the folder was emptied or an old copy put back, the clock tells the lives apart, so that a client of an earlier one does not
 * take up the session of another. In an ensemble each epoch counts from the beginning, and several may begin within a second: so the clock
 * is put forward by the epoch, each time by so much that no clock that is set back a little comes to stand where it was. (ZooKeeper's SessionTrackerImpl has the clock in milliseconds there, and nothing else; to whoever reads
 * an id all but the top byte means nothing.)
 */
export function initialSessionId(serverId: number, wallMs: Millis, lastZxid: Zxid): SessionId {
  const seconds = BigInt(Math.floor(wallMs / 1000)) + BigInt(epochOf(lastZxid)) * BigInt(epochSeconds);
  const clock = BigInt.asUintN(clockBits, seconds) << BigInt(zxidBits);
  const id = BigInt.asIntN(64, (BigInt(serverId) << 56n) | clock) + BigInt.asUintN(zxidBits, BigInt(lastZxid) + 1n);
  return id === containerOwner || id === 0n ? id + 1n : id;
}
