/**
 * A subtree in memory:
 *
 *   main.js <connect string> <path>
 *
 * Prints everything below a znode, and each change, until it is ended. While the connection is lost
 * it keeps the last known state, and says so.
 */
import { connect } from '@tskeeper/client';
import { type CacheChange, TreeCache } from '@tskeeper/recipes';

const [hosts, path] = process.argv.slice(2);
if (hosts === undefined || path === undefined) {
  console.error('usage: main.js <connect string> <path>');
  process.exit(2);
}

const zk = await connect(hosts, { sessionTimeoutMs: 3000 });
const cache = new TreeCache(zk, path, { decode: (data) => new TextDecoder().decode(data ?? undefined) });
// The loop ends when the cache is closed.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void cache.close());
for await (const change of cache.changes()) console.log(inWords(change));
await zk.close();

function inWords(change: CacheChange<string>): string {
  switch (change.kind) {
    case 'created':
    case 'changed':
      return `${change.path} is "${change.after.data}"`;
    case 'deleted':
      return `${change.path} is gone`;
    case 'unreadable':
      return `${change.path} may not be read`;
    case 'outOfStep':
      return 'the state may be out of date';
    case 'inStep':
      return `in sync: ${cache.size} znodes`;
    case 'overflowed':
      return `${change.dropped} changes were not reported`;
    default:
      return change satisfies never;
  }
}
