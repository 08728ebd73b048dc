/** Our queues with the verbs of python/kazoo_peer.py and java/CuratorQueues.java. */
import type { Client, Data } from '@tskeeper/client';
import {
  type ClaimedItem,
  curatorItemsCodec,
  DelayQueue,
  IdQueue,
  type ItemQueueOptions,
  PriorityQueue,
  Queue,
  type QueueItem,
} from '@tskeeper/recipes';

import { patience, textOf, type Verbs } from './verbs.ts';

export function queueVerbs(queue: Queue | PriorityQueue, put: (value: string, priority?: string) => Promise<void>): Verbs {
  return {
    async put(value, priority) {
      await put(value, priority);
      return '';
    },
    async take() {
      return textOf((await queue.take(patience)).data);
    },
    async poll() {
      const item = await queue.tryTake(patience);
      return item === undefined ? 'nothing' : textOf(item.data);
    },
  };
}

export function claimVerbs(queue: PriorityQueue): Verbs {
  let item: ClaimedItem | undefined;
  return {
    async put(value, priority = '100') {
      await queue.put(value, { priority: Number(priority) });
      return '';
    },
    async take() {
      item = await queue.claim(patience);
      return textOf(item.data);
    },
    async consume() {
      await item?.done();
      return 'yes';
    },
    async release() {
      await item?.release();
      return 'yes';
    },
  };
}

type Consumed = Pick<Queue, 'take' | 'tryTake' | 'claim' | 'tryClaim' | 'process' | 'close'>;
type Putter = (data: Data, label: string) => Promise<void>;

/** Our counterpart of each of Curator's queues, and how it puts an item with a label. */
function queueInOrder(zk: Client, path: string, order: string, options: ItemQueueOptions): readonly [Consumed, Putter] {
  switch (order) {
    case 'plain': {
      const queue = new Queue(zk, path, options);
      return [queue, (data) => queue.put(data, patience)];
    }
    case 'id': {
      const queue = new IdQueue(zk, path, options);
      return [queue, (data, id) => queue.put(data, { id, ...patience })];
    }
    case 'priority': {
      const queue = new PriorityQueue(zk, path, { ...options, naming: 'curator' });
      return [queue, (data, priority) => queue.put(data, { priority: Number(priority), ...patience })];
    }
    default: {
      const queue = new DelayQueue(zk, path, options);
      return [queue, (data, dueMs) => queue.put(data, { dueMs: Number(dueMs), ...patience })];
    }
  }
}

/**
 * `consumes`: the path of Curator's locks, with which items are claimed; any other value means that
 * they are taken. Several items of one znode arrive together.
 */
export function curatorQueueVerbs(zk: Client, path: string, order: string, consumes: string): Verbs {
  const locks = consumes.startsWith('/') ? consumes : undefined;
  const [queue, put] = queueInOrder(zk, path, order, { takenPath: locks });
  const shown = ({ data }: Pick<QueueItem, 'data'>) => curatorItemsCodec.decode(data).map(textOf).join('+');
  const itemsOf = (...items: string[]) => curatorItemsCodec.encode(items);
  return {
    async put(value, label = '') {
      await put(itemsOf(value), label);
      return '';
    },
    async put_all(...values) {
      await put(itemsOf(...values), '');
      return '';
    },
    async take() {
      return locks === undefined ? shown(await queue.take(patience)) : await queue.process(shown, patience);
    },
    async poll() {
      if (locks !== undefined) {
        const claimed = await queue.tryClaim(patience);
        await claimed?.done();
        return claimed === undefined ? 'nothing' : shown(claimed);
      }
      const item = await queue.tryTake(patience);
      return item === undefined ? 'nothing' : shown(item);
    },
    /** For peers that are killed while they work on an item. */
    async claim() {
      return shown(await queue.claim(patience));
    },
    async remove(id) {
      return String(await new IdQueue(zk, path).remove(id, patience));
    },
    async close() {
      await queue.close();
      return '';
    },
  };
}
