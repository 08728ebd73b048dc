import { type DiskCall, type DiskFault, keepAll, loseAll, VirtualDisk, type StorageOptions } from '@tskeeper/runtime';
import { expect, test } from 'vitest';
import { strided, isFull } from '../../../../test/breadth.ts';
import { dataOf, quiesce, Server } from './support.ts';

const options: Partial<StorageOptions> = { preAllocSizeBytes: 4096, snapCount: 6, snapRetainCount: 3, dataLogDir: '/logs' };

interface Outcome {
  readonly acked: number;
  readonly failure: unknown;
  /** Why the start was refused, if it was. */
  readonly refusal: unknown;
}

/**
 * Two lives of a server: it writes, rolls, snapshots, purges, is closed and started again. Goes as
 * far as the disk allows.
 */
async function live(disk: VirtualDisk): Promise<Outcome> {
  let acked = 0;
  for (const life of [0, 1]) {
    const server = new Server(disk, options);
    try {
      await server.open();
    } catch (refusal) {
      return { acked, failure: undefined, refusal };
    }
    acked = server.acked;
    let asked = 0;
    for (let turn = 0; turn < 8; turn++) {
      try {
        await server.write(dataOf(life * 100 + turn, 50), dataOf(life * 100 + turn + 50, 700));
      } catch (refusal) {
        // No first snapshot could be written, so that nothing may be appended: append throws.
        return { acked, failure: undefined, refusal };
      }
      acked = server.acked;
      if (server.failure !== undefined) return { acked, failure: server.failure, refusal: undefined };
      server.clock.advance(200);
      await quiesce();
      if (server.snapshotsAsked > asked) {
        asked = server.snapshotsAsked;
        await server.snapshot();
        await server.storage.purge().catch(() => undefined);
      }
    }
    await server.storage.close().catch(() => undefined);
    if (server.failure !== undefined) return { acked, failure: server.failure, refusal: undefined };
  }
  return { acked, failure: undefined, refusal: undefined };
}

const total = 32;

/** Whether a failure of this call must be fatal: it is part of making a txn durable. */
function concernsTheLog(call: DiskCall): boolean {
  if (call.operation === 'close' || call.operation === 'read' || call.operation === 'size') return false;
  return /\/(new\.)?log\.[0-9a-f]+$/.test(call.path) && call.operation !== 'remove';
}

const faults: [string, (call: DiskCall) => DiskFault | undefined][] = [
  ['EIO', () => ({ code: 'EIO' })],
  ['ENOSPC', (call) => (['write', 'extend', 'open', 'rename', 'sync'].includes(call.operation) ? { code: 'ENOSPC' } : undefined)],
  ['ENOSPC, half written', (call) => (call.operation === 'write' ? { code: 'ENOSPC', written: 200 } : undefined)],
  [
    'EIO, reported by the next sync',
    (call) => (call.operation === 'write' || call.operation === 'extend' ? { code: 'EIO', late: true } : undefined),
  ],
];

test.each(faults)(
  'E1, E18: after %s at any call nothing is acknowledged, and the next start has all acknowledged txns',
  async (_name, faultOf) => {
    const whole = new VirtualDisk();
    expect(await live(whole)).toEqual({ acked: total, failure: undefined, refusal: undefined });
    const { calls } = whole;
    expect(calls).toBeGreaterThan(200);
    let fatal = 0;
    let survived = 0;
    for (const failing of strided(calls, 11)) {
      const disk = new VirtualDisk();
      let failed: DiskCall | undefined;
      disk.fault = (call) => {
        if (call.index !== failing) return undefined;
        const fault = faultOf(call);
        if (fault !== undefined) failed = call;
        return fault;
      };
      const outcome = await live(disk);
      if (failed === undefined) continue;
      const stopped = outcome.failure !== undefined || outcome.refusal !== undefined;
      if (stopped) fatal++;
      else survived++;
      expect([failed, concernsTheLog(failed) && !stopped]).toEqual([failed, false]);
      // A server that continues has lost nothing.
      expect([failed, stopped || outcome.acked === total]).toEqual([failed, true]);
      disk.fault = undefined;
      for (const choice of [loseAll, keepAll]) {
        const after = new VirtualDisk(disk.capture(), choice);
        const server = new Server(after, options);
        const { lastZxid } = await server.open();
        expect([failed, lastZxid >= outcome.acked, server.state.history.size]).toEqual([failed, true, lastZxid]);
      }
    }
    expect(fatal + survived).toBeGreaterThan(0);
    if (!isFull) return;
    expect(fatal).toBeGreaterThan(20);
    expect(survived).toBeGreaterThan(10);
  },
);

test('E18: a snapshot that a full disk refuses is logged, and the server continues and tries again', async () => {
  const disk = new VirtualDisk();
  const server = new Server(disk, options);
  await server.open();
  await server.write(dataOf(1, 10));
  disk.fault = ({ path }) => (path.includes('new.snapshot') ? { code: 'ENOSPC' } : undefined);
  expect(await server.snapshot()).toBe(false);
  expect(server.storage.snapshotErrors).toBe(1);
  await server.write(dataOf(2, 10));
  disk.fault = undefined;
  expect(await server.snapshot()).toBe(true);
  expect(disk.files().filter((path) => path.includes('snapshot'))).toEqual(['/data/version-2/snapshot.0', '/data/version-2/snapshot.2']);
});
