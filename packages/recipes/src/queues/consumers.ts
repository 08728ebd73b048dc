/**
 * The consumers that look for an item, and those that wait for one.
 *
 * On ZooKeeper's page all consumers that find the queue empty watch it, so that each item wakes all
 * of them: the herd that the page warns of. Here they queue, and only the first of them watches; a
 * consumer that finds an item at once never queues.
 */
import type { ClientView } from '@tskeeper/client';
import type { Lock } from '../locks/lock.ts';
import type { ParsedItemName } from './item-names.ts';
import type { ItemSearch, QueueShard } from './queue-shard.ts';
import { waitUntilStale } from './capacity.ts';

/** Takes or claims an item; undefined if another consumer has it. */
type TakeOrClaim<Label, Got> = (znode: QueueShard<Label>, item: ParsedItemName, search: ItemSearch) => Promise<Got | undefined>;

export class Consumers<Label> {
  readonly #zk: ClientView;
  readonly #shards: readonly QueueShard<Label>[];
  readonly #waitLock: Lock;
  /** Serves several znodes evenly. */
  #nextShard: number;

  constructor(zk: ClientView, znodes: readonly QueueShard<Label>[], line: Lock) {
    this.#zk = zk;
    this.#shards = znodes;
    this.#waitLock = line;
    // So that clients that start one after the other do not all begin with the same znode.
    this.#nextShard = Number(BigInt.asUintN(31, zk.sessionId));
  }

  /** All znodes, each time with another one first. */
  #rotatedShards(): readonly QueueShard<Label>[] {
    const at = this.#nextShard++ % this.#shards.length;
    return [...this.#shards.slice(at), ...this.#shards.slice(0, at)];
  }

  /**
   * The first item that is available now, if any. With `watches` the lists watch for later changes.
   */
  async first<Got>(takeOrClaim: TakeOrClaim<Label, Got>, signal: AbortSignal, watches = false): Promise<Got | undefined> {
    for (const znode of this.#rotatedShards()) {
      const result = await znode.first((item, search) => takeOrClaim(znode, item, search), signal, watches);
      if (result !== undefined) return result;
    }
    return undefined;
  }

  /** Queues until there is one. */
  async wait<Got>(takeOrClaim: TakeOrClaim<Label, Got>, signal: AbortSignal): Promise<Got> {
    const available = await this.first(takeOrClaim, signal);
    if (available !== undefined) return available;
    const turn = await this.#waitLock.acquire({ signal });
    try {
      // A consumer that wakes nearly always finds an item, and then needs no watch: only the second
      // look sets it.
      for (let watches = true; ; watches = !watches) {
        const result = await this.first(takeOrClaim, signal, watches);
        if (result !== undefined) return result;
        if (watches) await this.#waitForChange(signal);
      }
    } finally {
      for (const { list } of this.#shards) list.unwatch();
      // Not awaited: an error here must not cost the item. The place ends with the session at the
      // latest.
      turn.release().catch(() => undefined);
    }
  }

  /** Waits until there may be a new item, or an item is due. */
  #waitForChange(signal: AbortSignal): Promise<void> {
    const lists = this.#shards.map(({ list }) => list);
    const waitsMs = this.#shards.map(({ untilNextMs }) => untilNextMs ?? Infinity);
    return waitUntilStale(this.#zk, lists, Math.min(...waitsMs), signal);
  }
}
