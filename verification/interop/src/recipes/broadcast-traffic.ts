/**
 * Recipes in which a step concerns all clients: the number of events and requests of each does not
 * depend on the number of the others.
 */
import type { Client } from '@tskeeper/client';
import {
  Barrier,
  DoubleBarrier,
  EventHandle,
  Group,
  type OwnedPartition,
  type Participation,
  type PartitionPlan,
  ServiceDiscovery,
  SetPartitioner,
  ReadWriteLock,
  SharedValue,
  type Site,
  textCodec,
  TwoPhaseCommit,
} from '@tskeeper/recipes';

import { participantCount, participantsOf, stepPaths } from './participants.ts';
import { type Crowd, type SetUpCrowd, type TrafficCase, stepsPerCase, type Traffic } from './traffic.ts';

/** Each step has its own object on which all others wait, and one client releases them. */
async function releaseAll<Gate>(
  [first, ...others]: readonly Client[],
  gates: (zk: Client) => readonly Gate[],
  { shut, open, wait }: Record<'shut' | 'open' | 'wait', (gate: Gate) => Promise<void>>,
): Promise<Crowd> {
  const own = gates(first!);
  for (const gate of own) await shut(gate);
  const waits = others.map((zk) => gates(zk).map(wait));
  for (const each of waits.flat()) each.catch(() => undefined);
  let step = 0;
  return {
    watches: others.length * stepsPerCase,
    async step() {
      await open(own[step]!);
      await Promise.all(waits.map((each) => each[step]!));
      step++;
    },
  };
}

/** Each step is its own round, which all but one have joined. */
const lastToEnterBarrier: SetUpCrowd = async (clients, path) => {
  const rounds = stepPaths(path);
  const enter = (zk: Client, round: string) => new DoubleBarrier(zk, round, clients.length).enter();
  const [last, ...others] = clients;
  const all = rounds.map((round) => others.map((zk) => enter(zk, round)));
  for (const each of all.flat()) each.catch(() => undefined);
  return {
    // Each watches its own znode, and `ready`.
    watches: 2 * others.length * stepsPerCase,
    async step() {
      await Promise.all([enter(last!, rounds.shift()!), ...all.shift()!]);
    },
  };
};

/** Each step is its own round, which all but the lowest have left, for which they wait. */
const lowestLeavesBarrier: SetUpCrowd = async (clients, path) => {
  const zks = participantsOf(clients);
  const own: Participation[] = [];
  const waits: Promise<void>[][] = [];
  for (const round of stepPaths(path)) {
    const inside = await Promise.all(zks.map((zk) => new DoubleBarrier(zk, round, zks.length).enter()));
    const [first, ...others] = inside.sort((one, other) => (one.path < other.path ? -1 : 1));
    own.push(first!);
    waits.push(others.map((each) => each.leave()));
  }
  for (const each of waits.flat()) each.catch(() => undefined);
  return {
    // The znode of the lowest, which it watches as the others do.
    watches: stepsPerCase * zks.length,
    async step() {
      await Promise.all([own.shift()!.leave(), ...waits.shift()!]);
    },
  };
};

/** Each step has its own lock, held by a writer. */
const readers: SetUpCrowd = async ([writer, ...others], path) => {
  const locks = stepPaths(path);
  const held = await Promise.all(locks.map((each) => new ReadWriteLock(writer!, each).writeLock.acquire()));
  const all = locks.map((each) => others.map((zk) => new ReadWriteLock(zk, each).readLock.acquire()));
  for (const each of all.flat()) each.catch(() => undefined);
  return {
    // Each watches its own znode, and the others that of the writer.
    watches: stepsPerCase * (2 * others.length + 1),
    async step() {
      await held.shift()!.release();
      await Promise.all(all.shift()!);
    },
  };
};

const value: SetUpCrowd = async ([first, ...others], path) => {
  const shared = new SharedValue(first!, path, textCodec);
  let number = 0;
  await shared.set('0');
  const values = others.map((zk) => new SharedValue(zk, path, textCodec));
  await Promise.all([shared, ...values].map((each) => each.ready()));
  return { watches: others.length + 1, step: () => shared.set(String(++number)) };
};

const group: SetUpCrowd = async ([first, ...others], path) => {
  const watching = others.map((zk) => new Group(zk, path).observe());
  await new Group(first!, path).join('first');
  for (const each of watching) void drain(each);
  let number = 0;
  return {
    watches: others.length + 1,
    async step() {
      await new Group(first!, path).join(`member-${++number}`);
    },
  };
};

async function drain(all: AsyncIterable<unknown>): Promise<void> {
  try {
    for await (const each of all) void each;
  } catch {
    // The end of the session.
  }
}

const discovery: SetUpCrowd = async ([first, ...others], path) => {
  const registry = new ServiceDiscovery(first!, path);
  let port = 8000;
  const register = () => registry.register({ name: 'api', address: 'localhost', port: ++port });
  await register();
  await Promise.all(others.map((zk) => new ServiceDiscovery(zk, path).cache('api').ready()));
  return {
    watches: others.length,
    async step() {
      await register();
    },
  };
};

/** A member without items leaves, and joins again. */
const partitions: SetUpCrowd = async (clients, path) => {
  const zks = participantsOf(clients);
  const work = ({ signal }: OwnedPartition) => new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
  const plan: PartitionPlan = (name, _members, items) => (name === 'member-0' ? items : []);
  const join = (zk: Client, at: number) => new SetPartitioner(zk, path, `member-${at}`, ['one', 'two'], work, { timeBoundaryMs: 50, plan });
  const members = zks.map(join);
  await Promise.all(members.map((each) => each.ready()));
  let last = members.at(-1)!;
  return {
    // Each watches the others and its own znode.
    watches: 2 * zks.length,
    async step() {
      await last.close();
      last = join(zks.at(-1)!, zks.length - 1);
      await last.ready();
    },
  };
};

/** Each step is its own transaction, which all sites have joined. */
const commit: SetUpCrowd = async ([first, ...others], path) => {
  const names = others.map((_, at) => `site-${at}`);
  const open = (zk: Client, at: number) => new TwoPhaseCommit(zk, `${path}/${at}`, { watchedBy: 'coordinator' });
  const sites: Site[][] = [];
  for (let at = 0; at < stepsPerCase; at++) {
    await open(first!, at).begin(names);
    sites.push(await Promise.all(others.map((zk, site) => open(zk, at).join(names[site]!))));
  }
  return {
    // For each transaction: the coordinator watches the votes, and each other site the coordinator
    // and the decision.
    watches: stepsPerCase * (others.length + 2 * (others.length - 1)),
    async step() {
      const all = sites.shift()!;
      await Promise.all(all.map((site) => site.vote('commit')));
      await Promise.all(all.map((site) => site.outcome()));
    },
  };
};

/** All but one of the clients: those that the step concerns. */
export const broadcastTraffic: Readonly<Record<string, TrafficCase>> = {
  'a writer leaves, and all waiting readers continue': {
    setUp: readers,
    expected: (clients) => ({ received: clients, sent: 2 * clients }),
  },
  'a barrier is removed': {
    setUp: (clients, path) =>
      releaseAll(clients, (zk) => stepPaths(path).map((each) => new Barrier(zk, each)), {
        shut: (barrier) => barrier.set(),
        open: (barrier) => barrier.remove(),
        wait: (barrier) => barrier.wait(),
      }),
    // Each reads again, and removes the watch.
    expected: (clients) => ({ received: 2 * clients - 1, sent: 3 * clients - 2 }),
  },
  'an event is set': {
    setUp: (clients, path) =>
      releaseAll(clients, (zk) => stepPaths(path).map((each) => new EventHandle(zk, each)), {
        // With its parent, a container, which is deleted after a while when it is empty.
        shut: async (event) => {
          await event.set();
          await event.reset();
          await clients[0]!.create(`${event.path}/stays`);
        },
        open: (event) => event.set(),
        wait: (event) => event.wait(),
      }),
    expected: (clients) => ({ received: clients, sent: 2 * clients - 1 }),
  },
  'the last one enters a double barrier': {
    setUp: lastToEnterBarrier,
    // The last one reads, creates its znode and watches it, lists, and opens the barrier; the
    // others read `ready`.
    expected: (clients) => ({ received: clients + 4, sent: 2 * clients + 4 }),
  },
  'the lowest leaves a double barrier, and all others with it': {
    setUp: lowestLeavesBarrier,
    // It lists, and leaves in one txn with `ready`; the others list.
    expected: (clients) => ({ received: participantCount(clients) + 1, sent: 2 * participantCount(clients) + 1 }),
  },
  'a shared value is set': { setUp: value, expected: (clients) => ({ received: clients + 1, sent: 2 * clients + 1 }) },
  'a member joins a group': { setUp: group, expected: (clients) => ({ received: clients + 1, sent: 2 * clients }) },
  'an instance of a service is registered': { setUp: discovery, expected: (clients) => ({ received: clients + 1, sent: 2 * clients }) },
  'a member without items leaves a set partitioner, and joins again': {
    setUp: partitions,
    expected: (clients) => partitionCosts(participantCount(clients)),
  },
  'sites vote, and a coordinator publishes the outcome': {
    setUp: commit,
    // Each site votes, receives the event of the coordinator's decision, and reads it; it may read
    // once more if it does not learn at once that the coordinator has left.
    isUpperBound: true,
    expected: (clients) => ({ received: 6 * clients, sent: 9 * clients }),
  },
};

/** The others receive events when it leaves and joins, and read it; it reads all. */
function partitionCosts(members: number): Traffic {
  return { received: 2 * members + 7, sent: 4 * members + 5 };
}
