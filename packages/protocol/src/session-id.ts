/** Where the ids of sessions come from. */
import { epochOf, type Millis, type SessionId, type Zxid } from './numbers.ts';

/** The owner that marks a container, which no session may have as its id. */
const containerOwner = -0x8000000000000000n;
const clockBits = 32;
const zxidBits = 24;
/** Of 2 to the power of 32, the golden section: one epoch and the next are weeks apart by it. */
const epochMs = 0x9e3779b9;

/**
 * The first id a server gives out after its start; each later one is greater by one. The top byte is the server's id, then come 32 bits of the wall
 * clock in milliseconds, and 24 bits of the last zxid.
 *
 * The clock alone tells two starts apart as long as it is not set back. When it is, or when it stands at the same time at each boot, the zxid does: each
 * session takes one, so zxids go on although log and snapshot have long forgotten the sessions of an earlier start. Neither would do alone. A follower that
 * starts again may have a log that is behind the sessions it has opened; and zxids begin anew when the folder was emptied or an old copy put back.
 *
 * In each epoch zxids count from the beginning: so the clock is put forward by the epoch, each time by so much that no clock that is set back a little
 * comes to stand where it was. (ZooKeeper's SessionTrackerImpl takes 40 bits of the clock in milliseconds, and nothing else; to whoever reads an id all but the
 * top byte means nothing.)
 */
export function initialSessionId(serverId: number, wallMs: Millis, lastZxid: Zxid): SessionId {
  const clock = BigInt.asUintN(clockBits, BigInt(Math.floor(wallMs)) + BigInt(epochOf(lastZxid)) * BigInt(epochMs));
  const start = (clock << BigInt(zxidBits)) + BigInt.asUintN(zxidBits, BigInt(lastZxid) + 1n);
  const id = BigInt.asIntN(64, (BigInt(serverId) << 56n) | start);
  return id === containerOwner || id === 0n ? id + 1n : id;
}
