/** The kinds of queues, which keep items in the same way but put them with different options. */
import type { Client } from '@tskeeper/client';
import { DelayQueue, IdQueue, PriorityQueue, Queue, ShardedQueue, type WaitOptions } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import type { QueueRules } from '../queue-checker.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { wallOffsetMs } from '../../world/virtual-clock.ts';
import { waitQueuePath } from './family-helpers.ts';

/** A queue, as one session of a process uses it. */
export interface OpenQueue {
  readonly queue: Pick<Queue, 'take' | 'tryTake' | 'claim' | 'tryClaim' | 'size'>;
  readonly putAll: (process: RecipeProcess, items: readonly string[], wait: WaitOptions) => Promise<void>;
  /** Removes all items with one id, if items have ids. */
  readonly remove?: ((id: string) => Promise<number>) | undefined;
}

export interface QueueKind extends Pick<QueueRules, 'parents' | 'isEphemeral' | 'dueMs'> {
  readonly canBeBounded: boolean;
  readonly open: (zk: Client, maxItems: number | undefined) => OpenQueue;
}

const common = { parents: [waitQueuePath], isEphemeral: false, canBeBounded: true } as const;

const plain: QueueKind = {
  ...common,
  open: (zk, maxItems) => opened(new Queue(zk, waitQueuePath, { maxItems })),
};

const ephemeral: QueueKind = {
  ...common,
  isEphemeral: true,
  open: (zk, maxItems) => opened(new Queue(zk, waitQueuePath, { maxItems, items: 'ephemeral' })),
};

const sharded: QueueKind = {
  ...common,
  parents: ['00', '01', '02'].map((shard) => `${waitQueuePath}/shard-${shard}`),
  canBeBounded: false,
  open: (zk) => opened(new ShardedQueue(zk, waitQueuePath, { shards: 3 })),
};

const priority: QueueKind = {
  ...common,
  open: (zk, maxItems) => {
    const queue = new PriorityQueue(zk, waitQueuePath, { maxItems });
    return { queue, putAll: (process, items, wait) => queue.putAll(items, { ...wait, priority: process.below(3) }) };
  },
};

const ids: QueueKind = {
  ...common,
  open: (zk, maxItems) => {
    const queue = new IdQueue(zk, waitQueuePath, { maxItems });
    return {
      queue,
      putAll: (process, items, wait) => queue.putAll(items, { ...wait, id: drawId(process) }),
      remove: (id) => queue.remove(id),
    };
  },
};

const delay: QueueKind = {
  ...common,
  dueMs: (path) => Number.parseInt(/\|(\w+)\|/.exec(path)![1]!, 16) - wallOffsetMs,
  open: (zk, maxItems) => {
    const queue = new DelayQueue(zk, waitQueuePath, { maxItems });
    return {
      queue,
      putAll: (process, items, wait) => queue.putAll(items, { ...wait, delayMs: process.below(process.isHealed ? 100 : 1500) }),
    };
  },
};

export function drawQueueKind(random: SeededRandom): QueueKind {
  return [plain, plain, plain, ephemeral, sharded, priority, ids, delay][random.below(8)]!;
}

export function drawId(process: RecipeProcess): string {
  return `order ${process.below(3)}`;
}

function opened(queue: Queue | ShardedQueue): OpenQueue {
  return { queue, putAll: (_process, items, wait) => queue.putAll(items, wait) };
}
