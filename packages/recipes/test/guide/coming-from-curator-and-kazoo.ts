/** The code in docs/guides/recipes/coming-from-curator-and-kazoo.md. */
import type { Client } from '@tskeeper/client';
import { LeaderLatch, Lock, type Sessions } from '@tskeeper/recipes';

/** A lock without `await using`, for JavaScript on Node 20 and 22. */
export async function rewriteReport(zk: Client, rewrite: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const held = await new Lock(zk, '/locks/report').acquire({ timeoutMs: 60_000 });
  try {
    await rewrite(held.signal);
  } finally {
    await held.release();
  }
}

/**
 * Curator's ConnectionStateListener, for one hold: pauses while the connection is lost, and stops
 * when the hold is lost.
 */
export async function watchedWork(zk: Client, work: { pause(): void; goOn(): void; stop(): void; done: Promise<void> }): Promise<void> {
  const held = await new Lock(zk, '/locks/index').acquire();
  const forget = held.onStateChange((state) => {
    if (state === 'suspended') work.pause();
    if (state === 'held') work.goOn();
    if (state === 'lost') work.stop();
  });
  try {
    await work.done;
  } finally {
    forget();
    await held.release();
  }
}

/** Curator's LeaderLatch: queues with those of Java, and continues in each new session. */
export function latch(sessions: Sessions, id: string, changed: (leads: boolean) => void): LeaderLatch {
  const candidate = new LeaderLatch(sessions, '/election', { prefix: 'latch-', data: id });
  candidate.onChange((leadership) => changed(leadership !== undefined));
  return candidate;
}
