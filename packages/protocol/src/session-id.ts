/** Where the ids of sessions come from. */
import type { Millis, SessionId } from './numbers.ts';

/** The owner that marks a container, which no session may have as its id. */
const containerOwner = -0x8000000000000000n;

/**
 * The first id a server gives out after its start; each later one is greater by one. The top byte is the server's id, the next five
 * are the low 40 bits of a monotonic clock in milliseconds, so that ids of other servers and of other starts differ. The rule is that
 * of ZooKeeper's SessionTrackerImpl.
 */
export function initialSessionId(serverId: number, elapsedMs: Millis): SessionId {
  const clock = BigInt.asUintN(40, BigInt(Math.floor(elapsedMs))) << 16n;
  const id = BigInt.asIntN(64, clock | (BigInt(serverId) << 56n));
  return id === containerOwner ? id + 1n : id;
}
