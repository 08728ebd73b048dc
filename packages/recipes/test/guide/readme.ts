/** What the README at the root shows of recipes. */
import { type Client, op } from '@tskeeper/client';
import { DoubleBarrier, Election, Lock } from '@tskeeper/recipes';

/** A lock: of all processes that want to write the report, one at a time does. */
export async function writeReport(zk: Client, make: (signal: AbortSignal) => Promise<string>): Promise<void> {
  const lock = new Lock(zk, '/locks/report');
  await using held = await lock.acquire({ timeoutMs: 60_000 });

  // The signal is aborted if the lock is lost: the session may end before the work does.
  const report = await make(held.signal);

  // Refused if the lock is lost by now, so that nobody overwrites what the next holder has written.
  await held.multi([op.setData('/report', report)]);
}

/** An election: one process leads, the others wait to take over. */
export async function takePart(zk: Client, name: string, lead: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const election = new Election(zk, '/election', { data: name });
  await election.run(async (leadership) => {
    // This is the leader now. When it resigns, dies, or is cut off for too long, the next one is.
    await leadership.multi([op.setData('/leader', name)]);
    await lead(leadership.signal);
  });
}

/** A barrier: nobody begins before all are ready, and nobody goes on before all are done. */
export async function measureTogether(zk: Client, processes: number, rounds: number, measure: () => Promise<void>): Promise<void> {
  const barrier = new DoubleBarrier(zk, '/barriers/measuring', processes);
  for (let round = 0; round < rounds; round++) {
    await using participation = await barrier.enter({ timeoutMs: 60_000 });
    await measure();
    // Who dies in the middle keeps nobody waiting.
    await participation.leave();
  }
}
