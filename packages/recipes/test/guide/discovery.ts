/** The code in docs/guides/recipes/discovery.md. */
import type { Client } from '@tskeeper/client';
import {
  randomly,
  type Registration,
  type ServiceProvider,
  ServiceDiscovery,
  Sessions,
  type SessionsOptions,
  sticky,
  buildUri,
} from '@tskeeper/recipes';

/** What instances publish besides their address. */
export interface Zone {
  readonly zone: string;
}

/**
 * Registers this process, in each new session again, until the result is closed:
 * `await using registration = await announce(sessions, 'eu')`.
 */
export async function announce(sessions: Sessions, zone: string): Promise<Registration<Zone>> {
  const registry = new ServiceDiscovery<Zone>(sessions, '/services');
  return await registry.register({
    name: 'api',
    address: '10.0.0.1',
    port: 8080,
    uriSpec: '{scheme}://{address}:{port}',
    payload: { zone },
  });
}

/** Opens a client, and a new one each time that a session has expired. */
export async function openSessions(servers: string, options?: SessionsOptions): Promise<Sessions> {
  return await Sessions.start(servers, options);
}

/** Instances of one zone: the same one while it is usable, then a random one. */
export function near(source: Client | Sessions, zone: string, random: () => number = Math.random): ServiceProvider<Zone> {
  const registry = new ServiceDiscovery<Zone>(source, '/services');
  return registry.provider('api', { strategy: sticky(randomly(random)), include: ({ payload }) => payload.zone === zone });
}

/**
 * Tries one instance after another until one answers. The provider skips an instance that fails
 * twice within half a minute for that long.
 */
export async function ask(provider: ServiceProvider<Zone>, get: (uri: string) => Promise<string>): Promise<string> {
  await provider.ready({ timeoutMs: 10_000 });
  for (let attempt = 0; attempt < 5; attempt++) {
    const instance = provider.choose();
    if (instance === undefined) break;
    try {
      return await get(buildUri(instance)!);
    } catch {
      provider.noteError(instance);
    }
  }
  throw new Error('no instance of the service answers');
}

/** Disables or enables an instance, as an operator does. It stays registered. */
export async function setEnabled(source: Client | Sessions, id: string, enabled: boolean): Promise<void> {
  await new ServiceDiscovery<Zone>(source, '/services').update('api', id, { enabled });
}

/** Reports each instance that registers or leaves. */
export async function report(source: Client | Sessions, tell: (line: string) => void, signal: AbortSignal): Promise<void> {
  await using cache = new ServiceDiscovery<Zone>(source, '/services').cache('api');
  for await (const change of cache.changes({ signal })) {
    if (change.kind === 'created') tell(`${change.after.data?.id} joined`);
    if (change.kind === 'deleted') tell(`${change.before.data?.id} left`);
  }
}
