/** For tests that send one request at a time. */
import {
  type OperationName,
  type ReplyOf,
  type RequestOf,
  type SessionId,
  sessionHigh,
  sessionLow,
  sessionPassword,
} from '@tskeeper/protocol';
import { SeededRandom } from '@tskeeper/runtime';
import type { Reply } from '../record/recording.ts';
import { RawClient } from './raw-client.ts';
import type { VirtualWorld } from '../world/virtual-world.ts';

let clients = 0;

/** Connects a client, with a new session or with an existing one. */
export async function connectRawClient(world: VirtualWorld, timeoutMs = 4000, session = 0n): Promise<RawClient> {
  clients = (clients + 1) % 250;
  const client = new RawClient(world, new SeededRandom(clients), { name: 'client', address: `10.9.1.${clients + 1}`, timeoutMs });
  if (session !== 0n) resumeSession(client, session);
  if (!(await world.runUntil(() => client.ready || client.lostSessions.length > 0, 10_000)))
    throw new Error('timed out after 10000 ms waiting for the client to connect');
  return client;
}

function resumeSession(client: RawClient, session: SessionId): void {
  client.session = session;
  client.password = sessionPassword(sessionHigh(session), sessionLow(session));
}

export async function sendRequest<Name extends OperationName>(
  world: VirtualWorld,
  client: RawClient,
  name: Name,
  record: RequestOf<Name>,
): Promise<Reply & { readonly body: ReplyOf<Name> }> {
  const request = client.send(name, record);
  if (request === undefined) throw new Error('the client is not connected');
  if (!(await world.runUntil(() => request.reply !== undefined, 10_000)))
    throw new Error(`timed out after 10000 ms waiting for the reply to ${name}`);
  return request.reply as Reply & { readonly body: ReplyOf<Name> };
}
