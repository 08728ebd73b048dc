/** Our recipes with the verbs of python/kazoo_peer.py and java/CuratorPeer.java. */
import type { Client } from '@tskeeper/client';
import {
  AtomicNumber,
  Barrier,
  DoubleBarrier,
  Election,
  Group,
  type GroupNaming,
  type Hold,
  int32,
  type Leadership,
  Lock,
  MultiLock,
  type Participation,
  PersistentNode,
  PriorityQueue,
  Queue,
  Semaphore,
  ReadWriteLock,
  SharedValue,
  textCodec,
  textInteger,
  type VersionedValue,
} from '@tskeeper/recipes';

import { cacheVerbs } from './own-caches.ts';
import { claimVerbs, curatorQueueVerbs, queueVerbs } from './own-queues.ts';
import { serviceVerbs } from './own-services.ts';
import { leaseVerbs, partitionerVerbs } from './own-leases.ts';
import { callOptions, textOf, type Verbs } from './verbs.ts';

/** What `open` creates, by its first argument. */
export function handleFactories(zk: Client): Readonly<Record<string, (...args: string[]) => Verbs>> {
  const shared = (path: string, read: string, write: string) => new ReadWriteLock(zk, path, { prefixes: { read, write } });
  return {
    lock: (path, prefix) => exclusiveVerbs(zk, new Lock(zk, path, { prefix })),
    'revocable-lock': (path, prefix) => revocableVerbs(zk, new Lock(zk, path, { prefix })),
    'read-lock': (path, read, write) => lockVerbs(zk, shared(path, read, write).readLock),
    'write-lock': (path, read, write) => lockVerbs(zk, shared(path, read, write).writeLock),
    'multi-lock': (...paths) => lockVerbs(zk, new MultiLock(paths.map((path) => new Lock(zk, path)))),
    semaphore: (path, size) => lockVerbs(zk, new Semaphore(zk, path, { size: Number(size) })),
    election: (path, prefix, id) => electionVerbs(zk, new Election(zk, path, { prefix, data: id })),
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
    'locking-queue': (path) => claimVerbs(new PriorityQueue(zk, `${path}/entries`, { naming: 'kazoo', claimsPath: `${path}/taken` })),
    'item-queue': (path, order, consumes) => curatorQueueVerbs(zk, path, order, consumes),
    services: (path) => serviceVerbs(zk, path, false),
    'zoned-services': (path) => serviceVerbs(zk, path, true),
    lease: (path, holder) => leaseVerbs(zk, path, holder),
    'multi-lease': (path, holder, count) => leaseVerbs(zk, path, holder, count),
    partitioner: (path, name, items, timeBoundaryMs) => partitionerVerbs(zk, path, name, items, timeBoundaryMs),
    'children-cache': (path) => cacheVerbs(zk, path, 'children'),
    'tree-cache': (path) => cacheVerbs(zk, path, 'tree'),
    'persistent-node': (path, data) => persistentNodeVerbs(() => new PersistentNode(zk, path, data)),
    'ttl-node': (path, data, ttlMs) =>
      persistentNodeVerbs(() => new PersistentNode(zk, path, data, { mode: 'persistentWithTtl', ttlMs: Number(ttlMs) })),
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
  acquire(options: typeof callOptions): Promise<Releasable>;
  tryAcquire(options: typeof callOptions): Promise<Releasable | undefined>;
  run(work: () => Promise<void>, options: typeof callOptions): Promise<void>;
}
type Releasable = Pick<Hold, 'release'> & Partial<Pick<Hold, 'path'>>;

function lockVerbs(zk: Client, lock: Lockable): Verbs {
  let held: Releasable | undefined;
  return {
    async acquire() {
      held = await lock.acquire(callOptions);
      return held.path ?? '';
    },
    async try_acquire() {
      held = await lock.tryAcquire(callOptions);
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
        }, callOptions);
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
      const [holder] = await lock.contenders(callOptions);
      await lock.revoke(holder!, { ...callOptions, deleteAfterMs: deleteAfterMs === undefined ? undefined : Number(deleteAfterMs) });
      return '';
    },
  };
}

/** A lock that receives a revocation and then releases itself. */
function revocableVerbs(zk: Client, lock: Lock): Verbs {
  let isAsked = false;
  let held: Hold | undefined;
  return {
    ...lockVerbs(zk, lock),
    async acquire() {
      held = await lock.acquire({ ...callOptions, onRevocation: () => void (isAsked = true) });
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
      leadership = await election.lead(callOptions);
      await leadership.acknowledge();
      return '';
    },
    async resign() {
      await leadership?.resign();
      return '';
    },
    async leader() {
      return textOf((await election.leader(callOptions))?.data ?? null);
    },
    async contenders() {
      const all = await election.contenders(callOptions);
      return (await Promise.all(all.map(async ({ path }) => textOf((await zk.getData(path)).data)))).join(',');
    },
  };
}

function barrierVerbs(barrier: Barrier): Verbs {
  return {
    async raise_() {
      await barrier.set(callOptions);
      return '';
    },
    async wait() {
      await barrier.wait(callOptions);
      return '';
    },
    async remove() {
      await barrier.remove(callOptions);
      return '';
    },
  };
}

function doubleBarrierVerbs(barrier: DoubleBarrier): Verbs {
  let participation: Participation | undefined;
  return {
    async enter() {
      participation = await barrier.enter(callOptions);
      return '';
    },
    async leave() {
      await participation?.leave(callOptions);
      return '';
    },
  };
}

function numberVerbs<Value extends number | bigint>(number: AtomicNumber<Value>, parse: (text: string) => Value): Verbs {
  return {
    async add(delta) {
      return String((await number.add(parse(delta), callOptions)).after);
    },
    async value() {
      return String(await number.get(callOptions));
    },
  };
}

function memberVerbs(group: Group, id: string, data: string | undefined): Verbs {
  let membership: PersistentNode | undefined;
  return {
    async join() {
      membership = await group.join(id, { ...callOptions, data });
      return '';
    },
    async leave() {
      await membership?.close();
      return '';
    },
    async members() {
      const members = await group.members(callOptions);
      return members.map((member) => (data === undefined ? member.name : `${member.name}=${textOf(member.data)}`)).join(',');
    },
  };
}

function persistentNodeVerbs(keep: () => PersistentNode): Verbs {
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
    await value.ready(callOptions);
    seen = (await value.compareAndSet(undefined, seed, callOptions)) ?? value.current;
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
      return (await value.compareAndSet(seen, text, callOptions)) === undefined ? 'no' : 'yes';
    },
  };
}
