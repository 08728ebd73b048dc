/**
 * A znode that exists as long as this program runs:
 *
 *   main.js <connect string> <path> <data>
 *
 * Creates the znode, and creates it again when it was deleted by hand or with its session. Waits while
 * another session has the znode. Prints the states of the znode.
 */
import { PersistentNode, Sessions } from '@tskeeper/recipes';

const [hosts, path, data] = process.argv.slice(2);
if (hosts === undefined || path === undefined || data === undefined) {
  console.error('usage: main.js <connect string> <path> <data>');
  process.exit(2);
}

const ended = new Promise<void>((resolve) => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve());
});

// Opens a new client after a session is lost: the next session creates the znode again.
await using sessions = await Sessions.start(hosts, { sessionTimeoutMs: 3000 });
await using node = new PersistentNode(sessions, path, data);
console.log(`${data} is ${node.state}`);
node.onStateChange((state) => console.log(`${data} is ${state}`));
await ended;
