import { expect, it } from 'vitest';
import { unlessAborted } from '../../src/waiting/deadline.ts';

/** The events of node for unhandled rejections. */
async function unheard(work: () => Promise<unknown>): Promise<readonly unknown[]> {
  const reasons: unknown[] = [];
  const others = process.listeners('unhandledRejection');
  process.removeAllListeners('unhandledRejection');
  process.on('unhandledRejection', (reason) => reasons.push(reason));
  try {
    await work();
    await new Promise((resolve) => setImmediate(resolve));
    return reasons;
  } finally {
    process.removeAllListeners('unhandledRejection');
    for (const other of others) process.on('unhandledRejection', other);
  }
}

it('a promise that unlessAborted no longer waits for may fail without an unhandled rejection', async () => {
  const gone = AbortSignal.abort(new Error('given up'));
  const late = new AbortController();
  const reasons = await unheard(async () => {
    await expect(unlessAborted(Promise.reject(new Error('refused')), gone)).rejects.toThrow('given up');
    let fail!: (reason: Error) => void;
    const waiting = unlessAborted(new Promise<never>((_resolve, reject) => (fail = reject)), late.signal);
    late.abort(new Error('given up late'));
    await expect(waiting).rejects.toThrow('given up late');
    fail(new Error('refused late'));
  });
  expect(reasons).toEqual([]);
});
