/** The code in docs/guides/recipes/barriers.md. */
import { type Client, op } from '@tskeeper/client';
import { Barrier, DoubleBarrier, SimpleBarrier } from '@tskeeper/recipes';

/** Blocks the workers while the schema is changed. */
export async function migrate(zk: Client, change: () => Promise<void>): Promise<void> {
  const barrier = new Barrier(zk, '/barriers/schema', { data: 'the schema is being changed', ephemeral: true });
  await barrier.set();
  try {
    await change();
  } finally {
    await barrier.remove();
  }
}

/** Waits before each job; `wait` resolves at once if the barrier is not set. */
export async function workOn(zk: Client, jobs: readonly (() => Promise<void>)[]): Promise<void> {
  const barrier = new Barrier(zk, '/barriers/schema');
  for (const job of jobs) {
    await barrier.wait({ timeoutMs: 600_000 });
    await job();
  }
}

/**
 * Three participants begin each step together, and none begins the next step before all have ended
 * this one. Results are written through the participation.
 */
export async function simulate(zk: Client, steps: number, compute: (step: number) => Promise<string>): Promise<void> {
  const barrier = new DoubleBarrier(zk, '/barriers/simulation', 3, { data: 'worker 7' });
  for (let step = 0; step < steps; step++) {
    await using inside = await barrier.enter({ timeoutMs: 60_000 });
    const result = await compute(step);
    inside.signal.throwIfAborted();
    await inside.multi([op.create(`/results/${step}-`, result, { mode: 'persistentSequential' })]);
  }
}

/** Once: no participant serves before all have loaded, and none returns before all have served. */
export async function start(zk: Client, load: () => Promise<void>, serve: () => Promise<void>): Promise<void> {
  const barrier = await SimpleBarrier.create(zk, '/barriers/start', 3);
  await load();
  await barrier.run(serve);
}
