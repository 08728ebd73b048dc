/**
 * From the votes to the decision: `commit` when every site has voted so, `abort` as soon as one has
 * voted otherwise.
 *
 * Votes never change, so each client that counts them, at any time, finds the same: there need not
 * be a single one that decides. The znode `decision` repeats the decision, for clients that do not
 * watch the votes, and for those that arrive after a site has left. A site leaves only in a txn
 * after which the decision exists; hence, if the decision does not exist, all of the sites are
 * listed.
 */
import { type Acl, type ClientView, KeeperError, op } from '@tskeeper/client';
import { childPath } from '@tskeeper/client/internal';
import { RecipeError } from '../recipe-error.ts';
import { Deadline } from '../waiting/deadline.ts';
import { connectionLossCodes, retryForever } from '../waiting/own-znode.ts';
import { ChangeWatch } from './change-watch.ts';
import { deleteOwnPresence } from './own-ephemeral.ts';
import { type Vote, waitForVote, parseVote } from './votes.ts';

/** What all code for a transaction needs. */
export interface Transaction {
  readonly zk: ClientView;
  readonly path: string;
  /** Whether an ephemeral shows that a site is at work. */
  readonly presence: boolean;
  readonly watchedBy: 'sites' | 'coordinator';
  readonly acl: readonly Acl[] | undefined;
}

/** Names below a transaction that are not sites. */
export const reservedNames: readonly string[] = ['beginning', 'coordinator', 'decision'];
/** Those of them that show that a client is at work. */
export const presenceNames: readonly string[] = ['beginning', 'coordinator'];

/** The ephemeral of the client that begins the transaction, until it knows that it has begun. */
export function beginningPath({ path }: Pick<Transaction, 'path'>): string {
  return childPath(path, 'beginning');
}

/** The ephemeral of the client that counts for the others. */
export function coordinatorPath({ path }: Transaction): string {
  return childPath(path, 'coordinator');
}

/** The outcome of the votes. */
export function decisionPath({ path }: Transaction): string {
  return childPath(path, 'decision');
}

/**
 * Resolves with the decision. Rejects with NoNode when the transaction is over, or never existed,
 * and with the signal's reason.
 */
export function decide(transaction: Transaction, signal: AbortSignal): Promise<Vote> {
  return transaction.watchedBy === 'sites' ? countVotes(transaction, signal) : waitForDecision(transaction, signal);
}

/** The paths of all sites; undefined if there is a decision, which then counts. */
export async function sitesOf({ zk, path }: Transaction, signal: AbortSignal): Promise<readonly string[] | undefined> {
  const { children } = await zk.getChildren(path, { ...retryForever, signal });
  if (children.includes('decision')) return undefined;
  const sites = children.filter((name) => !reservedNames.includes(name)).map((name) => childPath(path, name));
  if (sites.length === 0) throw new RecipeError('Lost', `${path} has neither sites nor a decision, so it is not a transaction`);
  return sites;
}

/** The decision as its znode has it. */
export async function readDecision(transaction: Transaction, signal: AbortSignal): Promise<Vote> {
  const path = decisionPath(transaction);
  const decision = parseVote((await transaction.zk.getData(path, { ...retryForever, signal })).data);
  if (decision === undefined) throw new RecipeError('Lost', `${path} contains neither commit nor abort: another client has written to it`);
  return decision;
}

/** Reads each vote with a watch, until the outcome is certain. */
async function countVotes(transaction: Transaction, signal: AbortSignal): Promise<Vote> {
  const { zk, presence } = transaction;
  const sites = await sitesOf(transaction, signal);
  if (sites === undefined) return readDecision(transaction, signal);
  using deadline = new Deadline(zk, { signal }, `the votes of ${transaction.path}`);
  try {
    return await new Promise<Vote>((resolve, reject) => {
      let missing = sites.length;
      const add = (vote: Vote) => {
        missing--;
        if (vote === 'abort' || missing === 0) resolve(vote);
      };
      for (const site of sites) waitForVote(zk, site, presence, deadline.signal).then(add, reject);
    });
  } catch (error) {
    if (KeeperError.is(error, 'NoNode')) return readDecision(transaction, signal);
    throw error;
  } finally {
    deadline.abort(new RecipeError('Closed', 'the other votes no longer matter'));
  }
}

/**
 * Waits for the coordinator's decision, or becomes the coordinator if there is none: then counts
 * the votes, and writes the decision. Two clients may do so at once, as the coordinator's ephemeral
 * ends with its session, and the client may still be at work; they find the same.
 */
async function waitForDecision(transaction: Transaction, signal: AbortSignal): Promise<Vote> {
  const { zk } = transaction;
  for (;;) {
    using decided = new ChangeWatch(zk, decisionPath(transaction));
    using gone = new ChangeWatch(zk, coordinatorPath(transaction));
    const options = { ...retryForever, signal };
    if ((await zk.exists(decisionPath(transaction), { ...options, watch: decided.listener })) !== null)
      return readDecision(transaction, signal);
    if (await tryBecomeCoordinator(transaction, signal)) return coordinate(transaction, signal);
    if ((await zk.exists(coordinatorPath(transaction), { ...options, watch: gone.listener })) === null) continue;
    await Promise.race([decided.next(signal), gone.next(signal)]);
  }
}

/** Whether this client has become the coordinator. */
async function tryBecomeCoordinator(transaction: Transaction, signal: AbortSignal): Promise<boolean> {
  const { zk, acl } = transaction;
  try {
    await zk.create(coordinatorPath(transaction), null, { mode: 'ephemeral', acl, idempotent: true, ...retryForever, signal });
    return true;
  } catch (error) {
    if (KeeperError.is(error, 'NodeExists')) return false;
    void deleteOwnPresence(zk, coordinatorPath(transaction));
    throw error;
  }
}

async function coordinate(transaction: Transaction, signal: AbortSignal): Promise<Vote> {
  const { zk } = transaction;
  try {
    const decision = await countVotes(transaction, signal);
    await recordDecision(transaction, decision, signal);
    return decision;
  } catch (error) {
    void deleteOwnPresence(zk, coordinatorPath(transaction));
    throw error;
  }
}

/**
 * In one txn with the deletion of the coordinator's ephemeral, so that no client becomes the
 * coordinator when nothing is left to do.
 */
async function recordDecision(transaction: Transaction, decision: Vote, signal: AbortSignal): Promise<void> {
  const { zk, acl } = transaction;
  const ops = [op.create(decisionPath(transaction), decision, { acl }), op.delete(coordinatorPath(transaction))];
  for (;;) {
    try {
      await zk.multi(ops, { ...retryForever, signal });
      return;
    } catch (error) {
      if (KeeperError.is(error, ...connectionLossCodes)) continue;
      if (!KeeperError.is(error, 'NodeExists', 'NoNode')) throw error;
      // The decision exists already, by a write whose reply was lost or by another coordinator; or
      // the transaction is over; or the coordinator's ephemeral was deleted by another client.
      void deleteOwnPresence(zk, coordinatorPath(transaction));
      if (!KeeperError.is(error, 'NoNode') || error.failedIndex === 0) return;
      ops.length = 1;
    }
  }
}
