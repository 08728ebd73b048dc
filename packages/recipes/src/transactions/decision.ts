/**
 * From the votes to the decision: `commit` when every site has voted so, `abort` as soon as one has not.
 *
 * Votes never change, so that is one and the same whoever counts them, and whenever: nobody has to be the only one who decides. The znode `decision` repeats
 * it, for those who do not watch the votes, and for those who come when a site has gone. A site goes only in a txn behind which there is the decision; hence
 * all of the sites are listed where it is not.
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

/** What everybody has to know who has to do with a transaction. */
export interface Transaction {
  readonly zk: ClientView;
  readonly path: string;
  /** Whether sites are known to be at work by an ephemeral. */
  readonly presence: boolean;
  readonly watching: 'sites' | 'coordinator';
  readonly acl: readonly Acl[] | undefined;
}

/** Names below a transaction that are no sites. */
export const reserved: readonly string[] = ['beginning', 'coordinator', 'decision'];
/** Those of them that say that somebody is there. */
export const ephemerals: readonly string[] = ['beginning', 'coordinator'];

/** The ephemeral of whoever begins it, and has not heard yet that it has begun. */
export function beginningPath({ path }: Pick<Transaction, 'path'>): string {
  return childPath(path, 'beginning');
}

/** The ephemeral of whoever counts for the others. */
export function coordinatorPath({ path }: Transaction): string {
  return childPath(path, 'coordinator');
}

/** What the votes have come to. */
export function decisionPath({ path }: Transaction): string {
  return childPath(path, 'decision');
}

/** Resolves with the decision. Rejects with NoNode when the transaction is over, or never was, and with the signal's reason. */
export function decide(transaction: Transaction, signal: AbortSignal): Promise<Vote> {
  return transaction.watching === 'sites' ? count(transaction, signal) : beTold(transaction, signal);
}

/** What each of the sites has; undefined when there is a decision, by which one has to go then. */
export async function sitesOf({ zk, path }: Transaction, signal: AbortSignal): Promise<readonly string[] | undefined> {
  const { children } = await zk.getChildren(path, { ...untilTheEnd, signal });
  if (children.includes('decision')) return undefined;
  const sites = children.filter((name) => !reserved.includes(name)).map((name) => childPath(path, name));
  if (sites.length === 0) throw new RecipeError('Lost', `${path} has neither sites nor a decision, so it is no transaction`);
  return sites;
}

/** As it stands in its znode. */
export async function recorded(transaction: Transaction, signal: AbortSignal): Promise<Vote> {
  const path = decisionPath(transaction);
  const decision = wordIn((await transaction.zk.getData(path, { ...untilTheEnd, signal })).data);
  if (decision === undefined) throw new RecipeError('Lost', `${path} says neither commit nor abort: somebody has written to it`);
  return decision;
}

/** Reads each vote with a watch, until they are enough. */
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
    limit.end(new RecipeError('Closed', 'the other votes do not matter any more'));
  }
}

/**
 * Waits for what the coordinator says, or takes its part when nobody has it: then counts, and says so. Two may do that at once, as the ephemeral by which it
 * is shared out goes with a session that may still be at work; they find the same.
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

/** Whether nobody else had it. */
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

/** In one txn with the end of the coordinator's part, so that nobody takes it once there is nothing left to do. */
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
      // It has been said already, by an answer that was lost or by another coordinator; or it is over; or somebody has taken the part away.
      void takeBack(zk, coordinatorPath(transaction));
      if (!KeeperError.is(error, 'NoNode') || error.failedIndex === 0) return;
      ops.length = 1;
    }
  }
}
