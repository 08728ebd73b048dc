/** The code in docs/guides/recipes/transactions.md. */
import { type Client, KeeperError } from '@tskeeper/client';
import { RecipeError, TwoPhaseCommit, type Vote } from '@tskeeper/recipes';

const utf8 = new TextDecoder();

/**
 * Begins a transfer; the sites read the order from its data. The calling process may end after
 * this.
 */
export async function transfer(zk: Client, id: string, order: string): Promise<void> {
  await new TwoPhaseCommit(zk, `/transfers/${id}`, { presence: true }).begin(['berlin', 'paris'], { data: order });
}

/** What a site keeps on its own disk. */
export interface Books {
  /**
   * Returns whether the order can be carried out. If so, the site records it, and must be able to
   * carry it out until it is finished.
   */
  prepare(id: string, order: string): Promise<boolean>;
  /** Carries the order out, or undoes what was prepared. May be called twice. */
  finish(id: string, outcome: Vote): Promise<void>;
  /** The orders that were prepared and not finished. */
  unfinished(): Promise<readonly string[]>;
}

/**
 * What each site does, also after a crash in the middle of a transfer: a vote that was cast stays
 * valid.
 */
export async function takePart(zk: Client, id: string, name: string, books: Books): Promise<Vote> {
  await using site = await new TwoPhaseCommit(zk, `/transfers/${id}`, { presence: true }).join(name);
  const isPrepared = await books.prepare(id, utf8.decode(site.data ?? undefined));
  await site.vote(isPrepared ? 'commit' : 'abort');
  const outcome = await site.outcome();
  await books.finish(id, outcome);
  await site.acknowledge();
  return outcome;
}

/** What each site does first when it starts. */
export async function recover(zk: Client, name: string, books: Books): Promise<void> {
  for (const id of await books.unfinished()) {
    try {
      await takePart(zk, id, name, books);
    } catch (error) {
      if (!KeeperError.is(error, 'NoNode')) throw error;
      // The transaction stays until this site has acknowledged it, which happens after `finish`. So it
      // never began.
      await books.finish(id, 'abort');
    }
  }
}

/** Waits for a while, then aborts. */
export async function settle(zk: Client, id: string, patienceMs: number): Promise<Vote> {
  const transaction = new TwoPhaseCommit(zk, `/transfers/${id}`, { presence: true });
  try {
    return await transaction.outcome({ timeoutMs: patienceMs });
  } catch (error) {
    if (!(error instanceof RecipeError) || error.code !== 'TimedOut') throw error;
    return transaction.abort();
  }
}

/** One of many sites: one of them watches the votes and publishes the decision. */
export async function agree(zk: Client, path: string, name: string, vote: Vote): Promise<Vote> {
  await using site = await new TwoPhaseCommit(zk, path, { watchedBy: 'coordinator' }).join(name);
  await site.vote(vote);
  const outcome = await site.outcome();
  await site.acknowledge();
  return outcome;
}
