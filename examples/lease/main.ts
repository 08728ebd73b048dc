/**
 * A lease for a fixed time:
 *
 *   main.js <connect string> <lease> <name> <duration> [ms]
 *
 * Acquires the lease for `duration` milliseconds, works for `ms` of them and releases it. Prints when
 * the work began and ended, in nanoseconds of the machine's clock.
 */
import { setTimeout as pass } from 'node:timers/promises';
import { connect } from '@tskeeper/client';
import { Lease } from '@tskeeper/recipes';

const [hosts, path, name, duration, ms = '0'] = process.argv.slice(2);
if (hosts === undefined || path === undefined || name === undefined || !(Number(duration) > 0)) {
  console.error('usage: main.js <connect string> <lease> <name> <duration> [ms]');
  process.exit(2);
}

await using zk = await connect(hosts, { sessionTimeoutMs: 3000, retry: true });
const lease = new Lease(zk, path, { holder: name, durationMs: Number(duration) });
// On a signal it releases the lease, or leaves the queue.
const ended = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => ended.abort());
try {
  await using held = await lease.acquire({ signal: ended.signal });
  console.log(`${name} begins ${process.hrtime.bigint()}`);
  // Work that takes longer than the lease ends with the lease, unless the lease is renewed.
  await pass(Number(ms), undefined, { signal: AbortSignal.any([held.signal, ended.signal]) });
  console.log(`${name} ends ${process.hrtime.bigint()}`);
} catch (error) {
  if (!ended.signal.aborted) throw error;
  console.log(`${name} was stopped`);
}
