/** The program of docs/guides/sessions-and-connection-loss.md. */
import { type Client, connect, type ConnectOptions, KeeperError } from '@tskeeper/client';

/**
 * Does work that only the holder of an ephemeral may do. The signal aborts as soon as it is uncertain
 * whether this session holds it; `work` is called again when that is certain. Resolves when the work
 * is done, or when another session owns the ephemeral. Rejects when the session has ended.
 */
export async function whileHolding(zk: Client, path: string, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  for (;;) {
    const certain = new AbortController();
    const unlisten = zk.on('state', ({ state }) => {
      if (state !== 'SyncConnected') certain.abort();
    });
    try {
      const stat = await zk.exists(path);
      if (stat?.ephemeralOwner !== zk.sessionId) return;
      await work(certain.signal);
      return;
    } catch (error) {
      // Continue after the signal or a lost connection. Anything else is an error of the work, or the end of the session.
      if (zk.endReason !== undefined || !(certain.signal.aborted || KeeperError.is(error, 'ConnectionLoss'))) throw error;
    } finally {
      unlisten();
    }
  }
}

/** Takes a seat, and returns whether it did, however often the connection is lost: `ticket` identifies the caller. */
export async function takeSeat(zk: Client, seat: string, ticket: string): Promise<boolean> {
  for (;;) {
    try {
      await zk.create(`/seats/${seat}`, ticket);
      return true;
    } catch (error) {
      if (KeeperError.is(error, 'NodeExists')) return (await ticketOf(zk, seat)) === ticket;
      // notSent: not taken. unknown: taken, not taken, or taken later. The next attempt shows which.
      if (!KeeperError.is(error, 'ConnectionLoss')) throw error;
    }
  }
}

async function ticketOf(zk: Client, seat: string): Promise<string> {
  const { data } = await zk.getData(`/seats/${seat}`, { retry: true });
  return new TextDecoder().decode(data ?? undefined);
}

/** Registers, and registers again with a new session whenever the session has expired. Rejects with the signal's reason. */
export async function stayRegistered(
  open: (signal: AbortSignal) => Promise<Client>,
  register: (zk: Client) => Promise<void>,
  signal: AbortSignal,
): Promise<never> {
  for (;;) {
    await using zk = await open(signal);
    try {
      await register(zk);
      await ended(zk, signal);
    } catch (error) {
      if (!KeeperError.is(error, 'SessionExpired')) throw error;
    }
  }
}

async function ended(zk: Client, signal: AbortSignal): Promise<void> {
  let look = () => {};
  const over = new Promise<void>((resolve) => {
    look = () => (signal.aborted || zk.endReason !== undefined) && resolve();
  });
  const unlisten = zk.on('state', look);
  signal.addEventListener('abort', look);
  look();
  await over;
  unlisten();
  signal.removeEventListener('abort', look);
  signal.throwIfAborted();
}

/** A session as text, for the next process. Keep it like a password. */
export function savedSession(zk: Client): string {
  return JSON.stringify({ id: String(zk.sessionId), password: Buffer.from(zk.sessionPassword).toString('base64') });
}

/** Resumes a saved session, or opens a new one if that has expired. */
export async function resume(servers: string, saved: string, options: ConnectOptions = {}): Promise<Client> {
  const { id, password } = JSON.parse(saved) as { readonly id: string; readonly password: string };
  try {
    return await connect(servers, { ...options, session: { id: BigInt(id), password: Buffer.from(password, 'base64') } });
  } catch (error) {
    if (!KeeperError.is(error, 'SessionExpired')) throw error;
    return connect(servers, options);
  }
}
