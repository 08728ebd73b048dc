/**
 * Shared work:
 *
 *   main.js <connect string> <set> <name> <item> <item> ...
 *
 * Works on its share of the items until it is ended; one process at a time works on each item. Prints
 * when it begins and ends with an item, in nanoseconds of the machine's clock.
 */
import { once } from 'node:events';
import { connect } from '@tskeeper/client';
import { SetPartitioner } from '@tskeeper/recipes';

const [hosts, path, name, ...items] = process.argv.slice(2);
if (hosts === undefined || path === undefined || name === undefined || items.length === 0) {
  console.error('usage: main.js <connect string> <set> <name> <item> <item> ...');
  process.exit(2);
}

const ended = new Promise<void>((resolve) => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve());
});

await using zk = await connect(hosts, { sessionTimeoutMs: 3000 });
await using _share = new SetPartitioner(
  zk,
  path,
  name,
  items,
  async ({ item, signal }) => {
    console.log(`${item} ${name} ${process.hrtime.bigint()}`);
    // The signal is aborted when the item moves to another process, or is lost.
    if (!signal.aborted) await once(signal, 'abort');
    console.log(`${item} ends ${process.hrtime.bigint()}`);
  },
  { timeBoundaryMs: 500 },
);
await ended;
