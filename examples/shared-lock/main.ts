/**
 * Readers and writers:
 *
 *   main.js <connect string> <path> read|write <name> [times] [ms]
 *
 * Holds the lock so many times, each for up to `ms` milliseconds. Prints when it began and ended, in
 * nanoseconds of the machine's clock.
 */
import { setTimeout as pass } from 'node:timers/promises';
import { connect } from '@tskeeper/client';
import { ReadWriteLock } from '@tskeeper/recipes';

const [hosts, path, side, name, times = '5', ms = '100'] = process.argv.slice(2);
if (hosts === undefined || path === undefined || (side !== 'read' && side !== 'write') || name === undefined) {
  console.error('usage: main.js <connect string> <path> read|write <name> [times] [ms]');
  process.exit(2);
}

const say = (what: string): void => console.log(`${name} ${what} ${process.hrtime.bigint()}`);

await using zk = await connect(hosts, { sessionTimeoutMs: 3000 });
const lock = new ReadWriteLock(zk, path, { data: name });
for (let time = 0; time < Number(times); time++) {
  await (side === 'read' ? lock.readLock : lock.writeLock).run(async ({ signal }) => {
    say(`${side}s`);
    await pass(Math.random() * Number(ms), undefined, { signal });
    say('ends');
  });
}
