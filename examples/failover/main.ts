/**
 * Failover: a program that counts, and an ensemble in the same process that fails on purpose. The
 * program does what any program has to do about such failures.
 *
 *   main.js
 */
import { type Client, connect, KeeperError } from '@tskeeper/client';
import { TestEnsemble } from '@tskeeper/testing';

const path = '/counter';

/**
 * Adds one, exactly once. A call that fails with ConnectionLoss may have been applied or not. The
 * version in the write makes a retry safe, and the number afterwards shows whether it was applied.
 */
async function increment(zk: Client): Promise<number> {
  const from = await read(zk);
  for (;;) {
    try {
      await zk.setData(path, String(from.count + 1), { version: from.version });
      return from.count + 1;
    } catch (error) {
      if (KeeperError.is(error, 'ConnectionLoss')) continue;
      // No other process counts, so this one wrote the number, in a call whose reply was lost.
      if (KeeperError.is(error, 'BadVersion') && (await read(zk)).count === from.count + 1) return from.count + 1;
      throw error;
    }
  }
}

async function read(zk: Client): Promise<{ readonly count: number; readonly version: number }> {
  for (;;) {
    try {
      const { data, stat } = await zk.getData(path);
      return { count: Number(Buffer.from(data ?? []).toString()), version: stat.version };
    } catch (error) {
      if (!KeeperError.is(error, 'ConnectionLoss')) throw error;
    }
  }
}

async function countTo(zk: Client, goal: number): Promise<void> {
  let count = 0;
  while (count < goal) count = await increment(zk);
  console.log(`counted to ${count}`);
}

const ensemble = await TestEnsemble.start({ servers: 3 });
const zk = await connect(ensemble.connectString, { sessionTimeoutMs: 10_000 });
try {
  await zk.create(path, '0');
  await countTo(zk, 10);

  const first = ensemble.leader;
  const counting = countTo(zk, 20);
  await first.kill();
  await counting;
  const second = await ensemble.elected();
  console.log(`the leader was killed, and ${second === first ? 'leads again' : 'another leads'}`);

  await first.start();
  const partition = ensemble.partition([second]);
  const third = await ensemble.elected();
  console.log(`the leader was cut off, and ${third === second ? 'leads still' : 'another leads'}`);
  await countTo(zk, 30);
  partition[Symbol.dispose]();
  await ensemble.synced();
  console.log(`all servers are in step: ${ensemble.followers.length} follow`);

  // A minute passes for the servers and for clients with their clock. The worker uses another clock,
  // so it sends nothing during that minute.
  const witness = await connect(ensemble.connectString, { clock: ensemble.clock });
  const worker = await connect(ensemble.connectString, { sessionTimeoutMs: 10_000 });
  await worker.create('/worker', '', { mode: 'ephemeral' });
  await ensemble.advance(60_000);
  await witness.sync('/');
  console.log(`a minute has passed, and the worker is ${(await witness.exists('/worker')) === null ? 'gone' : 'still there'}`);
  await Promise.all([worker.close(), witness.close()]);
} finally {
  await zk.close();
  await ensemble.close();
}
