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
import { Limit } from '../waiting/limit.ts';
import { untilTheEnd } from '../waiting/next-event.ts';
import { ChangeWatch } from './change-watch.ts';
import { takeBack } from './own-ephemeral.ts';
import { type Vote, voteOf, wordIn } from './votes.ts';
import { lossCodes } from '../waiting/unanswered.ts';

/** What all code for a transaction needs. */
export interface Transaction {
  readonly zk: ClientView;
  readonly path: string;
  /** Whether an ephemeral shows that a site is at work. */
  readonly presence: boolean;
  readonly watching: 'sites' | 'coordinator';
  readonly acl: readonly Acl[] | undefined;
}

/** Names below a transaction that are not sites. */
export const reserved: readonly string[] = ['beginning', 'coordinator', 'decision'];
/** Those of them that show that a client is at work. */
export const ephemerals: readonly string[] = ['beginning', 'coordinator'];

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
  return transaction.watching === 'sites' ? count(transaction, signal) : beTold(transaction, signal);
}

/** The paths of all sites; undefined if there is a decision, which then counts. */
export async function sitesOf({ zk, path }: Transaction, signal: AbortSignal): Promise<readonly string[] | undefined> {
  const { children } = await zk.getChildren(path, { ...untilTheEnd, signal });
  if (children.includes('decision')) return undefined;
  const sites = children.filter((name) => !reserved.includes(name)).map((name) => childPath(path, name));
  if (sites.length === 0) throw new RecipeError('Lost', `${path} has neither sites nor a decision, so it is not a transaction`);
  return sites;
}

/** The decision as its znode has it. */
export async function recorded(transaction: Transaction, signal: AbortSignal): Promise<Vote> {
  const path = decisionPath(transaction);
  const decision = wordIn((await transaction.zk.getData(path, { ...untilTheEnd, signal })).data);
  if (decision === undefined) throw new RecipeError('Lost', `${path} contains neither commit nor abort: another client has written to it`);
  return decision;
}

/** Reads each vote with a watch, until the outcome is certain. */
async function count(transaction: Transaction, signal: AbortSignal): Promise<Vote> {
  const { zk, presence } = transaction;
  const sites = await sitesOf(transaction, signal);
  if (sites === undefined) return recorded(transaction, signal);
  using limit = new Limit(zk, { signal }, `the votes of ${transaction.path}`);
  try {
    return await new Promise<Vote>((resolve, reject) => {
      let missing = sites.length;
      const add = (vote: Vote) => {
        missing--;
        if (vote === 'abort' || missing === 0) resolve(vote);
      };
      for (const site of sites) voteOf(zk, site, presence, limit.signal).then(add, reject);
    });
  } catch (error) {
    if (KeeperError.is(error, 'NoNode')) return recorded(transaction, signal);
    throw error;
  } finally {
    limit.end(new RecipeError('Closed', 'the other votes no longer matter'));
  }
}

/**
 * Waits for the coordinator's decision, or becomes the coordinator if there is none: then counts
 * the votes, and writes the decision. Two clients may do so at once, as the coordinator's ephemeral
 * ends with its session, and the client may still be at work; they find the same.
 */
async function beTold(transaction: Transaction, signal: AbortSignal): Promise<Vote> {
  const { zk } = transaction;
  for (;;) {
    using decided = new ChangeWatch(zk, decisionPath(transaction));
    using gone = new ChangeWatch(zk, coordinatorPath(transaction));
    const options = { ...untilTheEnd, signal };
    if ((await zk.exists(decisionPath(transaction), { ...options, watch: decided.listener })) !== null)
      return recorded(transaction, signal);
    if (await takePart(transaction, signal)) return coordinate(transaction, signal);
    if ((await zk.exists(coordinatorPath(transaction), { ...options, watch: gone.listener })) === null) continue;
    await Promise.race([decided.next(signal), gone.next(signal)]);
  }
}

/** Whether this client has become the coordinator. */
async function takePart(transaction: Transaction, signal: AbortSignal): Promise<boolean> {
  const { zk, acl } = transaction;
  try {
    await zk.create(coordinatorPath(transaction), null, { mode: 'ephemeral', acl, idempotent: true, ...untilTheEnd, signal });
    return true;
  } catch (error) {
    if (KeeperError.is(error, 'NodeExists')) return false;
    void takeBack(zk, coordinatorPath(transaction));
    throw error;
  }
}

async function coordinate(transaction: Transaction, signal: AbortSignal): Promise<Vote> {
  const { zk } = transaction;
  try {
    const decision = await count(transaction, signal);
    await record(transaction, decision, signal);
    return decision;
  } catch (error) {
    void takeBack(zk, coordinatorPath(transaction));
    throw error;
  }
}

/**
 * In one txn with the deletion of the coordinator's ephemeral, so that no client becomes the
 * coordinator when nothing is left to do.
 */
async function record(transaction: Transaction, decision: Vote, signal: AbortSignal): Promise<void> {
  const { zk, acl } = transaction;
  const ops = [op.create(decisionPath(transaction), decision, { acl }), op.delete(coordinatorPath(transaction))];
  for (;;) {
    try {
      await zk.multi(ops, { ...untilTheEnd, signal });
      return;
    } catch (error) {
      if (KeeperError.is(error, ...lossCodes)) continue;
      if (!KeeperError.is(error, 'NodeExists', 'NoNode')) throw error;
      // The decision exists already, by a write whose reply was lost or by another coordinator; or
      // the transaction is over; or the coordinator's ephemeral was deleted by another client.
      void takeBack(zk, coordinatorPath(transaction));
      if (!KeeperError.is(error, 'NoNode') || error.failedIndex === 0) return;
      ops.length = 1;
    }
  }
}
