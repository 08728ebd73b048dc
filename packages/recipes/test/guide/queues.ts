/** The code in docs/guides/recipes/queues.md. */
import { type Client, KeeperError, op } from '@tskeeper/client';
import {
  type ClaimedItem,
  curatorItemsCodec,
  DelayQueue,
  IdQueue,
  PriorityQueue,
  Queue,
  type QueueItem,
  RecipeError,
  type Sessions,
} from '@tskeeper/recipes';

const utf8 = new TextDecoder();
const textOf = ({ data }: QueueItem): string => utf8.decode(data ?? undefined);

/** Creates a queue object once, and uses it for all puts. */
export async function announce(source: Client | Sessions, news: readonly string[]): Promise<void> {
  await using queue = new Queue(source, '/news', { maxItems: 1000 });
  for (const each of news) await queue.put(each, { timeoutMs: 10_000 });
}

/** Receives each item at most once: if this process dies, the item that it has taken is lost. */
export async function listen(source: Client | Sessions, tell: (text: string) => void, signal: AbortSignal): Promise<void> {
  await using queue = new Queue(source, '/news');
  for await (const item of queue.items({ signal })) tell(textOf(item));
}

/**
 * Processes each item at least once. An item that has failed three times is moved to `/failed` in the
 * txn that acknowledges it.
 */
export async function work(
  sessions: Sessions,
  job: (text: string, signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  await using queue = new Queue(sessions, '/jobs');
  await sessions.client.ensurePath('/failed', { retry: true });
  while (!signal.aborted) {
    await using item = await queue.claim({ signal });
    const isDone = await job(textOf(item), item.signal).then(
      () => true,
      () => false,
    );
    if (!isDone && item.attempt < 3) continue;
    const aside = isDone ? [] : [op.create('/failed/job-', item.data, { mode: 'persistentSequential' })];
    await item.acknowledge(aside).catch((error: unknown) => {
      // The claim is lost, so another worker gets the item. Or the session ended before the reply
      // arrived: the item is done, or another worker gets it.
      const isLost = error instanceof RecipeError && error.code === 'Lost';
      if (!isLost && !KeeperError.is(error, 'SessionExpired', 'ConnectionLoss')) throw error;
    });
  }
}

/** Counts each item exactly once: the txn that acknowledges the item also writes the result. */
export async function count(zk: Client, item: ClaimedItem): Promise<void> {
  const { data, stat } = await zk.getData('/total');
  const total = Number(utf8.decode(data ?? undefined)) + Number(textOf(item));
  await item.acknowledge([op.setData('/total', String(total), { version: stat.version })]);
}

/** Urgent items are first. */
export async function report(source: Client | Sessions, trouble: string, isUrgent: boolean): Promise<void> {
  await using queue = new PriorityQueue(source, '/troubles');
  await queue.put(trouble, { priority: isUrgent ? 0 : 50 });
}

/** Puts an item that consumers can take a minute later. */
export async function remind(source: Client | Sessions, order: string): Promise<void> {
  await using later = new DelayQueue(source, '/reminders');
  await later.put(order, { delayMs: 60_000 });
}

/** Removes items that no consumer works on yet. */
export async function cancel(source: Client | Sessions, order: string): Promise<number> {
  await using orders = new IdQueue(source, '/orders');
  return await orders.remove(order);
}

/** Lists the items, and marks those in process. */
export async function shows(source: Client | Sessions, path: string): Promise<string[]> {
  await using queue = new Queue(source, path);
  return (await queue.contents()).map(({ name, isClaimed }) => (isClaimed ? `${name} (in process)` : name));
}

/**
 * Shares a queue with Curator's DistributedQueue, whose consumers lock their items below
 * `/mail-locks`.
 */
export async function relay(source: Client | Sessions, letter: string, deliver: (letter: string) => Promise<void>): Promise<void> {
  await using queue = new Queue(source, '/mail', { claimsPath: '/mail-locks' });
  await queue.put(curatorItemsCodec.encode([letter]));
  await queue.process(async ({ data }) => {
    for (const each of curatorItemsCodec.decode(data)) await deliver(utf8.decode(each));
  });
}
