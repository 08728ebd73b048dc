/**
 * Who of many leads. The election of ZooKeeper's recipes page: candidates stand in line, the first leads, and each of the others watches the one ahead
 * of it, so that the end of a leader wakes one, and the end of a candidate in the middle makes nobody a leader.
 *
 *     /election
 *       ├─ _c_2b7e...-n_0000000003    leads, and has put `_c_2b7e...-n_0000000003` into
 *       ├─ acknowledged               this, when it had done what a leader does first
 *       └─ _c_91aa...-n_0000000007    watches 3
 *
 * That nobody stands ahead of a znode does not mean that its owner knows that it leads. Whoever has to know waits for `acknowledged`.
 */
import { type ClientView, type Data, KeeperError } from '@tskeeper/client';
import { callOptions, checkCallOptions, checkCount, checkFunction, checkPlace, checkSettings } from '../given.ts';
import { acquire, type AcquireOptions, type Claim } from '../line/acquire.ts';
import type { Contender } from '../line/contender.ts';
import { Line, type LineOptions, nextAhead } from '../line/line.ts';
import { Limit } from '../waiting/limit.ts';
import { untilTheEnd } from '../waiting/next-event.ts';
import { inSessions, type SessionSource, watchOf } from '../sessions/session-source.ts';
import type { WaitOptions } from '../waiting/wait-options.ts';
import { acknowledgedPath, Leadership } from './leadership.ts';
import { lossCodes } from '../waiting/unanswered.ts';

/** How an election is held. All candidates have the same, but for `data`. */
export interface ElectionOptions extends LineOptions {
  /** Data of the candidates' znodes: who this one is to the others. Default: none. */
  readonly data?: Data | undefined;
  /**
   * What stands in the names of candidates between guid and number. Default: `n_`, as in ZooKeeper's recipe; Curator's LeaderLatch has `latch-`, kazoo's Election
   * `__lock__`.
   */
  readonly name?: string | undefined;
}

/** Who leads, for those who look on. */
export interface Leader {
  /** The znode of the candidate. */
  readonly path: string;
  /** Its data, by which the candidate says who it is. */
  readonly data: Uint8Array | null;
  /** Whether it has said that it knows, by `Leadership.acknowledge`. */
  readonly acknowledged: boolean;
}

/** Who of many leads: the leader election of ZooKeeper's recipes. */
export class Election {
  /** The znode below which candidates stand. */
  readonly path: string;
  readonly #source: SessionSource;
  readonly #claim: Claim;

  /** Nothing is asked of a server yet. The znode need not exist. Throws a TypeError for what is no client or no path. */
  constructor(source: SessionSource, path: string, options: ElectionOptions = {}) {
    checkPlace(source, path);
    checkSettings(options, 'Election', arguments.length);
    const { name = 'n_', data = null } = options;
    this.path = path;
    this.#source = source;
    this.#claim = { line: new Line(path, [name], options), kind: name, data, ahead: nextAhead, what: `the leadership of ${path}` };
  }

  /**
   * Stands as a candidate, and resolves when it leads; for as long as that lasts see `Leadership`. Rejects as `Lock.acquire` does, and is no candidate any
   * more then.
   */
  async lead(options: AcquireOptions = {}): Promise<Leadership> {
    checkCount(arguments.length, 1, 'lead(options)');
    return new Leadership(await acquire(this.#source, this.#claim, options), this.path);
  }

  /** Stands as a candidate, calls `work` when it leads, and resigns whatever comes of that. Resolves and rejects as `work` does, or as `lead`. */
  async run<Result>(work: (leadership: Leadership) => Promise<Result> | Result, options: AcquireOptions = {}): Promise<Result> {
    checkCount(arguments.length, 2, 'run(work, options)');
    checkFunction(work, 'work');
    await using leadership = await this.lead(options);
    return await work(leadership);
  }

  /** The leader, and behind it the candidates in their order. Rejects as `Lock.contenders` does. */
  async candidates(options: WaitOptions = {}): Promise<readonly Contender[]> {
    checkCount(arguments.length, 1, 'candidates(options)');
    return await this.#claim.line.contenders(this.#source, options);
  }

  /** Who leads now; undefined when nobody stands. Rejects as `candidates` does, and with NoAuth when its znode may not be read. */
  async leader(options: WaitOptions = {}): Promise<Leader | undefined> {
    checkCount(arguments.length, 1, 'leader(options)');
    using limit = new Limit(this.#source, options, `an answer about ${this.#claim.what}`);
    const { signal } = limit;
    return await inSessions(this.#source, signal, (zk) => this.#leaderIn(zk, signal));
  }

  async #leaderIn(zk: ClientView, signal: AbortSignal): Promise<Leader | undefined> {
    for (;;) {
      const [first] = await this.#claim.line.contenders(zk, { signal });
      if (first === undefined) return undefined;
      // In this order: a leader that is there still has led when its word was read. Behind the leader the word may be gone with it, and it would seem to have said nothing.
      const acknowledged = await dataOf(zk, acknowledgedPath(this.path), signal);
      const leader = await dataOf(zk, first.path, signal);
      // Otherwise it has gone since, and there is another.
      if (leader === undefined) continue;
      const isAcknowledged = acknowledged !== undefined && new TextDecoder().decode(acknowledged ?? undefined) === first.name;
      return { path: first.path, data: leader, acknowledged: isAcknowledged };
    }
  }

  /**
   * Tells who leads, now and whenever that changes: undefined when nobody stands. Ends and throws as `Client.watch` does. Each one that looks on asks two or three
   * questions with each candidate that comes or goes; candidates themselves need not look on.
   */
  observe(options: Pick<WaitOptions, 'signal'> = {}): AsyncGenerator<Leader | undefined, void, undefined> {
    checkCount(arguments.length, 1, 'observe(options)');
    checkCallOptions(options, callOptions.loop, 'observe');
    return this.#observe(options.signal);
  }

  async *#observe(signal: AbortSignal | undefined): AsyncGenerator<Leader | undefined, void, undefined> {
    const never = new AbortController().signal;
    let last: Leader | undefined | null = null;
    for await (const { zk, event } of watchOf(this.#source, this.path, signal)) {
      if (event.type === 'NodeDataChanged') continue;
      const now = await this.#leaderOrLost(zk, signal ?? never);
      if (now === null || isSame(last, now)) continue;
      last = now;
      yield now;
    }
  }

  /** null when no answer came: the loop will hear of the next connection, or of the end. */
  async #leaderOrLost(zk: ClientView, signal: AbortSignal): Promise<Leader | undefined | null> {
    try {
      return await this.#leaderIn(zk, signal);
    } catch (error) {
      if (KeeperError.is(error, ...lossCodes, 'SessionExpired', 'SessionMoved', 'AuthFailed')) return null;
      throw error;
    }
  }
}

/** undefined when it is not there. */
async function dataOf(zk: ClientView, path: string, signal: AbortSignal): Promise<Uint8Array | null | undefined> {
  try {
    return (await zk.getData(path, { ...untilTheEnd, signal })).data;
  } catch (error) {
    if (KeeperError.is(error, 'NoNode')) return undefined;
    throw error;
  }
}

function isSame(one: Leader | undefined | null, other: Leader | undefined): boolean {
  if (one === null || one === undefined || other === undefined) return one === other;
  return one.path === other.path && one.acknowledged === other.acknowledged;
}
