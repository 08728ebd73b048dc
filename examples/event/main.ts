/**
 * An event that releases one waiter each time that it is set:
 *
 *   main.js <connect string> <event> set
 *   main.js <connect string> <event> wait <name>     waits for the event, prints a line, and ends
 */
import { connect } from '@tskeeper/client';
import { EventHandle } from '@tskeeper/recipes';

const [hosts, path, what, name] = process.argv.slice(2);
if (hosts === undefined || path === undefined || (what !== 'set' && (what !== 'wait' || name === undefined))) {
  console.error('usage: main.js <connect string> <event> set | wait <name>');
  process.exit(2);
}

await using zk = await connect(hosts, { sessionTimeoutMs: 3000, retry: true });
const event = new EventHandle(zk, path, { autoReset: true });
if (what === 'set') await event.set();
else {
  // On a signal it leaves the queue, so that the next waiter need not wait until this session has ended.
  const ended = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => ended.abort());
  console.log(`${name} waits`);
  try {
    await event.wait({ signal: ended.signal });
    console.log(`${name} is through`);
  } catch (error) {
    if (error !== ended.signal.reason) throw error;
    console.log(`${name} waits no more`);
  }
}
