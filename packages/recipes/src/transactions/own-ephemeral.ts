/**
 * Ephemerals that show that a client is at work. Each has a fixed name, so their session
 * distinguishes them.
 */
import { type Acl, type CallOptions, type ClientView, KeeperError, op } from '@tskeeper/client';
import { connectionLossCodes, retryForever } from '../waiting/own-znode.ts';

/**
 * Creates it, in place of one that an earlier session has left. Rejects as `create` does, and with
 * the signal's reason.
 */
export async function createPresence(zk: ClientView, path: string, acl: readonly Acl[] | undefined, signal: AbortSignal): Promise<void> {
  const options = { ...retryForever, signal };
  const settings = { mode: 'ephemeral', acl } as const;
  try {
    for (;;) {
      const stat = await zk.exists(path, options);
      if (stat?.ephemeralOwner === zk.sessionId) return;
      try {
        // In one txn, so that no client sees it gone.
        await zk.multi([...(stat === null ? [] : [op.delete(path)]), op.create(path, null, settings)], options);
        return;
      } catch (error) {
        const isStill = KeeperError.is(error, ...connectionLossCodes, 'NodeExists') || (KeeperError.is(error, 'NoNode') && stat !== null);
        if (!isStill) throw error;
      }
    }
  } catch (error) {
    void deleteOwnPresence(zk, path);
    throw error;
  }
}

/**
 * Deletes it if it belongs to this session, or is about to; in the background if no server can be
 * reached. Never rejects.
 */
export async function deleteOwnPresence(zk: ClientView, path: string): Promise<void> {
  try {
    await deleteIfOwn(zk, path, {});
  } catch {
    void deleteIfOwn(zk, path, retryForever).catch(() => undefined);
  }
}

async function deleteIfOwn(zk: ClientView, path: string, options: CallOptions): Promise<void> {
  const stat = await zk.exists(path, { ...options, linearizable: true });
  if (stat?.ephemeralOwner === zk.sessionId) await deleteEphemeral(zk, path);
}

/** Deletes an ephemeral of this session. Never rejects. */
export async function deleteEphemeral(zk: ClientView, path: string): Promise<void> {
  try {
    await zk.delete(path, { guaranteed: true });
  } catch {
    // It is gone, or will be: with the session, or in the background.
  }
}
