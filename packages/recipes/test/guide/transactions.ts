/** What docs/guides/recipes/transactions.md shows. */
import { type Client, KeeperError } from '@tskeeper/client';
import { RecipeError, TwoPhaseCommit, type Vote } from '@tskeeper/recipes';

const utf8 = new TextDecoder();

/** Begins a transfer, of which the sites read what is to be done. Whoever calls this is not needed any more. */
export async function transfer(zk: Client, id: string, order: string): Promise<void> {
  await new TwoPhaseCommit(zk, `/transfers/${id}`, { presence: true }).begin(['berlin', 'paris'], { data: order });
}

/** What a site has on a disk of its own. */
export interface Books {
  /** Whether the order can be carried out. If so that is kept, and has to stay so, until it is finished. */
  prepare(id: string, order: string): Promise<boolean>;
  /** Does the order, or undoes what was prepared. May be called twice. */
  finish(id: string, outcome: Vote): Promise<void>;
  /** What was prepared, and not finished. */
  unfinished(): Promise<readonly string[]>;
}

/** What each site does, also for a transfer that it was at when it crashed: a vote that it has cast stands. */
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
      // It stays until this site has acknowledged it, and that comes behind `finish`. So it never began.
      await books.finish(id, 'abort');
    }
  }
}

/** Waits for a while, and then for nobody any more. */
export async function settle(zk: Client, id: string, patienceMs: number): Promise<Vote> {
  const transaction = new TwoPhaseCommit(zk, `/transfers/${id}`, { presence: true });
  try {
    return await transaction.outcome({ timeoutMs: patienceMs });
  } catch (error) {
    if (!(error instanceof RecipeError) || error.code !== 'TimedOut') throw error;
    return transaction.abort();
  }
}

/** One of many sites: the votes are watched by one of them, who tells the others. */
export async function agree(zk: Client, path: string, name: string, vote: Vote): Promise<Vote> {
  await using site = await new TwoPhaseCommit(zk, path, { watching: 'coordinator' }).join(name);
  await site.vote(vote);
  const outcome = await site.outcome();
  await site.acknowledge();
  return outcome;
}
