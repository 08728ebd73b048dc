/**
 * Service discovery:
 *
 *   main.js <connect string> <base> register <name> <id> <port>     registers an instance until it is ended
 *   main.js <connect string> <base> watch <name>                    prints the instances, and each one that registers or leaves
 */
import { ServiceDiscovery, Sessions } from '@tskeeper/recipes';

const [hosts, base, what, name, id, port] = process.argv.slice(2);
const isUsed = what === 'watch' || (what === 'register' && id !== undefined && Number(port) > 0);
if (hosts === undefined || base === undefined || name === undefined || !isUsed) {
  console.error('usage: main.js <connect string> <base> register <name> <id> <port> | watch <name>');
  process.exit(2);
}

const ended = new Promise<void>((resolve) => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve());
});

// Opens a new client after a session is lost: the instance is registered again.
await using sessions = await Sessions.start(hosts, { sessionTimeoutMs: 3000, retry: true });
const registry = new ServiceDiscovery(sessions, base);
if (what === 'register') {
  await using _registration = await registry.register({ name, id, address: '127.0.0.1', port: Number(port) });
  console.log(`${id} is registered`);
  await ended;
} else {
  await using cache = registry.cache(name);
  void ended.then(() => cache.close());
  for await (const change of cache.changes()) {
    if (change.kind === 'created') console.log(`${change.after.data?.id} joined: port ${change.after.data?.port}`);
    if (change.kind === 'deleted') console.log(`${change.before.data?.id} left`);
  }
}
