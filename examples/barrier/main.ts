/**
 * One participant of a barrier:
 *
 *   main.js <connect string> <root> <size> <name> [rounds] [ms]
 *
 * Each round has its own barrier, `<root>-0`, `<root>-1` ..., with up to `ms` milliseconds of work
 * before it and after it. Prints each step and its time, in nanoseconds of the machine's clock.
 */
import { setTimeout as pass } from 'node:timers/promises';
import { connect } from '@tskeeper/client';
import { SimpleBarrier } from '@tskeeper/recipes';

const [hosts, root, size, name, rounds = '1', ms = '100'] = process.argv.slice(2);
if (hosts === undefined || root === undefined || name === undefined || !(Number(size) > 0)) {
  console.error('usage: main.js <connect string> <root> <size> <name> [rounds] [ms]');
  process.exit(2);
}

const say = (what: string): void => console.log(`${name} ${what} ${process.hrtime.bigint()}`);
const work = (): Promise<void> => pass(Math.random() * Number(ms));

const zk = await connect(hosts, { sessionTimeoutMs: 3000 });
say(`session-timeout-${zk.sessionTimeoutMs}`);
for (let round = 0; round < Number(rounds); round++) {
  const barrier = await SimpleBarrier.create(zk, `${root}-${round}`, Number(size), { name });
  await work();
  say(`reached-${round}`);
  const inside = await barrier.enter();
  say(`entered-${round}`);
  await work();
  say(`leaves-${round}`);
  await inside.leave();
  say(`left-${round}`);
}
await zk.close();
