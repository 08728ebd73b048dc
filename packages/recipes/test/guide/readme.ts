/** What the README at the root shows of recipes. */
import { type Client, op } from '@tskeeper/client';
import { Candidate, Lock, type Sessions } from '@tskeeper/recipes';

/** A lock: of all processes that write the report, one at a time does. */
export async function writeReport(zk: Client, make: (signal: AbortSignal) => Promise<string>): Promise<void> {
  const lock = new Lock(zk, '/locks/report');
  await using held = await lock.acquire({ timeoutMs: 60_000 });

  // The signal is aborted when the lock is lost, because a session can expire before the work is done.
  const report = await make(held.signal);

  // Fails with Lost when the lock is lost, so that it never overwrites what the next holder has written.
  await held.multi([op.setData('/report', report)]);
}

/** An election: one process leads, the others wait. `Sessions` opens a new session when one has expired. */
export async function takePart(sessions: Sessions, name: string, lead: (signal: AbortSignal) => Promise<void>): Promise<void> {
  await using candidate = new Candidate(sessions, '/election', { data: name });

  // Calls `lead` each time that this process becomes the leader, and aborts the signal when it no longer leads.
  await candidate.run((_leadership, signal) => lead(signal));
}
