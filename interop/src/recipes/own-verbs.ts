/** Our recipes with the verbs of python/kazoo_peer.py and java/CuratorPeer.java. */
import type { Client } from '@tskeeper/client';
import {
  AtomicNumber,
  Barrier,
  DoubleBarrier,
  Election,
  Group,
  type GroupNaming,
  type Held,
  int32,
  type Leadership,
  Lock,
  MultiLock,
  type Participation,
  PersistentNode,
  PriorityQueue,
  Queue,
  Semaphore,
  SharedLock,
  SharedValue,
  textCodec,
  textInteger,
  type VersionedValue,
} from '@tskeeper/recipes';

import { cacheVerbs } from './own-caches.ts';
import { claimVerbs, curatorQueueVerbs, queueVerbs } from './own-queues.ts';
import { serviceVerbs } from './own-services.ts';
import { leaseVerbs, partitionerVerbs } from './own-shares.ts';
import { patience, textOf, type Verbs } from './verbs.ts';

/** What `open` creates, by its first argument. */
export function kindsOf(zk: Client): Readonly<Record<string, (...args: string[]) => Verbs>> {
  const shared = (path: string, read: string, write: string) => new SharedLock(zk, path, { names: { read, write } });
  return {
    lock: (path, name) => exclusiveVerbs(zk, new Lock(zk, path, { name })),
    'revocable-lock': (path, name) => revocableVerbs(zk, new Lock(zk, path, { name })),
    'read-lock': (path, read, write) => lockVerbs(zk, shared(path, read, write).reading),
    'write-lock': (path, read, write) => lockVerbs(zk, shared(path, read, write).writing),
    'multi-lock': (...paths) => lockVerbs(zk, new MultiLock(paths.map((path) => new Lock(zk, path)))),
    semaphore: (path, size) => lockVerbs(zk, new Semaphore(zk, path, { size: Number(size) })),
    election: (path, name, id) => electionVerbs(zk, new Election(zk, path, { name, data: id })),
    barrier: (path) => barrierVerbs(new Barrier(zk, path)),
    'double-barrier': (path, size) => doubleBarrierVerbs(new DoubleBarrier(zk, path, Number(size))),
    queue: (path, prefix) => {
      const queue = new Queue(zk, path, { prefix });
      return queueVerbs(queue, (value) => queue.put(value));
    },
    'priority-queue': (path) => {
      const queue = new PriorityQueue(zk, path, { naming: 'kazoo' });
      return queueVerbs(queue, (value, priority = '100') => queue.put(value, { priority: Number(priority) }));
    },
    'locking-queue': (path) => claimVerbs(new PriorityQueue(zk, `${path}/entries`, { naming: 'kazoo', takenPath: `${path}/taken` })),
    'item-queue': (path, order, consumes) => curatorQueueVerbs(zk, path, order, consumes),
    services: (path) => serviceVerbs(zk, path, false),
    'zoned-services': (path) => serviceVerbs(zk, path, true),
    lease: (path, holder) => leaseVerbs(zk, path, holder),
    'multi-lease': (path, holder, count) => leaseVerbs(zk, path, holder, count),
    partitioner: (path, name, items, timeBoundaryMs) => partitionerVerbs(zk, path, name, items, timeBoundaryMs),
    'children-cache': (path) => cacheVerbs(zk, path, 'children'),
    'tree-cache': (path) => cacheVerbs(zk, path, 'tree'),
    'persistent-node': (path, data) => keptVerbs(() => new PersistentNode(zk, path, data)),
    'ttl-node': (path, data, ttlMs) =>
      keptVerbs(() => new PersistentNode(zk, path, data, { mode: 'persistentWithTtl', ttlMs: Number(ttlMs) })),
    'shared-value': (path, seed) => sharedValueVerbs(zk, path, seed),
    number: (path, format) => {
      if (format === 'int64') return numberVerbs(new AtomicNumber(zk, path), BigInt);
      return numberVerbs(new AtomicNumber(zk, path, { format: format === 'int32' ? int32 : textInteger }), Number);
    },
    member: (path, id, naming, data) => memberVerbs(new Group(zk, path, { naming: naming as GroupNaming }), id, data),
  };
}

/** What the verbs of a lock need from it. */
interface Lockable {
  acquire(options: typeof patience): Promise<Releasable>;
  tryAcquire(options: typeof patience): Promise<Releasable | undefined>;
  run(work: () => Promise<void>, options: typeof patience): Promise<void>;
}
type Releasable = Pick<Held, 'release'> & Partial<Pick<Held, 'path'>>;

function lockVerbs(zk: Client, lock: Lockable): Verbs {
  let held: Releasable | undefined;
  return {
    async acquire() {
      held = await lock.acquire(patience);
      return held.path ?? '';
    },
    async try_acquire() {
      held = await lock.tryAcquire(patience);
      return held === undefined ? 'no' : 'yes';
    },
    async release() {
      await held?.release();
      return '';
    },
    /**
     * Reads and writes a counter without its version while holding the lock; no other process may
     * be inside.
     */
    async count_up(path, rounds) {
      for (let round = 0; round < Number(rounds); round++) {
        await lock.run(async () => {
          await zk.create(`${path}/inside`, null, { mode: 'ephemeral' });
          const { data } = await zk.getData(path);
          await zk.setData(path, String(Number(textOf(data)) + 1));
          await zk.delete(`${path}/inside`);
        }, patience);
      }
      return rounds;
    },
  };
}

function exclusiveVerbs(zk: Client, lock: Lock): Verbs {
  return {
    ...lockVerbs(zk, lock),
    /** Asks the holder to release it. */
    async revoke(deleteAfterMs?: string) {
      const [holder] = await lock.contenders(patience);
      await lock.revoke(holder!, { ...patience, deleteAfterMs: deleteAfterMs === undefined ? undefined : Number(deleteAfterMs) });
      return '';
    },
  };
}

/** A lock that receives a revocation and then releases itself. */
function revocableVerbs(zk: Client, lock: Lock): Verbs {
  let isAsked = false;
  let held: Held | undefined;
  return {
    ...lockVerbs(zk, lock),
    async acquire() {
      held = await lock.acquire({ ...patience, onRevocation: () => void (isAsked = true) });
      return held.path;
    },
    async asked() {
      return isAsked ? 'yes' : 'no';
    },
    async state() {
      return held!.state;
    },
    async release() {
      await held!.release();
      return '';
    },
  };
}

function electionVerbs(zk: Client, election: Election): Verbs {
  let leadership: Leadership | undefined;
  return {
    async lead() {
      leadership = await election.lead(patience);
      await leadership.acknowledge();
      return '';
    },
    async resign() {
      await leadership?.resign();
      return '';
    },
    async leader() {
      return textOf((await election.leader(patience))?.data ?? null);
    },
    async contenders() {
      const all = await election.candidates(patience);
      return (await Promise.all(all.map(async ({ path }) => textOf((await zk.getData(path)).data)))).join(',');
    },
  };
}

function barrierVerbs(barrier: Barrier): Verbs {
  return {
    async raise_() {
      await barrier.set(patience);
      return '';
    },
    async wait() {
      await barrier.wait(patience);
      return '';
    },
    async remove() {
      await barrier.remove(patience);
      return '';
    },
  };
}

function doubleBarrierVerbs(barrier: DoubleBarrier): Verbs {
  let participation: Participation | undefined;
  return {
    async enter() {
      participation = await barrier.enter(patience);
      return '';
    },
    async leave() {
      await participation?.leave(patience);
      return '';
    },
  };
}

function numberVerbs<Value extends number | bigint>(number: AtomicNumber<Value>, parse: (text: string) => Value): Verbs {
  return {
    async add(delta) {
      return String((await number.add(parse(delta), patience)).after);
    },
    async value() {
      return String(await number.get(patience));
    },
  };
}

function memberVerbs(group: Group, id: string, data: string | undefined): Verbs {
  let membership: PersistentNode | undefined;
  return {
    async join() {
      membership = await group.join(id, { ...patience, data });
      return '';
    },
    async leave() {
      await membership?.close();
      return '';
    },
    async members() {
      const members = await group.members(patience);
      return members.map((member) => (data === undefined ? member.name : `${member.name}=${textOf(member.data)}`)).join(',');
    },
  };
}

function keptVerbs(keep: () => PersistentNode): Verbs {
  let node: PersistentNode | undefined;
  return {
    async keep() {
      node = keep();
      return '';
    },
    async drop() {
      await node?.close();
      return '';
    },
  };
}

/** `set` uses the version that it received last, as every careful change of a value does. */
function sharedValueVerbs(zk: Client, path: string, seed: string): Verbs {
  const value = new SharedValue(zk, path, textCodec);
  let seen: VersionedValue<string> | undefined;
  const begin = async (): Promise<void> => {
    await value.ready(patience);
    seen = (await value.compareAndSet(undefined, seed, patience)) ?? value.current;
  };
  const begun = begin();
  return {
    async value() {
      await begun;
      seen = value.current;
      return seen?.value ?? '';
    },
    async set(text) {
      await begun;
      return (await value.compareAndSet(seen, text, patience)) === undefined ? 'no' : 'yes';
    },
  };
}
