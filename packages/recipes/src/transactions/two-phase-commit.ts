/**
 * All sites do it, or none. The two-phase commit of ZooKeeper's recipes page: each site votes
 * whether it can, and all do what the votes decide.
 *
 *     begin      multi: create tx, an empty tx/site for each     the coordinator, which may stop
 *     join       getData tx: what it is about                    each site
 *                getData each tx/site, with a watch              1.
 *                create tx/site/present (EPHEMERAL)              with `presence`
 *     vote       setData tx/site: `commit` or `abort`            2. with a version: written once
 *     outcome    wait for the events, getData of the changed     3. all `commit`: commit;
 *                                                                   one `abort`: abort, at once
 *     the end    multi: create tx/decision, delete tx/site       4. done what was decided
 *
 *     /app/tx-17                     what it is about
 *       ├─ berlin        commit      the vote of a site
 *       │    └─ present              ephemeral: the site is at work
 *       ├─ paris                     empty: has not voted
 *       ├─ coordinator               ephemeral: the client that counts for the others
 *       └─ decision                  `commit` or `abort`, for clients that do not see the votes
 *
 * Why all get the same outcome. A vote is written with the version of a znode without a vote, so
 * each site has one vote, forever, whichever client wrote it and whichever reads it, at any time.
 * The decision follows from the votes alone: two clients that both decide, such as a former
 * coordinator, cannot differ, so correctness depends neither on who coordinates nor on time. Any
 * other reason to decide becomes a vote first. A site that is gone does not count as one that
 * aborts: another client votes `abort` in its place, and is rejected if the site has voted `commit`
 * just before its end. A client that stops waiting does the same. (So each vote is what an instance
 * of consensus is in Gray and Lamport's "Consensus on Transaction Commit", decided by the
 * ensemble.)
 *
 * On the page each vote is an ephemeral, so that a failed site can be noticed; but then the vote of
 * a site that fails after it is gone too, and some sites count a vote that others have missed. Here
 * the presence is ephemeral, and the vote stays.
 */
import { type Acl, type ClientView, type Data, type GetDataResult, KeeperError, op } from '@tskeeper/client';
import { childPath, parentOf } from '@tskeeper/client/internal';
import { callOptionTypes, checkArray, checkArgumentCount, checkSourceAndPath, checkConstructorOptions } from '../validation.ts';
import { runAcrossSessions, isEndOfSession, mayHaveBeenApplied, type SessionSource } from '../sessions/session-source.ts';
import { Deadline } from '../waiting/deadline.ts';
import { connectionLossCodes, isUnsettled, markUnsettled, retryForever } from '../waiting/own-znode.ts';
import type { WaitOptions } from '../wait-options.ts';
import { beginningPath, decide, readDecision, reservedNames, sitesOf, type Transaction } from './decision.ts';
import { deleteIfAcknowledged } from './ending.ts';
import { createPresence, deleteOwnPresence, deleteEphemeral } from './own-ephemeral.ts';
import { Site } from './site.ts';
import { ballotOf, castVote, presencePath, type Vote } from './votes.ts';

/** How the sites of a transaction agree. All its clients use the same options. */
export interface TwoPhaseCommitOptions {
  /**
   * Which clients watch the votes. `sites`: each of them, as on the page; that needs no other
   * client, and the number of messages grows with the square of the number of sites. `coordinator`:
   * one client, which writes the decision for the others, so the number of messages grows linearly;
   * it is the first one that joins or asks for the outcome, and another one when its session has
   * ended. Default: `sites`.
   */
  readonly watchedBy?: 'sites' | 'coordinator' | undefined;
  /**
   * Whether a site counts as at work only while its session lives: one that has joined, and is gone
   * before its vote, has voted `abort`. The others still wait for a site that never joins, until a
   * client aborts. Default: false.
   */
  readonly presence?: boolean | undefined;
  /** The ACL of all znodes that are created. Default: all permissions for everyone. */
  readonly acl?: readonly Acl[] | undefined;
}

/** The options for beginning a transaction. */
export interface BeginOptions extends WaitOptions {
  /**
   * What the transaction is about, for the sites to read. Default: none; the sites learn it in
   * another way.
   */
  readonly data?: Data | undefined;
}

/** All sites do it, or none: the two-phase commit of ZooKeeper's recipes. */
export class TwoPhaseCommit {
  /** The znode of the transaction. It identifies one transaction forever, so use its name once. */
  readonly path: string;
  readonly #source: SessionSource;
  readonly #settings: Omit<Transaction, 'zk'>;

  /** Sends no request. Throws a TypeError if `source` is not a client or `path` is not a path. */
  constructor(source: SessionSource, path: string, options: TwoPhaseCommitOptions = {}) {
    checkSourceAndPath(source, path);
    checkConstructorOptions(options, 'TwoPhaseCommit', arguments.length);
    const { watchedBy = 'sites', presence = false, acl } = options;
    if (watchedBy !== 'sites' && watchedBy !== 'coordinator')
      throw new TypeError(`watchedBy must be "sites" or "coordinator", not "${String(watchedBy)}"`);
    this.path = path;
    this.#source = source;
    this.#settings = { path, watchedBy, presence, acl };
  }

  /**
   * Begins the transaction: it is created with all its sites, or not at all. After that this client
   * is no longer needed. Creates missing parents, as containers. Rejects with a TypeError for
   * invalid names of sites; with NodeExists when there is already one of this name; with a
   * RecipeError, TimedOut, and with the signal's reason, when it may have begun, which `outcome`
   * and `abort` show; with SessionExpired and the like; and with NoAuth, InvalidACL or
   * QuotaExceeded.
   */
  async begin(sites: readonly string[], options: BeginOptions = {}): Promise<void> {
    checkArgumentCount(arguments.length, 2, 'begin(sites, options)');
    checkSites(sites);
    using deadline = new Deadline(this.#source, options, `the creation of transaction ${this.path}`, callOptionTypes.begin);
    const { data = null } = options;
    const { signal } = deadline;
    await runAcrossSessions(this.#source, signal, (zk) => this.#beginInSession(zk, sites, data, signal), isUnsettled);
  }

  async #beginInSession(zk: ClientView, sites: readonly string[], data: Data, signal: AbortSignal): Promise<void> {
    const beginning = beginningPath(this.#settings);
    try {
      await this.#createTransaction(zk, sites, data, signal);
    } catch (error) {
      if (!KeeperError.is(error, 'NodeExists')) void deleteOwnPresence(zk, beginning);
      throw error;
    }
    await deleteEphemeral(zk, beginning);
  }

  /**
   * With the ephemeral of a client that does not know the outcome yet. As long as that exists the
   * transaction stays, however fast its sites are. So if the reply is lost, and there is no such
   * transaction, it has not begun, rather than ended.
   */
  async #createTransaction(zk: ClientView, sites: readonly string[], data: Data, signal: AbortSignal): Promise<void> {
    const { path, acl } = this.#settings;
    const beginning = beginningPath(this.#settings);
    const options = { ...retryForever, signal };
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
        if (isEndOfSession(error)) throw mayHaveBegun || mayHaveBeenApplied(error) ? markUnsettled(error) : error;
        if (KeeperError.is(error, ...connectionLossCodes)) mayHaveBegun = true;
        else if (KeeperError.is(error, 'NoNode')) await zk.ensurePath(parentOf(path), { mode: 'container', acl, ...options });
        else if (!mayHaveBegun || !KeeperError.is(error, 'NodeExists')) throw error;
        else if ((await this.#ownerOf(zk, beginning, signal)) === zk.sessionId) return;
        else throw error;
      }
    }
  }

  async #ownerOf(zk: ClientView, path: string, signal: AbortSignal): Promise<bigint | undefined> {
    try {
      return (await zk.exists(path, { ...retryForever, signal }))?.ephemeralOwner;
    } catch (error) {
      throw markUnsettled(error);
    }
  }

  /**
   * Joins as a site, when it learns of the transaction, or again after a crash; its vote still
   * counts. Rejects with NoNode when there is no such transaction, or no such site in it: then it
   * is not part of it, or has acknowledged the outcome. Rejects with a RecipeError, TimedOut; with
   * the signal's reason; with SessionExpired and the like.
   */
  async join(site: string, options: WaitOptions = {}): Promise<Site> {
    checkArgumentCount(arguments.length, 2, 'join(site, options)');
    checkSites([site]);
    using deadline = new Deadline(this.#source, options, `transaction ${this.path}`);
    const { signal } = deadline;
    return await runAcrossSessions(this.#source, signal, (zk) => this.#joinInSession(zk, site, signal));
  }

  async #joinInSession(zk: ClientView, site: string, signal: AbortSignal): Promise<Site> {
    const { path, presence, acl } = this.#settings;
    const transaction = { zk, ...this.#settings };
    const own = childPath(path, site);
    try {
      const [{ data }, vote] = await this.#readTransactionAndVote(zk, own, signal);
      const seen = ballotOf(vote);
      if (presence && seen.vote === undefined) await createPresence(zk, presencePath(own), acl, signal);
      return new Site(this.#source, this.#settings, own, data, seen);
    } catch (error) {
      // A site that crashed after its acknowledgement may have been the last.
      if (KeeperError.is(error, 'NoNode')) await deleteIfAcknowledged(transaction, signal);
      throw error;
    }
  }

  /** A site may learn of a transaction before its server does. */
  async #readTransactionAndVote(zk: ClientView, own: string, signal: AbortSignal): Promise<readonly [GetDataResult, GetDataResult]> {
    const { path } = this.#settings;
    const options = { ...retryForever, signal };
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
   * The decision, for a client that is not a site: the coordinator, if votes are watched by that,
   * or an observer. Rejects as `Site.outcome` does.
   */
  async outcome(options: WaitOptions = {}): Promise<Vote> {
    checkArgumentCount(arguments.length, 1, 'outcome(options)');
    using deadline = new Deadline(this.#source, options, `the outcome of ${this.path}`);
    const { signal } = deadline;
    return await runAcrossSessions(this.#source, signal, (zk) => decide({ zk, ...this.#settings }, signal));
  }

  /**
   * Ends the wait for sites that do not vote: votes `abort` in the place of one of them, and
   * resolves with the resulting decision, which is `commit` if all of them have voted so. Any
   * client may call this at any time. Rejects as `Site.outcome` does.
   */
  async abort(options: WaitOptions = {}): Promise<Vote> {
    checkArgumentCount(arguments.length, 1, 'abort(options)');
    using deadline = new Deadline(this.#source, options, `the abort of ${this.path}`);
    const { signal } = deadline;
    return await runAcrossSessions(this.#source, signal, (zk) => this.#abortInSession({ zk, ...this.#settings }, signal));
  }

  async #abortInSession(transaction: Transaction, signal: AbortSignal): Promise<Vote> {
    const { zk } = transaction;
    const sites = await sitesOf(transaction, signal);
    if (sites === undefined) return readDecision(transaction, signal);
    try {
      for (const site of sites) {
        const seen = ballotOf(await zk.getData(site, { ...retryForever, signal }));
        if ((await castVote(zk, site, 'abort', seen, signal)) === 'abort') return 'abort';
      }
      return 'commit';
    } catch (error) {
      // A site has left, so there is a decision.
      if (KeeperError.is(error, 'NoNode')) return await readDecision(transaction, signal);
      throw error;
    }
  }
}

function checkSites(sites: readonly string[]): void {
  checkArray(sites, 'sites');
  if (sites.length === 0) throw new TypeError('a transaction must have at least one site');
  for (const site of sites) {
    if (typeof site !== 'string' || site === '' || site.includes('/') || reservedNames.includes(site))
      throw new TypeError(`"${site}" is not a name of a site: use a non-empty name without a slash, and not ${reservedNames.join(', ')}`);
  }
  if (new Set(sites).size < sites.length) throw new TypeError(`the sites must have different names, got ${sites.join(', ')}`);
}
