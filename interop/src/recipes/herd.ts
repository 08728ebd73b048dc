/**
 * How much a server is asked, and how much it tells, by what one step of a recipe sets off while many wait: by the server's own counters, so that nothing
 * is missed. Nobody polls, and no herd wakes up, where the numbers do not grow with those who wait.
 */
import { type Client, connect, fourLetterWord } from '@tskeeper/client';
import { Election, type Held, Lock, SharedLock } from '@tskeeper/recipes';

import { until } from './ground.ts';

/** Of one step: requests that came in, and replies and watch events that went out. */
export interface Traffic {
  readonly received: number;
  readonly sent: number;
}

interface Crowd {
  /** Watches that the server has when all wait. */
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
  /** Of each step, however many wait. */
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
};

/** That are counted, each on its own. */
export const steps = 3;

/** What each of some steps costs with so many clients; what a look at the counters costs is taken off. */
export async function trafficOf(gather: Gather, connectString: string, count: number, path: string): Promise<readonly Traffic[]> {
  const clients = await Promise.all(Array.from({ length: count }, () => connect(connectString, { sessionTimeoutMs: 30_000 })));
  try {
    const watchesBefore = (await countersOf(connectString)).watches;
    const crowd = await gather(clients, path);
    await until('all wait', async () => (await countersOf(connectString)).watches - watchesBefore === crowd.watches);
    const traffic: Traffic[] = [];
    for (let step = 0; step < steps; step++) {
      const [idle, before] = [await countersOf(connectString), await countersOf(connectString)];
      await crowd.step();
      const after = await countersOf(connectString);
      const look = { received: before.received - idle.received, sent: before.sent - idle.sent };
      traffic.push({ received: after.received - before.received - look.received, sent: after.sent - before.sent - look.sent });
    }
    return traffic;
  } finally {
    await Promise.all(clients.map((zk) => zk.close()));
  }
}

async function countersOf(connectString: string): Promise<Traffic & { readonly watches: number }> {
  const text = await fourLetterWord(connectString, 'mntr');
  const counter = (name: string) => Number(new RegExp(`^zk_${name}\\t(\\d+)`, 'm').exec(text)?.[1]);
  return { received: counter('packets_received'), sent: counter('packets_sent'), watches: counter('watch_count') };
}
