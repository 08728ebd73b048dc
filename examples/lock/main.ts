/**
 * A lock:
 *
 *   main.js <connect string> <lock> <number> <name> [times] [ms]
 *
 * Increments the znode `number` so many times. Each time it acquires the lock, reads the number,
 * works for up to `ms` milliseconds and writes the next number.
 */
import { setTimeout as pass } from 'node:timers/promises';
import { connect, KeeperError, op } from '@tskeeper/client';
import { Lock, RecipeError } from '@tskeeper/recipes';

const [hosts, path, number, name, times = '10', ms = '20'] = process.argv.slice(2);
if (hosts === undefined || path === undefined || number === undefined || name === undefined) {
  console.error('usage: main.js <connect string> <lock> <number> <name> [times] [ms]');
  process.exit(2);
}

await using zk = await connect(hosts, { sessionTimeoutMs: 3000, retry: true });
const lock = new Lock(zk, path, { data: name });
await zk.ensurePath(number);

async function countUp(): Promise<void> {
  await using held = await lock.acquire();
  const { data } = await zk.getData(number!);
  const next = Number(new TextDecoder().decode(data ?? undefined)) + 1;
  await pass(Math.random() * Number(ms));
  // Rejected if the lock is lost, even if this process does not know that yet.
  await held.multi([op.setData(number!, String(next))]);
  console.log(`${name} ${next}`);
}

try {
  for (let time = 0; time < Number(times); time++) await countUp();
} catch (error) {
  if (!(error instanceof RecipeError) && !KeeperError.is(error)) throw error;
  console.error(`${name} ${error.message}`);
  process.exitCode = 1;
}
