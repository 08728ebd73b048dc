/**
 * How much a server is asked, and how much it tells, by what one step of a recipe sets off while many wait: by the server's own counters, so that nothing
 * is missed. Nobody polls, and no herd wakes up, where the numbers do not grow with those who wait.
 */
import { type Client, connect, fourLetterWord } from '@tskeeper/client';

import { patienceMs, until } from './ground.ts';

/** Of one step: requests that came in, and replies and watch events that went out. */
export interface Traffic {
  readonly received: number;
  readonly sent: number;
}

/** Many around one path, who all wait. */
export interface Crowd {
  /** Watches that the server has when all wait, at the least. */
  readonly watches: number;
  /** The next step, to its end: when it resolves everything has been asked that it leads to. */
  step(): Promise<void>;
  /** Ends what would go on by itself, and be counted with whatever comes behind it. */
  end?(): Promise<void>;
}

/** Lets these clients do something around one path, until they all wait. */
export type Gather = (clients: readonly Client[], path: string) => Promise<Crowd>;

/** What is counted, and what it costs. */
export interface Scene {
  readonly gather: Gather;
  /** Of each step, with so many clients. */
  readonly costs: (clients: number) => Traffic;
  /** It may cost less. */
  readonly atMost?: true;
}

/** That are counted, each on its own. */
export const steps = 2;

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
  const counters = new Counters(connectString, clients);
  const watchesBefore = (await counters.look()).watches;
  const crowd = await gather(clients, path);
  try {
    await until('all wait', async () => (await counters.look()).watches - watchesBefore >= crowd.watches);
    const traffic: Traffic[] = [];
    let before = await counters.atRest();
    for (let step = 0; step < steps; step++) {
      await crowd.step();
      const after = await counters.atRest();
      traffic.push({ received: after.received - before.received, sent: after.sent - before.sent });
      before = after;
    }
    return traffic;
  } finally {
    await crowd.end?.();
    await counters.atRest();
  }
}

/**
 * Rounds of requests, one of each client, in which nothing else comes in before there is rest. A client's answers come in the order of its requests, and events ahead of the
 * answers behind them. So when the first is over, everything is carried out that had come in before it; when the second is, everybody has heard of that; and with the third
 * would come whatever is asked upon it.
 */
const quietRounds = 3;

/** The server's, less what it costs to look at them. */
class Counters {
  readonly #connectString: string;
  readonly #clients: readonly Client[];
  #looks = 0;
  #rounds = 0;
  #cost: Traffic | undefined;

  constructor(connectString: string, clients: readonly Client[]) {
    this.#connectString = connectString;
    this.#clients = clients;
  }

  async look(): Promise<Traffic & { readonly watches: number }> {
    const cost = (this.#cost ??= await this.#measureCost());
    const { received, sent, watches } = await this.#read();
    const asked = this.#rounds * this.#clients.length;
    return { received: received - asked - this.#looks * cost.received, sent: sent - asked - this.#looks * cost.sent, watches };
  }

  /** When nothing is under way any more, however long that takes. Timers of the clients are another matter. */
  async atRest(): Promise<Traffic> {
    let last = await this.look();
    for (let quiet = 0; quiet < quietRounds;) {
      await Promise.all(this.#clients.map((zk) => zk.exists('/')));
      this.#rounds++;
      const now = await this.look();
      quiet = now.received === last.received ? quiet + 1 : 0;
      last = now;
    }
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
    const text = await fourLetterWord(this.#connectString, 'mntr', { timeoutMs: patienceMs });
    this.#looks++;
    const counter = (name: string) => Number(new RegExp(`^zk_${name}\\t(\\d+)`, 'm').exec(text)?.[1]);
    return { received: counter('packets_received'), sent: counter('packets_sent'), watches: counter('watch_count') };
  }
}
