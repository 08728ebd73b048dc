/** What docs/guides/sessions-and-connection-loss.md shows. */
import { type Client, connect, type ConnectOptions, KeeperError } from '@tskeeper/client';

/**
 * Does what only the holder of an ephemeral may do. The signal is aborted as soon as it is uncertain that this session holds it, and `work` is called
 * again once it is certain. Resolves when the work is done, or when the ephemeral is another's. Rejects when the session has ended.
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
      // Ended by the signal, or by a lost connection. Anything else is an error of the work, or the end of the session.
      if (zk.closedBecause !== undefined || !(certain.signal.aborted || KeeperError.is(error, 'ConnectionLoss'))) throw error;
    } finally {
      unlisten();
    }
  }
}

/** Takes a seat. Whether it was taken is known in the end, whatever is lost on the way: `ticket` tells one's own seat from another's. */
export async function takeSeat(zk: Client, seat: string, ticket: string): Promise<boolean> {
  for (;;) {
    try {
      await zk.create(`/seats/${seat}`, ticket);
      return true;
    } catch (error) {
      if (KeeperError.is(error, 'NodeExists')) return (await ticketOf(zk, seat)) === ticket;
      // notSent: not taken. unknown: taken, or not, or about to be. Asked again, either gives an answer.
      if (!KeeperError.is(error, 'ConnectionLoss')) throw error;
    }
  }
}

async function ticketOf(zk: Client, seat: string): Promise<string> {
  const { data } = await zk.getData(`/seats/${seat}`, { retry: true });
  return new TextDecoder().decode(data ?? undefined);
}

/** Registers, and registers anew with a new session whenever the session has expired. Rejects with the signal's reason. */
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
    look = () => (signal.aborted || zk.closedBecause !== undefined) && resolve();
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

/** Goes on with a saved session, and with a new one if that has expired. */
export async function resume(servers: string, saved: string, options: ConnectOptions = {}): Promise<Client> {
  const { id, password } = JSON.parse(saved) as { readonly id: string; readonly password: string };
  try {
    return await connect(servers, { ...options, session: { id: BigInt(id), password: Buffer.from(password, 'base64') } });
  } catch (error) {
    if (!KeeperError.is(error, 'SessionExpired')) throw error;
    return connect(servers, options);
  }
}
