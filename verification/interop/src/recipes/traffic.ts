/**
 * The requests and events that one step of a recipe causes while many clients wait: by the server's
 * own counters, so that nothing is missed. If the numbers do not grow with the number of waiters,
 * no client polls, and no herd wakes up.
 */
import { type Client, connect, fourLetterWord } from '@tskeeper/client';

import { waitTimeoutMs, until } from './check-context.ts';

/** Of one step: requests received, and replies and watch events sent. */
export interface Traffic {
  readonly received: number;
  readonly sent: number;
}

/** Many clients around one path, all waiting. */
export interface Crowd {
  /** The minimum number of watches on the server when all wait. */
  readonly watches: number;
  /**
   * Runs the next step to its end: when it resolves, every request that it causes has been sent.
   */
  step(): Promise<void>;
  /** Ends what would continue by itself, and be counted with later steps. */
  end?(): Promise<void>;
}

/** Makes these clients act around one path, until they all wait. */
export type SetUpCrowd = (clients: readonly Client[], path: string) => Promise<Crowd>;

/** What is counted, and its cost. */
export interface TrafficCase {
  readonly setUp: SetUpCrowd;
  /** Cost of each step, with this many clients. */
  readonly expected: (clients: number) => Traffic;
  /** It may cost less. */
  readonly isUpperBound?: true;
}

/** Number of steps, each counted separately. */
export const stepsPerCase = 2;

/**
 * So long that no client has to ping while requests are counted. The server must allow it:
 * `maxSessionTimeout`.
 */
export const crowdTimeoutMs = 240_000;

/** Opens this many idle clients of one server until `use` is over. */
export async function withCrowd(connectString: string, count: number, use: (clients: readonly Client[]) => Promise<void>): Promise<void> {
  const clients = await Promise.all(Array.from({ length: count }, () => connect(connectString, { sessionTimeoutMs: crowdTimeoutMs })));
  try {
    await use(clients);
  } finally {
    await Promise.all(clients.map((zk) => zk.close()));
  }
}

/**
 * What each step costs with these clients, the only active ones of the server, without the cost of
 * reading the counters.
 */
export async function trafficOf(
  gather: SetUpCrowd,
  connectString: string,
  clients: readonly Client[],
  path: string,
): Promise<readonly Traffic[]> {
  const counters = new Counters(connectString, clients);
  const watchesBefore = (await counters.read()).watches;
  const crowd = await gather(clients, path);
  try {
    await until('all wait', async () => (await counters.read()).watches - watchesBefore >= crowd.watches);
    const traffic: Traffic[] = [];
    let before = await counters.untilQuiescent();
    for (let step = 0; step < stepsPerCase; step++) {
      await crowd.step();
      const after = await counters.untilQuiescent();
      traffic.push({ received: after.received - before.received, sent: after.sent - before.sent });
      before = after;
    }
    return traffic;
  } finally {
    await crowd.end?.();
    await counters.untilQuiescent();
  }
}

/**
 * Rounds of requests, one of each client, without other requests in between. A client's replies
 * arrive in the order of its requests, and events before later replies. So after the first round
 * everything received before it is executed; after the second, every client has received its
 * events; and the third would contain the requests that follow.
 */
const quiescentRounds = 3;

/** The server's counters, without the cost of reading them. */
class Counters {
  readonly #connectString: string;
  readonly #clients: readonly Client[];
  #reads = 0;
  #rounds = 0;
  #cost: Traffic | undefined;

  constructor(connectString: string, clients: readonly Client[]) {
    this.#connectString = connectString;
    this.#clients = clients;
  }

  async read(): Promise<Traffic & { readonly watches: number }> {
    const cost = (this.#cost ??= await this.#measureCost());
    const { received, sent, watches } = await this.#readRaw();
    const asked = this.#rounds * this.#clients.length;
    return { received: received - asked - this.#reads * cost.received, sent: sent - asked - this.#reads * cost.sent, watches };
  }

  /**
   * Waits until no request is pending, however long that takes. Timers of the clients are not
   * covered.
   */
  async untilQuiescent(): Promise<Traffic> {
    let last = await this.read();
    for (let quiet = 0; quiet < quiescentRounds;) {
      await Promise.all(this.#clients.map((zk) => zk.exists('/')));
      this.#rounds++;
      const now = await this.read();
      quiet = now.received === last.received ? quiet + 1 : 0;
      last = now;
    }
    return last;
  }

  /** Over several reads, as ZooKeeper counts what it sends a little later. */
  async #measureCost(): Promise<Traffic> {
    const looks = 8;
    const first = await this.#readRaw();
    let last = first;
    for (let look = 0; look < looks; look++) last = await this.#readRaw();
    return { received: Math.round((last.received - first.received) / looks), sent: Math.round((last.sent - first.sent) / looks) };
  }

  async #readRaw(): Promise<Traffic & { readonly watches: number }> {
    const text = await fourLetterWord(this.#connectString, 'mntr', { timeoutMs: waitTimeoutMs });
    this.#reads++;
    const counter = (name: string) => Number(new RegExp(`^zk_${name}\\t(\\d+)`, 'm').exec(text)?.[1]);
    return { received: counter('packets_received'), sent: counter('packets_sent'), watches: counter('watch_count') };
  }
}
