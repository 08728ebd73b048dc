/**
 * All do it, or none. The two-phase commit of ZooKeeper's recipes page: each site says whether it can, and all go by what all have said.
 *
 *     begin      multi: create tx, tx/site for each of them, empty          the coordinator, whose part may end with this
 *     join       getData tx: what is to be done                             each site
 *                getData tx/site of each of them, with a watch              1.
 *                create tx/site/present (EPHEMERAL)                         if `presence` is asked for
 *     vote       setData tx/site: `commit` or `abort`                       2. with a version, so that it is written once
 *     outcome    wait for the events, getData of the changed                3. all `commit`: commit; one `abort`: abort, at once
 *     the end    multi: create tx/decision, delete tx/site                  4. done what was decided
 *
 *     /app/tx-17                     what is to be done
 *       ├─ berlin        commit      the vote of a site
 *       │    └─ present              ephemeral: the site is at work
 *       ├─ paris                     empty: has not voted
 *       ├─ coordinator               ephemeral: one who counts for the others
 *       └─ decision                  what the votes have come to, `commit` or `abort`, for those who do not see them
 *
 * Why all go by the same. A vote is written at a version at which there was none, so there is one for each site, for ever, whoever wrote it and whoever reads
 * it, sooner or later. The decision follows from the votes alone: two who both decide, coordinators of the past among them, cannot differ, so no part of this
 * rests on who coordinates, nor on time. What else would decide becomes a vote first. A site that is gone does not count as one that aborts: somebody votes
 * `abort` in its place, and is refused if the site has voted `commit` with its last breath. Who is tired of waiting does the same. (So each vote is what an
 * instance of consensus is in Gray and Lamport's "Consensus on Transaction Commit", decided by the ensemble.)
 *
 * The page has each site make its vote as an ephemeral, so that its failure can be seen; but then the votes of those who fail behind their vote are gone with
 * them, and some count them who others have missed. Here the presence is ephemeral, and the vote stays.
 */
import { type Acl, type ClientView, type Data, type GetDataResult, KeeperError, op } from '@tskeeper/client';
import { childPath, parentOf } from '@tskeeper/client/internal';
import { callOptions, checkArray, checkCount, checkPlace, checkSettings } from '../given.ts';
import { inSessions, isEndOfSession, mayBeDone, type SessionSource } from '../sessions/session-source.ts';
import { Limit } from '../waiting/limit.ts';
import { untilTheEnd } from '../waiting/next-event.ts';
import { isUnsettled, lossCodes, unsettled } from '../waiting/unanswered.ts';
import type { WaitOptions } from '../waiting/wait-options.ts';
import { beginningPath, decide, recorded, reserved, sitesOf, type Transaction } from './decision.ts';
import { clear } from './ending.ts';
import { putUp, takeBack, takeDown } from './own-ephemeral.ts';
import { Site } from './site.ts';
import { ballotOf, cast, presencePath, type Vote } from './votes.ts';

/** How the sites of a transaction agree. All who have to do with one have the same. */
export interface TwoPhaseCommitOptions {
  /**
   * Who watches the votes. `sites`: each of them, as on the page, which needs nobody else, and a number of messages that grows with the square of theirs.
   * `coordinator`: one, who tells the others, so it grows with their number; it is the first who joins or asks for the outcome, and when its session has
   * ended another. Default: `sites`.
   */
  readonly watching?: 'sites' | 'coordinator' | undefined;
  /**
   * Whether a site is at work for as long as its session lives: one that has joined, and is gone before it has voted, has voted `abort`. One that never joins
   * is waited for all the same, until somebody aborts. Default: false.
   */
  readonly presence?: boolean | undefined;
  /** Of all znodes that are made. Default: everyone may do everything. */
  readonly acl?: readonly Acl[] | undefined;
}

/** What a transaction is begun with. */
export interface BeginOptions extends WaitOptions {
  /** What is to be done, as the sites will read it. Default: none; they hear of it in another way. */
  readonly data?: Data | undefined;
}

/** All do it, or none: the two-phase commit of ZooKeeper's recipes. */
export class TwoPhaseCommit {
  /** The znode of the transaction. It stands for one transaction for ever, so its name is used once. */
  readonly path: string;
  readonly #source: SessionSource;
  readonly #settings: Omit<Transaction, 'zk'>;

  /** Nothing is asked of a server yet. Throws a TypeError for what is no client or no path. */
  constructor(source: SessionSource, path: string, options: TwoPhaseCommitOptions = {}) {
    checkPlace(source, path);
    checkSettings(options, 'TwoPhaseCommit', arguments.length);
    const { watching = 'sites', presence = false, acl } = options;
    if (watching !== 'sites' && watching !== 'coordinator')
      throw new TypeError(`votes are watched by "sites" or by the "coordinator", not by "${String(watching)}"`);
    this.path = path;
    this.#source = source;
    this.#settings = { path, watching, presence, acl };
  }

  /**
   * Begins the transaction: it is there with all its sites, or not at all. Whoever has begun it is not needed any more. What is missing above it is made, as
   * containers. Rejects with a TypeError for names that are no sites'; with NodeExists when there is one of this name already; with a RecipeError, TimedOut,
   * and with the signal's reason, when it may have begun, which `outcome` and `abort` tell; with SessionExpired and the like; and with NoAuth, InvalidACL,
   * QuotaExceeded.
   */
  async begin(sites: readonly string[], options: BeginOptions = {}): Promise<void> {
    checkCount(arguments.length, 2, 'begin(sites, options)');
    checkSites(sites);
    using limit = new Limit(this.#source, options, `the beginning of ${this.path}`, callOptions.begin);
    const { data = null } = options;
    const { signal } = limit;
    await inSessions(this.#source, signal, (zk) => this.#beginIn(zk, sites, data, signal), isUnsettled);
  }

  async #beginIn(zk: ClientView, sites: readonly string[], data: Data, signal: AbortSignal): Promise<void> {
    const beginning = beginningPath(this.#settings);
    try {
      await this.#begin(zk, sites, data, signal);
    } catch (error) {
      if (!KeeperError.is(error, 'NodeExists')) void takeBack(zk, beginning);
      throw error;
    }
    await takeDown(zk, beginning);
  }

  /**
   * With the ephemeral of one who has not heard of it yet. As long as that is there the transaction stays, however quick its sites are. So if the answer is
   * lost, and there is no such transaction, it has not begun, rather than ended.
   */
  async #begin(zk: ClientView, sites: readonly string[], data: Data, signal: AbortSignal): Promise<void> {
    const { path, acl } = this.#settings;
    const beginning = beginningPath(this.#settings);
    const options = { ...untilTheEnd, signal };
    const ops = [
      op.create(path, data, { acl }),
      ...sites.map((site) => op.create(childPath(path, site), null, { acl })),
      op.create(beginning, null, { mode: 'ephemeral', acl }),
    ];
    for (let mayHaveBegun = false; ;) {
      try {
        await zk.multi(ops, options);
        return;
      } catch (error) {
        if (isEndOfSession(error)) throw mayHaveBegun || mayBeDone(error) ? unsettled(error) : error;
        if (KeeperError.is(error, ...lossCodes)) mayHaveBegun = true;
        else if (KeeperError.is(error, 'NoNode')) await zk.ensurePath(parentOf(path), { mode: 'container', acl, ...options });
        else if (!mayHaveBegun || !KeeperError.is(error, 'NodeExists')) throw error;
        else if ((await this.#ownerOf(zk, beginning, signal)) === zk.sessionId) return;
        else throw error;
      }
    }
  }

  async #ownerOf(zk: ClientView, path: string, signal: AbortSignal): Promise<bigint | undefined> {
    try {
      return (await zk.exists(path, { ...untilTheEnd, signal }))?.ephemeralOwner;
    } catch (error) {
      throw unsettled(error);
    }
  }

  /**
   * What a site does when it hears of the transaction; also one that comes back after a crash, whose vote stands. Rejects with NoNode when there is no such
   * transaction, or no such site in it: then it is not part of it, or has acknowledged the outcome. Rejects with a RecipeError, TimedOut; with the signal's
   * reason; with SessionExpired and the like.
   */
  async join(site: string, options: WaitOptions = {}): Promise<Site> {
    checkCount(arguments.length, 2, 'join(site, options)');
    checkSites([site]);
    using limit = new Limit(this.#source, options, `the transaction ${this.path}`);
    const { signal } = limit;
    return await inSessions(this.#source, signal, (zk) => this.#joinIn(zk, site, signal));
  }

  async #joinIn(zk: ClientView, site: string, signal: AbortSignal): Promise<Site> {
    const { path, presence, acl } = this.#settings;
    const transaction = { zk, ...this.#settings };
    const own = childPath(path, site);
    try {
      const [{ data }, vote] = await this.#read(zk, own, signal);
      const seen = ballotOf(vote);
      if (presence && seen.vote === undefined) await putUp(zk, presencePath(own), acl, signal);
      return new Site(this.#source, this.#settings, own, data, seen);
    } catch (error) {
      // One that crashed behind its acknowledgement may have been the last.
      if (KeeperError.is(error, 'NoNode')) await clear(transaction, signal);
      throw error;
    }
  }

  /** Who is told of a transaction may hear of it before its server does. */
  async #read(zk: ClientView, own: string, signal: AbortSignal): Promise<readonly [GetDataResult, GetDataResult]> {
    const { path } = this.#settings;
    const options = { ...untilTheEnd, signal };
    const both = () => Promise.all([zk.getData(path, options), zk.getData(own, options)]);
    try {
      return await both();
    } catch (error) {
      if (!KeeperError.is(error, 'NoNode')) throw error;
      await zk.sync(path, options);
      return await both();
    }
  }

  /**
   * What the sites agree on, for one that is none of them: the coordinator, if votes are watched by that, or one who looks on. Rejects as `Site.outcome`
   * does.
   */
  async outcome(options: WaitOptions = {}): Promise<Vote> {
    checkCount(arguments.length, 1, 'outcome(options)');
    using limit = new Limit(this.#source, options, `the outcome of ${this.path}`);
    const { signal } = limit;
    return await inSessions(this.#source, signal, (zk) => decide({ zk, ...this.#settings }, signal));
  }

  /**
   * Ends the waiting for sites that do not vote: votes `abort` in the place of one of them, and resolves with what is decided by that, which is `commit` if
   * all of them have voted so. Anybody may do that at any time. Rejects as `Site.outcome` does.
   */
  async abort(options: WaitOptions = {}): Promise<Vote> {
    checkCount(arguments.length, 1, 'abort(options)');
    using limit = new Limit(this.#source, options, `the end of ${this.path}`);
    const { signal } = limit;
    return await inSessions(this.#source, signal, (zk) => this.#abortIn({ zk, ...this.#settings }, signal));
  }

  async #abortIn(transaction: Transaction, signal: AbortSignal): Promise<Vote> {
    const { zk } = transaction;
    const sites = await sitesOf(transaction, signal);
    if (sites === undefined) return recorded(transaction, signal);
    try {
      for (const site of sites) {
        const seen = ballotOf(await zk.getData(site, { ...untilTheEnd, signal }));
        if ((await cast(zk, site, 'abort', seen, signal)) === 'abort') return 'abort';
      }
      return 'commit';
    } catch (error) {
      // A site has gone, so it is decided.
      if (KeeperError.is(error, 'NoNode')) return await recorded(transaction, signal);
      throw error;
    }
  }
}

function checkSites(sites: readonly string[]): void {
  checkArray(sites, 'sites are');
  if (sites.length === 0) throw new TypeError('a transaction has at least one site');
  for (const site of sites) {
    if (typeof site !== 'string' || site === '' || site.includes('/') || reserved.includes(site))
      throw new TypeError(
        `"${site}" is not a name of a site: write one that is not empty, has no slash, and is none of ${reserved.join(', ')}`,
      );
  }
  if (new Set(sites).size < sites.length) throw new TypeError(`each site votes once, and so it is named once: ${sites.join(', ')}`);
}
