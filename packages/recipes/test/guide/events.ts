/** What docs/guides/recipes/events.md shows. */
import type { Client } from '@tskeeper/client';
import { EventHandle } from '@tskeeper/recipes';

/** Whoever needs the data waits until somebody has loaded them; whoever comes later does not wait at all. */
export async function whenLoaded(zk: Client, work: () => Promise<void>): Promise<void> {
  await new EventHandle(zk, '/events/loaded').wait({ timeoutMs: 60_000 });
  await work();
}

/** Tells everyone. */
export async function loaded(zk: Client): Promise<void> {
  await new EventHandle(zk, '/events/loaded').set();
}

/** One of those who run this does the work, each time that `wake` is called; calls that come before it is taken count as one. */
export async function onWake(zk: Client, work: () => Promise<void>, signal: AbortSignal): Promise<void> {
  const event = new EventHandle(zk, '/events/wake', { autoReset: true });
  while (!signal.aborted) {
    await event.wait({ signal });
    await work();
  }
}

/** Has the work done once more. */
export async function wake(zk: Client): Promise<void> {
  await new EventHandle(zk, '/events/wake', { autoReset: true }).set();
}
