/**
 * Who looks for an item, and who waits for one.
 *
 * ZooKeeper's page lets all who find the queue empty watch it, so that each item wakes all of them, which is the herd that the page warns of. Here they stand in line,
 * and only the first watches; whoever finds an item at once never stands there.
 */
import type { ClientView } from '@tskeeper/client';
import type { Lock } from '../locks/lock.ts';
import type { ItemName } from './item-names.ts';
import type { Look, QueueZnode } from './queue-znode.ts';
import { outdated } from './room.ts';

/** Has an item, in whatever way; undefined when somebody else has it. */
type Get<Label, Got> = (znode: QueueZnode<Label>, item: ItemName, look: Look) => Promise<Got | undefined>;

export class Consumers<Label> {
  readonly #zk: ClientView;
  readonly #znodes: readonly QueueZnode<Label>[];
  readonly #line: Lock;
  /** So that several znodes are emptied alike. */
  #round: number;

  constructor(zk: ClientView, znodes: readonly QueueZnode<Label>[], line: Lock) {
    this.#zk = zk;
    this.#znodes = znodes;
    this.#line = line;
    // Clients that come one behind the other do not all begin with the same one.
    this.#round = Number(BigInt.asUintN(31, zk.sessionId));
  }

  /** All of them, each time with another one ahead. */
  #inTurn(): readonly QueueZnode<Label>[] {
    const at = this.#round++ % this.#znodes.length;
    return [...this.#znodes.slice(at), ...this.#znodes.slice(0, at)];
  }

  /** The first item that is to be had now, if there is one. With `watches` the lists hear of what happens from then on. */
  async first<Got>(get: Get<Label, Got>, signal: AbortSignal, watches = false): Promise<Got | undefined> {
    for (const znode of this.#inTurn()) {
      const got = await znode.first((item, look) => get(znode, item, look), signal, watches);
      if (got !== undefined) return got;
    }
    return undefined;
  }

  /** Stands in line until there is one. */
  async wait<Got>(get: Get<Label, Got>, signal: AbortSignal): Promise<Got> {
    const atOnce = await this.first(get, signal);
    if (atOnce !== undefined) return atOnce;
    const turn = await this.#line.acquire({ signal });
    try {
      // Who is woken has an item nearly always, and leaves no watch behind then: it is set by the second look.
      for (let watches = true; ; watches = !watches) {
        const got = await this.first(get, signal, watches);
        if (got !== undefined) return got;
        if (watches) await this.#change(signal);
      }
    } finally {
      for (const { list } of this.#znodes) list.unwatch();
      // Not waited for, and nothing that goes wrong with it is worth the item. The place goes with the session at the latest.
      turn.release().catch(() => undefined);
    }
  }

  /** Until there may be something new, or the time of an item has come. */
  #change(signal: AbortSignal): Promise<void> {
    const lists = this.#znodes.map(({ list }) => list);
    const waitsMs = this.#znodes.map(({ untilNextMs }) => untilNextMs ?? Infinity);
    return outdated(this.#zk, lists, Math.min(...waitsMs), signal);
  }
}
