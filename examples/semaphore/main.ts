/**
 * A semaphore:
 *
 *   main.js <connect string> <semaphore> <size> <name> [times] [ms]
 *
 * Acquires one of `size` leases so many times, and holds it for up to `ms` milliseconds. Prints when,
 * in nanoseconds of the machine's clock.
 */
import { setTimeout as pass } from 'node:timers/promises';
import { connect } from '@tskeeper/client';
import { Semaphore } from '@tskeeper/recipes';

const [hosts, path, size, name, times = '10', ms = '20'] = process.argv.slice(2);
if (hosts === undefined || path === undefined || name === undefined || !(Number(size) > 0)) {
  console.error('usage: main.js <connect string> <semaphore> <size> <name> [times] [ms]');
  process.exit(2);
}

await using zk = await connect(hosts, { sessionTimeoutMs: 3000, retry: true });
const semaphore = new Semaphore(zk, path, { size: Number(size), data: name });
for (let time = 0; time < Number(times); time++) {
  await using _lease = await semaphore.acquire();
  console.log(`${name} begins ${process.hrtime.bigint()}`);
  await pass(Math.random() * Number(ms));
  console.log(`${name} ends ${process.hrtime.bigint()}`);
}
