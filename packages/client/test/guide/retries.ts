/** What docs/guides/retries.md shows. */
import { setTimeout as delay } from 'node:timers/promises';
import { type Client, KeeperError } from '@tskeeper/client';

/** A read may be repeated whatever became of it. */
export async function readConfig(zk: Client): Promise<string> {
  const { data } = await zk.getData('/config', { retry: true, timeoutMs: 10_000 });
  return new TextDecoder().decode(data ?? undefined);
}

/** The state is what counts, and not who has brought it about: the same data twice are the same data. */
export async function publish(zk: Client, address: string): Promise<void> {
  await zk.setData('/address', address, { idempotent: true });
}

/** One job, however often the request had to be sent. */
export async function enqueue(zk: Client, job: string): Promise<string> {
  const { path } = await zk.create('/jobs/job-', job, { mode: 'persistentSequential', protection: true, retry: true });
  return path;
}

/** Adds one. Never twice: where that cannot be told, it rejects with the outcome `unknown`. */
export async function increment(zk: Client): Promise<number> {
  const next = (data: Uint8Array | null | undefined) => Number(new TextDecoder().decode(data ?? undefined)) + 1;
  let count = 0;
  await zk.update('/counter', (data) => String((count = next(data))), { create: true, retry: true });
  return count;
}

/** Gone in the end. When this rejects the client goes on trying in the background, for as long as its session lives. */
export async function remove(zk: Client, path: string): Promise<void> {
  await zk.delete(path, { guaranteed: true });
}

/** A policy of one's own: for as long as it takes, and every failure is reported. `isSafe` says whether `call` may be carried out twice. */
export async function persistently<Result>(
  call: () => Promise<Result>,
  isSafe: boolean,
  report: (error: KeeperError, attempt: number) => void,
  pause: (ms: number) => Promise<void> = (ms) => delay(ms),
): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await call();
    } catch (error) {
      if (!KeeperError.is(error) || !error.retryable) throw error;
      if (error.outcome === 'unknown' && !isSafe) throw error;
      report(error, attempt);
      // Random, so that clients that have lost the same server do not come back in the same instant.
      await pause(Math.random() * Math.min(100 * 2 ** attempt, 5000));
    }
  }
}
