/** `Sessions` in a virtual world. */
import { type Client, connect, type ConnectOptions } from '@tskeeper/client';
import { Sessions } from '../../src/index.ts';
import type { RecipeWorld } from './recipe-world.ts';

/** Sessions of the world's server. Each client has an address of its own. */
export function sessionsOf(t: RecipeWorld, options: ConnectOptions = {}): Promise<Sessions> {
  const open = (signal: AbortSignal): Promise<Client> =>
    connect('server:2181', t.world.options({ ...options, connectTimeoutMs: Infinity, signal }));
  return t.until(Sessions.start(open));
}

/** The clients that were opened, the first ahead. */
export function clientsOf(sessions: Sessions): readonly Client[] {
  const clients: Client[] = [];
  sessions.each((client) => clients.push(client));
  return clients;
}
