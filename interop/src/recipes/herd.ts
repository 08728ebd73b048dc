/**
 * How much a server is asked, and how much it tells, by what one step of a recipe sets off while many wait: by the server's own counters, so that nothing
 * is missed. Nobody polls, and no herd wakes up, where the numbers do not grow with those who wait.
 */
import { type Client, connect, fourLetterWord } from '@tskeeper/client';
import { Election, type Held, Lock, Queue, Semaphore, SharedLock } from '@tskeeper/recipes';

import { until } from './ground.ts';

/** Of one step: requests that came in, and replies and watch events that went out. */
export interface Traffic {
  readonly received: number;
  readonly sent: number;
}

interface Crowd {
  /** Watches that the server has when all wait, at the least. */
  readonly watches: number;
  /** The next step, to its end: when it resolves everything has been asked that it leads to. */
  step(): Promise<void>;
}

/** Somebody has it, and all others wait; or some other crowd around one path. */
type Gather = (clients: readonly Client[], path: string) => Promise<Crowd>;

/** Whoever has it gives it back, and somebody else has it. */
async function handedOn<Hold>(takes: readonly (() => Promise<Hold>)[], give: (hold: Hold) => Promise<void>): Promise<Crowd> {
  const [first, ...others] = takes;
  const held: Hold[] = [];
  held.push(await first!());
  let tell = () => {};
  for (const take of others) {
    void take()
      .then((hold) => held.push(hold))
      .then(() => tell())
      .catch(() => undefined);
  }
  return {
    // Each watches its own znode, and all but one the znode ahead.
    watches: 2 * takes.length - 1,
    async step() {
      const next = new Promise<void>((resolve) => (tell = resolve));
      await give(held.shift()!);
      if (held.length === 0) await next;
    },
  };
}

export interface Scene {
  readonly gather: Gather;
  /** Of each step at most, however many wait. */
  readonly costs: Traffic;
}

/** Its delete and the list of the one that wakes up; two answers, the event that wakes it, and that of the own znode. */
const turn: Traffic = { received: 2, sent: 4 };

export const scenes: Readonly<Record<string, Scene>> = {
  'a lock is given back': {
    gather: (clients, path) =>
      handedOn(
        clients.map((zk) => () => new Lock(zk, path).acquire()),
        (held) => held.release(),
      ),
    costs: turn,
  },
  'a leader resigns': {
    gather: (clients, path) =>
      handedOn(
        clients.map((zk) => () => new Election(zk, path).lead()),
        (leadership) => leadership.resign(),
      ),
    costs: turn,
  },
  'a writer gives way to the next of many': {
    gather: (clients, path) =>
      handedOn(
        clients.map((zk) => () => new SharedLock(zk, path).writing.acquire()),
        (held) => held.release(),
      ),
    costs: turn,
  },
  'a reader leaves many others, and a writer that waits for the last of them': {
    async gather(clients, path) {
      const [writer, ...readers] = clients;
      const held: Held[] = [];
      for (const zk of readers) held.push(await new SharedLock(zk, path).reading.acquire());
      void new SharedLock(writer!, path).writing.acquire().catch(() => undefined);
      return { watches: clients.length + 1, step: () => held.shift()!.release() };
    },
    costs: { received: 1, sent: 2 },
  },
  'a lease of a semaphore is given back': {
    async gather(clients, path) {
      const crowd = await handedOn(
        clients.map((zk) => () => new Semaphore(zk, path, { size: 1 }).acquire()),
        (held) => held.release(),
      );
      // Those of the line, and of the two leases that are there, and the list of them.
      return { ...crowd, watches: 2 * clients.length };
    },
    // The delete of the lease; who is first in line lists the leases and leaves the line; the next one lists the line, makes its lease, watches it, and lists the
    // leases twice, the second time with a watch.
    costs: { received: 8, sent: 12 },
  },
  'an item is put into a queue': {
    async gather([producer, ...consumers], path) {
      const queue = new Queue(producer!, path);
      // The first put makes what all others use.
      await queue.put('first');
      const { children } = await producer!.getChildren(path);
      await producer!.delete(`${path}/${children[0]}`);
      let tell = () => {};
      for (const zk of consumers) {
        void new Queue(zk, path)
          .take()
          .then(() => tell())
          .catch(() => undefined);
      }
      return {
        // As for a lock, and the list of the first in line.
        watches: 2 * consumers.length,
        async step() {
          const taken = new Promise<void>((resolve) => (tell = resolve));
          await queue.put('next');
          await taken;
        },
      };
    },
    // The put; who is first in line lists, reads and takes, and leaves the line; the next one lists the line, looks at the mark of its own, and lists the items.
    costs: { received: 8, sent: 12 },
  },
};

/** That are counted, each on its own. */
export const steps = 3;

/** So long that no client has to ping while requests are counted. A server has to allow it: `maxSessionTimeout`. */
export const crowdTimeoutMs = 240_000;

/** So many clients of one server, who do nothing yet, until `use` is over. */
export async function withCrowd(connectString: string, count: number, use: (clients: readonly Client[]) => Promise<void>): Promise<void> {
  const clients = await Promise.all(Array.from({ length: count }, () => connect(connectString, { sessionTimeoutMs: crowdTimeoutMs })));
  try {
    await use(clients);
  } finally {
    await Promise.all(clients.map((zk) => zk.close()));
  }
}

/** What each of some steps costs with these clients, the only ones of the server that do anything; what looks at the counters cost is taken off. */
export async function trafficOf(
  gather: Gather,
  connectString: string,
  clients: readonly Client[],
  path: string,
): Promise<readonly Traffic[]> {
  const counters = new Counters(connectString);
  const watchesBefore = (await counters.look()).watches;
  const crowd = await gather(clients, path);
  await until('all wait', async () => (await counters.look()).watches - watchesBefore >= crowd.watches);
  // Watches of when they came are still set: those who found a queue empty hear of the first item, and ask nothing.
  await crowd.step();
  const traffic: Traffic[] = [];
  let before = await counters.atRest();
  for (let step = 0; step < steps; step++) {
    await crowd.step();
    const after = await counters.atRest();
    traffic.push({ received: after.received - before.received, sent: after.sent - before.sent });
    before = after;
  }
  return traffic;
}

/** Long beside a turn of client and server. A look that comes too early finds too little, and never too much. */
const restMs = 20;

/** The server's, less what it costs to look at them. */
class Counters {
  readonly #connectString: string;
  #looks = 0;
  #cost: Traffic | undefined;

  constructor(connectString: string) {
    this.#connectString = connectString;
  }

  async look(): Promise<Traffic & { readonly watches: number }> {
    const cost = (this.#cost ??= await this.#measureCost());
    const { received, sent, watches } = await this.#read();
    return { received: received - this.#looks * cost.received, sent: sent - this.#looks * cost.sent, watches };
  }

  /** When nothing has come in between two looks. */
  async atRest(): Promise<Traffic> {
    let last = await this.look();
    await until('nothing comes in', async () => {
      await new Promise((resolve) => setTimeout(resolve, restMs));
      const { received } = last;
      last = await this.look();
      return last.received === received;
    });
    return last;
  }

  /** Over several, as ZooKeeper counts what it sends a little later. */
  async #measureCost(): Promise<Traffic> {
    const looks = 8;
    const first = await this.#read();
    let last = first;
    for (let look = 0; look < looks; look++) last = await this.#read();
    return { received: Math.round((last.received - first.received) / looks), sent: Math.round((last.sent - first.sent) / looks) };
  }

  async #read(): Promise<Traffic & { readonly watches: number }> {
    const text = await fourLetterWord(this.#connectString, 'mntr');
    this.#looks++;
    const counter = (name: string) => Number(new RegExp(`^zk_${name}\\t(\\d+)`, 'm').exec(text)?.[1]);
    return { received: counter('packets_received'), sent: counter('packets_sent'), watches: counter('watch_count') };
  }
}
