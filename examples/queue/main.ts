/**
 * A queue:
 *
 *   main.js <connect string> <queue> <results> put <name> <count>     puts so many items
 *   main.js <connect string> <queue> <results> work <name> [ms]       processes items until it is ended, for up to `ms` milliseconds each, and writes
 *                                                                     the znode `<results>/<item>` in the txn that acknowledges it
 */
import { setTimeout as pass } from 'node:timers/promises';
import { connect, op } from '@tskeeper/client';
import { Queue, RecipeError } from '@tskeeper/recipes';

const [hosts, path, results, what, name, argument = '20'] = process.argv.slice(2);
if (hosts === undefined || path === undefined || results === undefined || name === undefined || (what !== 'put' && what !== 'work')) {
  console.error('usage: main.js <connect string> <queue> <results> put <name> <count> | work <name> [ms]');
  process.exit(2);
}

await using zk = await connect(hosts, { sessionTimeoutMs: 3000, retry: true });
await using queue = new Queue(zk, path);
await zk.ensurePath(results);

async function work(signal: AbortSignal): Promise<void> {
  console.log(`${name} is at work`);
  for (;;) {
    await using item = await queue.claim({ signal });
    const text = new TextDecoder().decode(item.data ?? undefined);
    console.log(`${name} works on ${text}`);
    await pass(Math.random() * Number(argument));
    try {
      await item.acknowledge([op.create(`${results!}/${text}`, name)]);
      console.log(`${name} has done ${text}`);
    } catch (error) {
      // Another worker has the item now, and writes the result.
      if (!(error instanceof RecipeError && error.code === 'Lost')) throw error;
      console.log(`${name} has lost ${text}`);
    }
  }
}

if (what === 'put') {
  for (let number = 0; number < Number(argument); number++) {
    await queue.put(`${name}-${number}`);
    console.log(`${name} has put ${number}`);
  }
} else {
  const ending = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => ending.abort());
  try {
    await work(ending.signal);
  } catch (error) {
    if (!ending.signal.aborted) throw error;
  }
}
