/**
 * A znode that is there for as long as this program is: `main.js <connect string> <path> <data>` makes it, and makes it again when somebody deletes it, and when it went with a session. While
 * another session has the znode it waits. Prints the states that it goes through.
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

// One client after another: what is lost with one session is made in the next.
await using sessions = await Sessions.start(hosts, { sessionTimeoutMs: 3000 });
await using node = new PersistentNode(sessions, path, data);
console.log(`${data} is ${node.state}`);
node.onStateChange((state) => console.log(`${data} is ${state}`));
await ended;
