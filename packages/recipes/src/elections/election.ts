/**
 * Elects one of many as the leader. The election of ZooKeeper's recipes page: candidates queue, the
 * first leads, and each of the others watches the one before it. So the end of a leader wakes one
 * candidate, and the end of a candidate in the middle makes none a leader.
 *
 *     /election
 *       ├─ _c_2b7e...-n_0000000003    leads, and has written `_c_2b7e...-n_0000000003` to
 *       ├─ acknowledged               this znode, after its first steps as the leader
 *       └─ _c_91aa...-n_0000000007    watches 3
 *
 * The owner of the first znode may not know yet that it leads. A client for which that matters
 * waits for `acknowledged`.
 */
import { type ClientView, type Data, KeeperError } from '@tskeeper/client';
import {
  callOptionTypes,
  checkCallOptions,
  checkArgumentCount,
  checkFunction,
  checkSourceAndPath,
  checkConstructorOptions,
} from '../validation.ts';
import { acquire, type AcquireOptions, type LockRequest } from '../wait-queue/acquire.ts';
import type { Contender } from '../wait-queue/contender.ts';
import { WaitQueue, type ContenderOptions, previousContender } from '../wait-queue/wait-queue.ts';
import { Deadline } from '../waiting/deadline.ts';
import { connectionLossCodes, retryForever } from '../waiting/own-znode.ts';
import { runAcrossSessions, type SessionSource, watchAcrossSessions } from '../sessions/session-source.ts';
import type { WaitOptions } from '../wait-options.ts';
import { acknowledgedPath, Leadership } from './leadership.ts';

/** How an election is held. All candidates use the same options, except `data`. */
export interface ElectionOptions extends ContenderOptions {
  /** Data of the candidates' znodes, which identify them to observers. Default: none. */
  readonly data?: Data | undefined;
  /**
   * The part of the candidates' names between guid and number. Default: `n_`, as in ZooKeeper's
   * recipe; Curator's LeaderLatch has `latch-`, kazoo's Election `__lock__`.
   */
  readonly prefix?: string | undefined;
}

/** The leader, as observers see it. */
export interface Leader {
  /** The znode of the candidate. */
  readonly path: string;
  /** Its data, which identify the candidate. */
  readonly data: Uint8Array | null;
  /** Whether it has acknowledged its leadership, by `Leadership.acknowledge`. */
  readonly acknowledged: boolean;
}

/** Elects one of many as the leader: the leader election of ZooKeeper's recipes. */
export class Election {
  /** The znode below which candidates queue. */
  readonly path: string;
  readonly #source: SessionSource;
  readonly #request: LockRequest;

  /**
   * Sends no request. The znode need not exist. Throws a TypeError if `source` is not a client or
   * `path` is not a path.
   */
  constructor(source: SessionSource, path: string, options: ElectionOptions = {}) {
    checkSourceAndPath(source, path);
    checkConstructorOptions(options, 'Election', arguments.length);
    const { prefix = 'n_', data = null } = options;
    this.path = path;
    this.#source = source;
    this.#request = {
      queue: new WaitQueue(path, [prefix], options),
      prefix: prefix,
      data,
      findBlocker: previousContender,
      what: `the leadership of ${path}`,
    };
  }

  /**
   * Enters the election, and resolves when it leads; see `Leadership` for how long. Rejects as
   * `Lock.acquire` does, and is then no longer a candidate.
   */
  async lead(options: AcquireOptions = {}): Promise<Leadership> {
    checkArgumentCount(arguments.length, 1, 'lead(options)');
    return new Leadership(await acquire(this.#source, this.#request, options), this.path);
  }

  /**
   * Enters the election, calls `work` when it leads, and resigns afterwards, also when `work`
   * fails. Resolves and rejects as `work` does, or as `lead`.
   */
  async run<Result>(work: (leadership: Leadership) => Promise<Result> | Result, options: AcquireOptions = {}): Promise<Result> {
    checkArgumentCount(arguments.length, 2, 'run(work, options)');
    checkFunction(work, 'work');
    await using leadership = await this.lead(options);
    return await work(leadership);
  }

  /**
   * The leader, and then the other candidates in their order. Rejects as `Lock.contenders` does.
   */
  async contenders(options: WaitOptions = {}): Promise<readonly Contender[]> {
    checkArgumentCount(arguments.length, 1, 'contenders(options)');
    return await this.#request.queue.contenders(this.#source, options);
  }

  /**
   * The current leader; undefined if there are no candidates. Rejects as `contenders` does, and
   * with NoAuth when its znode may not be read.
   */
  async leader(options: WaitOptions = {}): Promise<Leader | undefined> {
    checkArgumentCount(arguments.length, 1, 'leader(options)');
    using deadline = new Deadline(this.#source, options, `a reply about ${this.#request.what}`);
    const { signal } = deadline;
    return await runAcrossSessions(this.#source, signal, (zk) => this.#leaderInSession(zk, signal));
  }

  async #leaderInSession(zk: ClientView, signal: AbortSignal): Promise<Leader | undefined> {
    for (;;) {
      const [first] = await this.#request.queue.contenders(zk, { signal });
      if (first === undefined) return undefined;
      // In this order: if the leader's znode still exists, it led when `acknowledged` was read. In
      // the other order `acknowledged` may be gone together with the leader, which would seem not
      // to have acknowledged.
      const acknowledged = await dataOf(zk, acknowledgedPath(this.path), signal);
      const leader = await dataOf(zk, first.path, signal);
      // Otherwise it has gone since, and there is another.
      if (leader === undefined) continue;
      const isAcknowledged = acknowledged !== undefined && new TextDecoder().decode(acknowledged ?? undefined) === first.name;
      return { path: first.path, data: leader, acknowledged: isAcknowledged };
    }
  }

  /**
   * Yields the leader, now and after each change: undefined if there are no candidates. Ends and
   * throws as `Client.watch` does. Each observer sends two or three requests for each candidate
   * that arrives or leaves; candidates themselves need not observe.
   */
  observe(options: Pick<WaitOptions, 'signal'> = {}): AsyncGenerator<Leader | undefined, void, undefined> {
    checkArgumentCount(arguments.length, 1, 'observe(options)');
    checkCallOptions(options, callOptionTypes.loop, 'observe');
    return this.#observe(options.signal);
  }

  async *#observe(signal: AbortSignal | undefined): AsyncGenerator<Leader | undefined, void, undefined> {
    const never = new AbortController().signal;
    let last: Leader | undefined | null = null;
    for await (const { zk, event } of watchAcrossSessions(this.#source, this.path, signal)) {
      if (event.type === 'NodeDataChanged') continue;
      const now = await this.#leaderOrLost(zk, signal ?? never);
      if (now === null || isSameLeader(last, now)) continue;
      last = now;
      yield now;
    }
  }

  /** null if there was no reply: the loop notices the next connection, or the end. */
  async #leaderOrLost(zk: ClientView, signal: AbortSignal): Promise<Leader | undefined | null> {
    try {
      return await this.#leaderInSession(zk, signal);
    } catch (error) {
      if (KeeperError.is(error, ...connectionLossCodes, 'SessionExpired', 'SessionMoved', 'AuthFailed')) return null;
      throw error;
    }
  }
}

/** undefined if it does not exist. */
async function dataOf(zk: ClientView, path: string, signal: AbortSignal): Promise<Uint8Array | null | undefined> {
  try {
    return (await zk.getData(path, { ...retryForever, signal })).data;
  } catch (error) {
    if (KeeperError.is(error, 'NoNode')) return undefined;
    throw error;
  }
}

function isSameLeader(one: Leader | undefined | null, other: Leader | undefined): boolean {
  if (one === null || one === undefined || other === undefined) return one === other;
  return one.path === other.path && one.acknowledged === other.acknowledged;
}
