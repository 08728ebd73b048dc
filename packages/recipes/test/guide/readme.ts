/** The recipes that README.md at the root shows. */
import { type Client, op } from '@tskeeper/client';
import { LeaderLatch, Lock, type Sessions } from '@tskeeper/recipes';

/** A lock: one process at a time writes the report. */
export async function writeReport(zk: Client, make: (signal: AbortSignal) => Promise<string>): Promise<void> {
  const lock = new Lock(zk, '/locks/report');
  await using held = await lock.acquire({ timeoutMs: 60_000 });

  // The signal aborts if the lock is lost: the session can expire before the work is done.
  const report = await make(held.signal);

  // Fails with Lost if the lock is lost, so it never overwrites what the next holder has written.
  await held.multi([op.setData('/report', report)]);
}

/** An election: one process leads, the others wait. `Sessions` opens a new session when one has expired. */
export async function takePart(sessions: Sessions, name: string, lead: (signal: AbortSignal) => Promise<void>): Promise<void> {
  await using candidate = new LeaderLatch(sessions, '/election', { data: name });

  // Calls `lead` each time this process becomes the leader, and aborts the signal when it no longer leads.
  await candidate.run((_leadership, signal) => lead(signal));
}
