/** The program of docs/guides/retries.md. */
import { setTimeout as delay } from 'node:timers/promises';
import { type Client, KeeperError } from '@tskeeper/client';

/** A read may always be repeated. */
export async function readConfig(zk: Client): Promise<string> {
  const { data } = await zk.getData('/config', { retry: true, timeoutMs: 10_000 });
  return new TextDecoder().decode(data ?? undefined);
}

/** Only the resulting data count, not which client wrote them: writing them twice has the same result. */
export async function publish(zk: Client, address: string): Promise<void> {
  await zk.setData('/address', address, { idempotent: true });
}

/** Creates one job, however often the client has to send the request. */
export async function enqueue(zk: Client, job: string): Promise<string> {
  const { path } = await zk.create('/jobs/job-', job, { mode: 'persistentSequential', protection: true, retry: true });
  return path;
}

/** Adds one, never twice: if that is uncertain, rejects with the outcome `unknown`. */
export async function increment(zk: Client): Promise<number> {
  const next = (data: Uint8Array | null | undefined) => Number(new TextDecoder().decode(data ?? undefined)) + 1;
  let count = 0;
  await zk.update('/counter', (data) => String((count = next(data))), { create: true, retry: true });
  return count;
}

/** Deletes a znode. If this rejects, the client keeps trying in the background while its session lives. */
export async function remove(zk: Client, path: string): Promise<void> {
  await zk.delete(path, { guaranteed: true });
}

/** Retries until success and reports every failure. `isSafe` says whether `call` may be applied twice. */
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
      // Random, so that clients that lost the same server do not all retry at the same instant.
      await pause(Math.random() * Math.min(100 * 2 ** attempt, 5000));
    }
  }
}
