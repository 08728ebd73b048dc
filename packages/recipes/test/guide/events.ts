/** The code in docs/guides/recipes/events.md. */
import type { Client } from '@tskeeper/client';
import { EventHandle } from '@tskeeper/recipes';

/** Waits until the data are loaded; does not wait if they are loaded already. */
export async function whenLoaded(zk: Client, work: () => Promise<void>): Promise<void> {
  await new EventHandle(zk, '/events/loaded').wait({ timeoutMs: 60_000 });
  await work();
}

/** Wakes all that wait. */
export async function loaded(zk: Client): Promise<void> {
  await new EventHandle(zk, '/events/loaded').set();
}

/**
 * Of all processes that run this, one does the work each time that `wake` is called. Calls that are
 * made before a process takes the event count as one.
 */
export async function onWake(zk: Client, work: () => Promise<void>, signal: AbortSignal): Promise<void> {
  const event = new EventHandle(zk, '/events/wake', { autoReset: true });
  while (!signal.aborted) {
    await event.wait({ signal });
    await work();
  }
}

/** Requests one more run of the work. */
export async function wake(zk: Client): Promise<void> {
  await new EventHandle(zk, '/events/wake', { autoReset: true }).set();
}
