/** Our leases and shares of a set with the verbs of python/kazoo_peer.py. */
import { type Client, KeeperError } from '@tskeeper/client';
import { type HeldLease, Lease, MultiLease, type OwnedPartition, SetPartitioner } from '@tskeeper/recipes';

import { callOptions, type Verbs } from './verbs.ts';

/** `count`: the number of leases, if there are several. */
export function leaseVerbs(zk: Client, path: string, holder: string, count?: string): Verbs {
  let held: HeldLease | undefined;
  return {
    async try_acquire(durationMs) {
      const options = { holder, durationMs: Number(durationMs) };
      const lease = count === undefined ? new Lease(zk, path, options) : new MultiLease(zk, path, { ...options, count: Number(count) });
      held = await lease.tryAcquire(callOptions);
      return held === undefined ? 'no' : 'yes';
    },
    async acquire(durationMs) {
      held = await new Lease(zk, path, { holder, durationMs: Number(durationMs) }).acquire(callOptions);
      return held.path;
    },
    async renew() {
      await held!.renew(callOptions);
      return '';
    },
    async state() {
      return held?.state ?? 'none';
    },
    async release() {
      await held?.release();
      return '';
    },
  };
}

/**
 * While it owns an item it has an ephemeral znode below `inside`, which no other process may have.
 */
export function partitionerVerbs(zk: Client, path: string, name: string, items: string, timeBoundaryMs: string): Verbs {
  const inside = `${path}/inside`;
  let trouble = '';
  const mine = new Set<string>();
  const work = async ({ item, signal }: OwnedPartition): Promise<void> => {
    try {
      await zk.create(`${inside}/${item}`, null, { mode: 'ephemeral' });
    } catch (error) {
      trouble = KeeperError.is(error, 'NodeExists') ? `another process works on ${item}` : String(error);
      return;
    }
    mine.add(item);
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    await zk.delete(`${inside}/${item}`);
    mine.delete(item);
  };
  const partitioner = new SetPartitioner(zk, path, name, items.split(','), work, { timeBoundaryMs: Number(timeBoundaryMs) });
  return {
    async owned() {
      if (trouble !== '') throw new Error(trouble);
      partitioner.signal.throwIfAborted();
      return [...mine].sort().join(',');
    },
    async close() {
      await partitioner.close();
      return '';
    },
  };
}
