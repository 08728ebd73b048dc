/**
 * A create that survives a lost answer. A guid in the name, in Curator's form `_c_<guid>-name`,
 * makes the znode recognisable: a client without an answer lists the parent, and finds its znode or
 * sees that there is none.
 *
 * The listing follows a `sync`: without it, the first request may be committed after the listing
 * (verification/simulator/test/protected-creates.test.ts shows that). After a `sync`, requests of
 * the lost connection can no longer take effect: the ensemble rejects requests forwarded for a
 * session that has moved (SessionMoved), and earlier requests are ordered before the sync. So a
 * missing znode was never created, and the create may be sent again.
 */
import { ErrorCode, type SessionId } from '@tskeeper/protocol';
import type { Random } from '../clock.ts';
import { KeeperError, RequestFailure } from '../keeper-error.ts';
import { CallDeadline, type CallSession } from './call-deadline.ts';
import { failureOf, retryUntilSessionEnds, withOutcome } from './retries.ts';
import { childPath, nameOf, parentOf } from '../paths.ts';
import type { CreatedZnode, ZnodeCalls } from './znode-calls.ts';

const guidForm = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** A guid of version 4: 122 random bits, from the client's source of randomness. */
export function newGuid(random: Random): string {
  const words = [random.uint32(), random.uint32(), random.uint32(), random.uint32()];
  words[1] = ((words[1]! & 0xffff0fff) | 0x00004000) >>> 0;
  words[2] = ((words[2]! & 0x3fffffff) | 0x80000000) >>> 0;
  const hex = words.map((word) => word.toString(16).padStart(8, '0')).join('');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

export function checkGuid(guid: string): void {
  if (guidForm.test(guid)) return;
  throw new RequestFailure(
    ErrorCode.BadArguments,
    'notSent',
    `protection must be true or a guid of 36 characters, 8-4-4-4-12 hex digits, not "${guid}"`,
  );
}

function protectedName(guid: string, name: string): string {
  return `_c_${guid}-${name}`;
}

export interface Protection {
  readonly guid: string;
  /** The guid was created for this call: no other client knows it, so no other client cleans up. */
  readonly isGenerated: boolean;
}

/** The path with the guid for the program's `path`; for a sequence without the number. */
export function protectedPath(path: string, { guid }: Protection): string {
  return childPath(parentOf(path), protectedName(guid, nameOf(path)));
}

/** Calls `create` until the result is known. `path` is the path that `create` sends. */
export async function createProtected(
  session: CallSession,
  znodes: ZnodeCalls,
  path: string,
  { guid, isGenerated }: Protection,
  deadline: CallDeadline,
  create: () => Promise<CreatedZnode>,
): Promise<CreatedZnode> {
  const findOwn = (within: CallDeadline) => findByGuid(session, znodes, path, guid, within);
  // A caller with its own guid may have tried before, on another session.
  let mayExist = !isGenerated;
  try {
    for (;;) {
      if (mayExist) {
        const found = await findOwn(deadline);
        if (found !== undefined && belongsToSession(found, znodes.sessionId)) return found;
        // An ephemeral of another session is deleted when that session ends, so the caller cannot
        // rely on it.
        if (found !== undefined) await deleteIfPresent(session, znodes, found.path, deadline);
        mayExist = false;
      }
      try {
        return await create();
      } catch (error) {
        const failure = failureOf(error);
        if (failure !== undefined && failure.outcome !== 'unknown') throw error;
        mayExist = true;
        if (failure === undefined) throw error;
      }
    }
  } catch (error) {
    if (!mayExist) throw error;
    if (isGenerated && !session.hasEnded) {
      // No client could find it later: in the wait queue of a lock it would block all after it.
      void deleteInBackgroundByGuid(session, findOwn, znodes);
      throw withNote(error, 'if it was created, it will be deleted in the background');
    }
    throw withNote(error, undefined);
  }
}

function belongsToSession({ stat }: CreatedZnode, sessionId: SessionId): boolean {
  return stat.ephemeralOwner === 0n || stat.ephemeralOwner === sessionId;
}

function withNote(error: unknown, note: string | undefined): unknown {
  const failure = failureOf(error);
  if (failure === undefined) return error;
  const reason = [failure.reason, note].filter((part) => part !== undefined).join('; ');
  return withOutcome(failure, 'unknown', reason === '' ? undefined : reason);
}

/** The znode with this guid, in its current state; undefined if there is none. */
function findByGuid(
  session: CallSession,
  znodes: ZnodeCalls,
  path: string,
  guid: string,
  deadline: CallDeadline,
): Promise<CreatedZnode | undefined> {
  const parent = parentOf(path);
  const prefix = protectedName(guid, '');
  return retryUntilSessionEnds(session, deadline, async (limits) => {
    try {
      const { children } = await znodes.getChildren(parent, { ...limits, linearizable: true, retry: false });
      const name = children.find((child) => child.startsWith(prefix));
      if (name === undefined) return undefined;
      const found = childPath(parent, name);
      const stat = await znodes.exists(found, { ...limits, retry: false });
      if (stat !== null) return { path: found, stat };
    } catch (error) {
      if (KeeperError.is(error, 'NoNode')) return undefined;
      throw error;
    }
    throw new RequestFailure(ErrorCode.NoNode, 'unknown', 'it was created, but another client deleted it before this client could read it');
  });
}

function deleteIfPresent(session: CallSession, znodes: ZnodeCalls, path: string, deadline: CallDeadline): Promise<void> {
  return retryUntilSessionEnds(session, deadline, async (limits) => {
    try {
      await znodes.delete(path, { ...limits, retry: false });
    } catch (error) {
      if (!KeeperError.is(error, 'NoNode')) throw error;
    }
  });
}

async function deleteInBackgroundByGuid(
  session: CallSession,
  lookFor: (deadline: CallDeadline) => Promise<CreatedZnode | undefined>,
  znodes: ZnodeCalls,
): Promise<void> {
  const unlimited = new CallDeadline(session, {});
  try {
    const found = await lookFor(unlimited);
    if (found !== undefined) await deleteIfPresent(session, znodes, found.path, unlimited);
  } catch {
    // The session has ended, or another client has created children below it and must decide
    // itself.
  }
}
