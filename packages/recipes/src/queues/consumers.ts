/**
 * The consumers that look for an item, and those that wait for one.
 *
 * On ZooKeeper's page all consumers that find the queue empty watch it, so that each item wakes all
 * of them: the herd that the page warns of. Here they queue, and only the first of them watches; a
 * consumer that finds an item at once never queues.
 */
import type { ClientView } from '@tskeeper/client';
import type { Lock } from '../locks/lock.ts';
import type { ItemName } from './item-names.ts';
import type { Look, QueueZnode } from './queue-znode.ts';
import { outdated } from './room.ts';

/** Takes or claims an item; undefined if another consumer has it. */
type Get<Label, Got> = (znode: QueueZnode<Label>, item: ItemName, look: Look) => Promise<Got | undefined>;

export class Consumers<Label> {
  readonly #zk: ClientView;
  readonly #znodes: readonly QueueZnode<Label>[];
  readonly #line: Lock;
  /** Serves several znodes evenly. */
  #round: number;

  constructor(zk: ClientView, znodes: readonly QueueZnode<Label>[], line: Lock) {
    this.#zk = zk;
    this.#znodes = znodes;
    this.#line = line;
    // So that clients that start one after the other do not all begin with the same znode.
    this.#round = Number(BigInt.asUintN(31, zk.sessionId));
  }

  /** All znodes, each time with another one first. */
  #inTurn(): readonly QueueZnode<Label>[] {
    const at = this.#round++ % this.#znodes.length;
    return [...this.#znodes.slice(at), ...this.#znodes.slice(0, at)];
  }

  /**
   * The first item that is available now, if any. With `watches` the lists watch for later changes.
   */
  async first<Got>(get: Get<Label, Got>, signal: AbortSignal, watches = false): Promise<Got | undefined> {
    for (const znode of this.#inTurn()) {
      const got = await znode.first((item, look) => get(znode, item, look), signal, watches);
      if (got !== undefined) return got;
    }
    return undefined;
  }

  /** Queues until there is one. */
  async wait<Got>(get: Get<Label, Got>, signal: AbortSignal): Promise<Got> {
    const atOnce = await this.first(get, signal);
    if (atOnce !== undefined) return atOnce;
    const turn = await this.#line.acquire({ signal });
    try {
      // A consumer that wakes nearly always finds an item, and then needs no watch: only the second
      // look sets it.
      for (let watches = true; ; watches = !watches) {
        const got = await this.first(get, signal, watches);
        if (got !== undefined) return got;
        if (watches) await this.#change(signal);
      }
    } finally {
      for (const { list } of this.#znodes) list.unwatch();
      // Not awaited: an error here must not cost the item. The place ends with the session at the
      // latest.
      turn.release().catch(() => undefined);
    }
  }

  /** Waits until there may be a new item, or the time of an item has come. */
  #change(signal: AbortSignal): Promise<void> {
    const lists = this.#znodes.map(({ list }) => list);
    const waitsMs = this.#znodes.map(({ untilNextMs }) => untilNextMs ?? Infinity);
    return outdated(this.#zk, lists, Math.min(...waitsMs), signal);
  }
}
