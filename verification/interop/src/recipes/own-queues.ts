/** Our queues with the verbs of python/kazoo_peer.py and java/CuratorQueues.java. */
import type { Client, Data } from '@tskeeper/client';
import {
  type ClaimedItem,
  curatorItemsCodec,
  DelayQueue,
  IdQueue,
  type BaseQueueOptions,
  PriorityQueue,
  Queue,
  type QueueItem,
} from '@tskeeper/recipes';

import { callOptions, textOf, type Verbs } from './verbs.ts';

export function queueVerbs(queue: Queue | PriorityQueue, put: (value: string, priority?: string) => Promise<void>): Verbs {
  return {
    async put(value, priority) {
      await put(value, priority);
      return '';
    },
    async take() {
      return textOf((await queue.take(callOptions)).data);
    },
    async poll() {
      const item = await queue.tryTake(callOptions);
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
      item = await queue.claim(callOptions);
      return textOf(item.data);
    },
    async consume() {
      await item?.acknowledge();
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
function queueInOrder(zk: Client, path: string, order: string, options: BaseQueueOptions): readonly [Consumed, Putter] {
  switch (order) {
    case 'plain': {
      const queue = new Queue(zk, path, options);
      return [queue, (data) => queue.put(data, callOptions)];
    }
    case 'id': {
      const queue = new IdQueue(zk, path, options);
      return [queue, (data, id) => queue.put(data, { id, ...callOptions })];
    }
    case 'priority': {
      const queue = new PriorityQueue(zk, path, { ...options, naming: 'curator' });
      return [queue, (data, priority) => queue.put(data, { priority: Number(priority), ...callOptions })];
    }
    default: {
      const queue = new DelayQueue(zk, path, options);
      return [queue, (data, dueMs) => queue.put(data, { dueAtMs: Number(dueMs), ...callOptions })];
    }
  }
}

/**
 * `consumes`: the path of Curator's locks, with which items are claimed; any other value means that
 * they are taken. Several items of one znode arrive together.
 */
export function curatorQueueVerbs(zk: Client, path: string, order: string, consumes: string): Verbs {
  const locks = consumes.startsWith('/') ? consumes : undefined;
  const [queue, put] = queueInOrder(zk, path, order, { claimsPath: locks });
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
      return locks === undefined ? shown(await queue.take(callOptions)) : await queue.process(shown, callOptions);
    },
    async poll() {
      if (locks !== undefined) {
        const claimed = await queue.tryClaim(callOptions);
        await claimed?.acknowledge();
        return claimed === undefined ? 'nothing' : shown(claimed);
      }
      const item = await queue.tryTake(callOptions);
      return item === undefined ? 'nothing' : shown(item);
    },
    /** For peers that are killed while they work on an item. */
    async claim() {
      return shown(await queue.claim(callOptions));
    },
    async remove(id) {
      return String(await new IdQueue(zk, path).remove(id, callOptions));
    },
    async close() {
      await queue.close();
      return '';
    },
  };
}
