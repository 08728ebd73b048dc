/** What clients do, chosen by the seed: writes of every kind with values that occur once, reads, watches, and now and then a goodbye. */
import { AddWatchMode, CreateMode, type MultiOp, openAcl } from '@tskeeper/protocol';
import type { SeededRandom } from '@tskeeper/runtime';
import type { VirtualClient } from './virtual-client.ts';

/** Few, so that clients meet. */
const paths = ['/a', '/b', '/c', '/a/x', '/a/y', '/b/z', '/b/z/deep', '/e1', '/e2', '/a/e3'];
const counted = ['/q-', '/a/s-', '/b/s-', '/b/z/s-'];
const readable = ['/', ...paths];

export interface Habits {
  /** Longest value, in bytes. */
  readonly dataMax: number;
  /** One in so many bursts ends the session; 0 for never. */
  readonly closeEvery: number;
  /** Share of writes, of 100. */
  readonly writes: number;
}

export class Workload {
  readonly #random: SeededRandom;
  readonly #habits: Habits;
  #values = 0;

  constructor(random: SeededRandom, habits: Habits) {
    this.#random = random;
    this.#habits = habits;
  }

  /** A few requests at once. */
  burst(client: VirtualClient): void {
    const { closeEvery } = this.#habits;
    if (closeEvery > 0 && this.#random.below(closeEvery) === 0) {
      client.send('closeSession', undefined);
      return;
    }
    for (let count = 1 + this.#random.below(5); count > 0; count--) {
      if (this.#random.below(100) < this.#habits.writes) this.#write(client);
      else this.#read(client);
    }
  }

  #write(client: VirtualClient): void {
    const kind = this.#random.below(12);
    if (kind < 4) client.send(this.#random.below(2) === 0 ? 'create' : 'create2', this.#create());
    else if (kind < 7) client.send('setData', { path: this.#pick(paths), data: this.#value(), version: this.#version() });
    else if (kind < 9) client.send('delete', { path: this.#pick(paths), version: this.#version() });
    else client.send('multi', { ops: Array.from({ length: 1 + this.#random.below(4) }, () => this.#part()) });
  }

  #create() {
    const kind = this.#random.below(6);
    const acl = openAcl;
    const data = this.#value();
    if (kind < 2) return { path: this.#pick(paths), data, acl, flags: CreateMode.persistent };
    if (kind === 2) return { path: this.#pick(paths), data, acl, flags: CreateMode.ephemeral };
    return { path: this.#pick(counted), data, acl, flags: kind === 3 ? CreateMode.ephemeralSequential : CreateMode.persistentSequential };
  }

  #part(): MultiOp {
    switch (this.#random.below(5)) {
      case 0:
        return { kind: 'create', ...this.#create() };
      case 1:
        return { kind: 'create2', ...this.#create() };
      case 2:
        return { kind: 'delete', path: this.#pick(paths), version: -1 };
      case 3:
        return { kind: 'check', path: this.#pick(paths), version: this.#version() };
      default:
        return { kind: 'setData', path: this.#pick(paths), data: this.#value(), version: -1 };
    }
  }

  #read(client: VirtualClient): void {
    const path = this.#pick(readable);
    const watch = this.#random.below(3) === 0;
    switch (this.#random.below(8)) {
      case 0:
      case 1:
        client.send('getData', { path, watch });
        return;
      case 2:
      case 3:
        client.send('exists', { path, watch });
        return;
      case 4:
        client.send('getChildren', { path, watch });
        return;
      case 5:
        client.send('getChildren2', { path, watch });
        return;
      case 6:
        client.send('sync', { path });
        return;
      default:
        if (this.#random.below(4) > 0) client.send('ping', undefined);
        else
          client.send('addWatch', { path, mode: this.#random.below(2) === 0 ? AddWatchMode.persistent : AddWatchMode.persistentRecursive });
    }
  }

  #pick(from: readonly string[]): string {
    return from[this.#random.below(from.length)]!;
  }

  #version(): number {
    return this.#random.below(3) === 0 ? this.#random.below(3) : -1;
  }

  /** Never the same twice, but for null. */
  #value(): Buffer | null {
    if (this.#random.below(20) === 0) return null;
    const text = `value ${++this.#values} `;
    return Buffer.from(text.padEnd(this.#random.below(4) === 0 ? this.#random.below(this.#habits.dataMax) : 0, '.'));
  }
}
