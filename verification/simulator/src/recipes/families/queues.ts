/**
 * One queue, of any kind: processes put, take and claim, and an operator deletes claims; the data
 * of every item are unique.
 */
import { type Client, KeeperError, op } from '@tskeeper/client';
import { type ClaimedItem, type QueueItem, RecipeError } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Evidence, Family, FamilyRun } from '../family.ts';
import { QueueChecker, type Removal } from '../queue-checker.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { maybeFreeze, drawWaitOptions } from './work-under-hold.ts';
import { deleteAsOperator, drawSeedZnodes, waitQueuePath, childPaths, storePath } from './family-helpers.ts';
import { drawId, drawQueueKind, type OpenQueue, type QueueKind } from './queue-kinds.ts';

export const queues: Family = {
  description: 'processes put items into a queue, take some, and work on others until they are done',
  marks: [
    'an item was put',
    'an item was taken',
    'an item was acknowledged',
    'an item was released',
    'an item was delivered to a second consumer',
    'an acknowledgement came too late',
    'nothing was available at the first try',
    'a claim was taken away by hand',
    'a place in line was taken away by hand',
    'a bounded queue was full',
    'items were removed by their id',
    'a delayed item was put',
    'an item was put into a shard',
    'a write had an unknown outcome',
    'gave up: TimedOut',
  ],
  drawRun: (random) => new QueueRun(random),
};

class QueueRun implements FamilyRun {
  readonly processes: number;
  readonly pauseMsMax: number;
  readonly seedZnodes: FamilyRun['seedZnodes'];
  /** An item's due time refers to the clock of the leader. */
  readonly wallClocksAgree: boolean;
  readonly #kind: QueueKind;
  readonly #checker: QueueChecker;
  readonly #maxItems: number | undefined;
  /** Percentage of items that are claimed rather than taken. */
  readonly #claimPercent: number;
  readonly #queues = new WeakMap<Client, OpenQueue>();
  #puts = 0;

  constructor(random: SeededRandom) {
    this.processes = 2 + random.below(4);
    // Sometimes without a pause: then events arrive while a consumer reads.
    this.pauseMsMax = random.below(3) === 0 ? 1 + random.below(10) : 1 + random.below(300);
    this.seedZnodes = drawSeedZnodes(random);
    this.#kind = drawQueueKind(random);
    const { parents, isEphemeral, dueMs, canBeBounded } = this.#kind;
    this.wallClocksAgree = dueMs !== undefined;
    this.#maxItems = canBeBounded && random.below(2) === 0 ? 1 + random.below(3) : undefined;
    this.#claimPercent = 20 + random.below(60);
    this.#checker = new QueueChecker({ path: waitQueuePath, store: storePath, maxItems: this.#maxItems, parents, isEphemeral, dueMs });
  }

  prepare(zk: Client): Promise<unknown> {
    return zk.ensurePath(storePath);
  }

  async turn(process: RecipeProcess, zk: Client): Promise<boolean> {
    const queue = this.#queueOf(zk);
    // A process that puts an item can take one, and room is made.
    if (process.isHealed) {
      await Promise.all([this.#put(process, zk, queue), this.#consumeOne(process, zk, queue)]);
      return true;
    }
    maybeFreeze(process, 16);
    if (queue.remove !== undefined && process.below(4) === 0) await this.#remove(process, zk, queue, queue.remove);
    else if (process.below(2) === 0) await this.#put(process, zk, queue);
    else await this.#consume(process, zk, queue);
    return true;
  }

  /** One queue per session: it remembers its list and its marks. */
  #queueOf(zk: Client): OpenQueue {
    let queue = this.#queues.get(zk);
    if (queue === undefined) {
      queue = this.#kind.open(zk, this.#maxItems);
      this.#queues.set(zk, queue);
    }
    return queue;
  }

  async #put(process: RecipeProcess, zk: Client, { queue, putAll }: OpenQueue): Promise<void> {
    const items = Array.from({ length: this.#maxItems === undefined && process.below(4) === 0 ? 3 : 1 }, () => `item-${++this.#puts}`);
    const put = this.#checker.beginCall('put', process.name, zk.sessionId, items);
    // A process that begins before the healing only puts, so not all may wait for room forever.
    const wait = waitOf(process);
    if (this.#maxItems !== undefined && (await queue.size(wait)) >= this.#maxItems) process.hitMark('a bounded queue was full');
    await recordOutcome(process, put, putAll(process, items, wait));
    process.hitMark('an item was put');
    if (this.#kind.dueMs !== undefined) process.hitMark('a delayed item was put');
    if (!this.#kind.canBeBounded) process.hitMark('an item was put into a shard');
  }

  /**
   * After the healing, processes that have put an item wait for one: removed items are replaced.
   */
  async #remove(process: RecipeProcess, zk: Client, queue: OpenQueue, remove: NonNullable<OpenQueue['remove']>): Promise<void> {
    const removal: Removal = {
      process: process.name,
      session: zk.sessionId,
      id: drawId(process),
      fromZxid: zk.lastZxid,
      reported: undefined,
    };
    this.#checker.removals.push(removal);
    const count = await remove(removal.id);
    removal.reported = { count, toZxid: zk.lastZxid };
    if (count > 0) process.hitMark('items were removed by their id');
    if (process.isHealed) for (let made = count; made > 0; made--) await this.#put(process, zk, queue);
  }

  /** Repeats if its claim was deleted during the healing: producers wait for the room. */
  async #consumeOne(process: RecipeProcess, zk: Client, queue: OpenQueue): Promise<void> {
    while (!(await this.#consume(process, zk, queue)));
  }

  /** Resolves with whether an item was consumed. */
  async #consume(process: RecipeProcess, zk: Client, { queue }: OpenQueue): Promise<boolean> {
    if (process.below(100) < this.#claimPercent) return await this.#work(process, zk, queue);
    return await this.#take(process, zk, queue);
  }

  async #take(process: RecipeProcess, zk: Client, queue: OpenQueue['queue']): Promise<boolean> {
    const take = this.#checker.beginCall('take', process.name, zk.sessionId, []);
    const isTry = !process.isHealed && process.below(3) === 0;
    const item = await recordOutcome(process, take, isTry ? queue.tryTake() : queue.take(waitOf(process)));
    if (item === undefined) {
      process.hitMark('nothing was available at the first try');
      return false;
    }
    take.items = [textOf(item)];
    process.hitMark('an item was taken');
    return true;
  }

  async #work(process: RecipeProcess, zk: Client, queue: OpenQueue['queue']): Promise<boolean> {
    const isTry = !process.isHealed && process.below(4) === 0;
    const item = isTry ? await queue.tryClaim() : await queue.claim(waitOf(process));
    if (item === undefined) {
      process.hitMark('nothing was available at the first try');
      return false;
    }
    try {
      if (item.attempt > 1) process.hitMark('an item was delivered to a second consumer');
      await process.sleep(process.below(process.below(4) === 0 && !process.isHealed ? 3000 : 150));
      // A consumer that fails.
      if (!process.isHealed && process.below(5) === 0) {
        process.hitMark('an item was released');
        return false;
      }
      return await this.#finish(process, zk, item);
    } finally {
      await item.release();
    }
  }

  /** Also if the claim is lost, in which case it must be refused. */
  async #finish(process: RecipeProcess, zk: Client, item: ClaimedItem): Promise<boolean> {
    const result = `${textOf(item)} by ${process.name} at attempt ${item.attempt}`;
    const done = this.#checker.beginCall('acknowledgement', process.name, zk.sessionId, [result]);
    try {
      await recordOutcome(process, done, item.acknowledge([op.create(`${storePath}/r-`, result, { mode: 'persistentSequential' })]));
      process.hitMark('an item was acknowledged');
      return true;
    } catch (error) {
      if (!(error instanceof RecipeError && error.code === 'Lost')) throw error;
      process.hitMark('an acknowledgement came too late');
      return false;
    }
  }

  async operatorAction(operator: RecipeProcess, zk: Client): Promise<void> {
    const places = ['producers', 'consumers'].map((who) => `${waitQueuePath}-aside/${who}`);
    const claims = this.#claimsPaths;
    const isClaim = operator.below(2) === 0;
    const from = isClaim ? claims : places;
    const victims = await childPaths(zk, from[operator.below(from.length)]!);
    const victim = victims[operator.below(3)];
    if (victim === undefined) return;
    operator.hitMark(isClaim ? 'a claim was taken away by hand' : 'a place in line was taken away by hand');
    await deleteAsOperator(zk, victim);
  }

  get #claimsPaths(): readonly string[] {
    return this.#kind.parents.map((parent) => `${waitQueuePath}-aside/claims${parent.slice(waitQueuePath.length)}`);
  }

  async leftovers(zk: Client): Promise<readonly string[]> {
    const lines = ['consumers', 'producers'].map((who) => `${waitQueuePath}-aside/${who}`);
    return (await Promise.all([...this.#claimsPaths, ...lines].map((parent) => childPaths(zk, parent)))).flat();
  }

  check({ history }: Evidence): readonly string[] {
    return this.#checker.check(history);
  }
}

function textOf({ data }: QueueItem): string {
  return new TextDecoder().decode(data ?? undefined);
}

/** After the healing, waits until the program ends. */
function waitOf(process: RecipeProcess): { timeoutMs?: number; signal?: AbortSignal } {
  if (process.isHealed) return { signal: process.stopping };
  const wait = drawWaitOptions(process);
  // Waiting for an empty queue to the end of the run would be useless.
  return wait.timeoutMs === undefined && wait.signal === undefined ? { timeoutMs: 4000 } : wait;
}

/** Records the outcome of a call. */
async function recordOutcome<Result>(process: RecipeProcess, write: { state: string }, call: Promise<Result>): Promise<Result> {
  try {
    const result = await call;
    write.state = 'carried out';
    return result;
  } catch (error) {
    if (KeeperError.is(error) && error.outcome === 'unknown') process.hitMark('a write had an unknown outcome');
    else write.state = 'not carried out';
    throw error;
  }
}
