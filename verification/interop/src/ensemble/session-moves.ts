/** What becomes of a session that is taken to a server, and of a request on a connection. */
import { ErrorCode, OpCode } from '@tskeeper/protocol';
import { type EnsemblePeer, type Fields, type Handshake, openAcl, RawClient, record } from '@tskeeper/harness';

/** Longer than any check takes on a busy machine. */
export const timeOut = 60_000;

export interface Move {
  readonly outcome: 'resumed' | 'refused' | 'closed';
  /** The session at that server, if it was resumed. */
  readonly client: RawClient | undefined;
}

export async function resume(at: EnsemblePeer, session: RawClient, changed: Partial<Handshake> = {}): Promise<Move> {
  const { sessionId, passwd } = session;
  let isRefused = false;
  const client = await RawClient.connect(at.port, { timeOut, sessionId, passwd, ...changed }, () => (isRefused = true));
  if (client === undefined) return { outcome: isRefused ? 'refused' : 'closed', client };
  if (client.sessionId !== sessionId) throw new Error(`another session was opened at ${at.name}`);
  return { outcome: 'resumed', client };
}

/** The error code; 'closed' if the connection ends instead. */
export function errorOf(client: RawClient, type: number, fields: Fields): Promise<number | 'closed'> {
  return client.call(type, fields).then(
    ({ err }) => err,
    () => 'closed',
  );
}

export function createFields(path: string, flags = 0): Fields {
  return record.create(path, null, openAcl, flags);
}

/** Sees what was acknowledged before; ZooKeeper's leader may answer a sync before it has applied all. */
export async function isThere(at: EnsemblePeer, path: string): Promise<boolean> {
  const client = await RawClient.connectOrThrow(at.port, timeOut);
  await client.call(OpCode.multi, record.multi([]));
  const err = await errorOf(client, OpCode.exists, record.pathAndWatch(path, false));
  await client.close();
  return err === ErrorCode.Ok;
}
