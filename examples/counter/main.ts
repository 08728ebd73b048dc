/**
 * A number that several processes increment:
 *
 *   main.js <connect string> <number> <name> [times]     adds one so many times, prints each result
 */
import { connect } from '@tskeeper/client';
import { AtomicNumber, textInteger } from '@tskeeper/recipes';

const [hosts, path, name, times = '10'] = process.argv.slice(2);
if (hosts === undefined || path === undefined || name === undefined) {
  console.error('usage: main.js <connect string> <number> <name> [times]');
  process.exit(2);
}

await using zk = await connect(hosts, { sessionTimeoutMs: 3000, retry: true });
await using number = new AtomicNumber(zk, path, { format: textInteger });
for (let time = 0; time < Number(times); time++) {
  const { after } = await number.increment();
  console.log(`${name} ${after}`);
}
