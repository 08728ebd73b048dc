/**
 * One participant of a double barrier:
 *
 *   main.js <connect string> <barrier> <size> <name> [rounds] [ms]
 *
 * `size` participants begin and end each round together, with up to `ms` milliseconds of work before
 * it and in it. Prints each step and its time, in nanoseconds of the machine's clock.
 */
import { setTimeout as pass } from 'node:timers/promises';
import { connect } from '@tskeeper/client';
import { DoubleBarrier } from '@tskeeper/recipes';

const [hosts, path, size, name, rounds = '1', ms = '100'] = process.argv.slice(2);
if (hosts === undefined || path === undefined || name === undefined || !(Number(size) > 0)) {
  console.error('usage: main.js <connect string> <barrier> <size> <name> [rounds] [ms]');
  process.exit(2);
}

const say = (what: string): void => console.log(`${name} ${what} ${process.hrtime.bigint()}`);
const work = (): Promise<void> => pass(Math.random() * Number(ms));

await using zk = await connect(hosts, { sessionTimeoutMs: 3000, retry: true });
const barrier = new DoubleBarrier(zk, path, Number(size), { data: name });
for (let round = 0; round < Number(rounds); round++) {
  await work();
  say(`reached-${round}`);
  const inside = await barrier.enter();
  say(`entered-${round}`);
  await work();
  say(`leaves-${round}`);
  await inside.leave();
  say(`left-${round}`);
}
