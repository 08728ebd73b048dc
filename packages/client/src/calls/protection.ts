/**
 * A create that survives a lost answer. A guid in the name, in Curator's form `_c_<guid>-name`,
 * makes the znode recognisable: a client without an answer lists the parent, and finds its znode or
 * sees that there is none.
 *
 * The listing follows a `sync`: without it, the first request may be committed after the listing
 * (packages/simulator/test/protected-creates.test.ts shows that). After a `sync`, nothing from the
 * lost connection can take effect any more: the ensemble rejects requests forwarded for a session
 * that has moved (SessionMoved), and earlier requests are ordered before the sync. So a missing
 * znode was never created, and the create may be sent again.
 */
import { ErrorCode, type SessionId } from '@tskeeper/protocol';
import type { Random } from '../clock.ts';
import { KeeperError, Refusal } from '../keeper-error.ts';
import { Bounds, type CallSession } from './bounds.ts';
import { failureOf, persistently, reworded } from './retries.ts';
import { childPath, nameOf, parentOf } from '../paths.ts';
import type { Created, Znodes } from './znodes.ts';

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
  throw new Refusal(
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
  readonly isOwn: boolean;
}

/** The path with the guid for the program's `path`; for a sequence without the number. */
export function protectedPath(path: string, { guid }: Protection): string {
  return childPath(parentOf(path), protectedName(guid, nameOf(path)));
}

/** Calls `create` until the result is known. `path` is the path that `create` sends. */
export async function createProtected(
  session: CallSession,
  znodes: Znodes,
  path: string,
  { guid, isOwn }: Protection,
  bounds: Bounds,
  create: () => Promise<Created>,
): Promise<Created> {
  const lookFor = (within: Bounds) => look(session, znodes, path, guid, within);
  // A caller with its own guid may have tried before, on another session.
  let mayBeThere = !isOwn;
  try {
    for (;;) {
      if (mayBeThere) {
        const found = await lookFor(bounds);
        if (found !== undefined && isOfSession(found, znodes.sessionId)) return found;
        // An ephemeral of another session is deleted when that session ends, so the caller cannot
        // rely on it.
        if (found !== undefined) await remove(session, znodes, found.path, bounds);
        mayBeThere = false;
      }
      try {
        return await create();
      } catch (error) {
        const failure = failureOf(error);
        if (failure !== undefined && failure.outcome !== 'unknown') throw error;
        mayBeThere = true;
        if (failure === undefined) throw error;
      }
    }
  } catch (error) {
    if (!mayBeThere) throw error;
    if (isOwn && !session.isOver) {
      // No client could find it later: in the wait queue of a lock it would block all after it.
      void clearUp(session, lookFor, znodes);
      throw withNote(error, 'if it was created, it will be deleted in the background');
    }
    throw withNote(error, undefined);
  }
}

function isOfSession({ stat }: Created, sessionId: SessionId): boolean {
  return stat.ephemeralOwner === 0n || stat.ephemeralOwner === sessionId;
}

function withNote(error: unknown, note: string | undefined): unknown {
  const failure = failureOf(error);
  if (failure === undefined) return error;
  const reason = [failure.reason, note].filter((part) => part !== undefined).join('; ');
  return reworded(failure, 'unknown', reason === '' ? undefined : reason);
}

/** The znode with this guid, in its current state; undefined if there is none. */
function look(session: CallSession, znodes: Znodes, path: string, guid: string, bounds: Bounds): Promise<Created | undefined> {
  const parent = parentOf(path);
  const prefix = protectedName(guid, '');
  return persistently(session, bounds, async (limits) => {
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
    throw new Refusal(ErrorCode.NoNode, 'unknown', 'it was created, but another client deleted it before this client could read it');
  });
}

function remove(session: CallSession, znodes: Znodes, path: string, bounds: Bounds): Promise<void> {
  return persistently(session, bounds, async (limits) => {
    try {
      await znodes.delete(path, { ...limits, retry: false });
    } catch (error) {
      if (!KeeperError.is(error, 'NoNode')) throw error;
    }
  });
}

async function clearUp(session: CallSession, lookFor: (bounds: Bounds) => Promise<Created | undefined>, znodes: Znodes): Promise<void> {
  const unlimited = new Bounds(session, {});
  try {
    const found = await lookFor(unlimited);
    if (found !== undefined) await remove(session, znodes, found.path, unlimited);
  } catch {
    // The session has ended, or another client has created children below it and must decide
    // itself.
  }
}
