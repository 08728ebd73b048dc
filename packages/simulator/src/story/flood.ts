/**
 * A flood: a crowd of clients arrives at once, each with many requests that do not wait for
 * replies, some of maximum length. Links and disks transfer a few megabytes per second, and in the
 * middle of it a server restarts, with or without its disk. Then the crowd leaves.
 */
import { CreateMode, ErrorCode, type Millis, type MultiOp, openAcl } from '@tskeeper/protocol';
import { SeededRandom } from '@tskeeper/runtime';
import type { Ask } from '../clients/actor.ts';
import { RawClient } from '../clients/raw-client.ts';
import type { Stage } from './stage.ts';

export interface FloodPlan {
  readonly atMs: Millis;
  readonly clients: number;
  /** Of each client, sent at once. */
  readonly requests: number;
  /** Of its longest multi. */
  readonly parts: number;
  /** Of its longest value. */
  readonly valueBytes: number;
  /** Over all clients, so that the longest requests are few. */
  readonly bytesMax: number;
  readonly linkBytesPerMs: number;
  readonly diskBytesPerMs: number;
  /** How a server restarts in the middle of the flood. */
  readonly comesBack: 'with its disk' | 'without its disk';
}

/** From the first client to the last. */
const arrivalMs = 100;
/**
 * Clients that have a session by then send all their requests at once; the others do so when they
 * have one.
 */
const rushMs = 250;
/** Between two checks of a client that has no session yet. */
const retryMs = 40;
const retriesMax = 40;
/** Between two checks for a disk that may be lost. */
const wipeRetryMs = 15;
const wipeRetriesMax = 20;
/** A client stays this long after its requests. */
const stayMs = 1500;
const znodes = 60;
/** In total: each costs as much as hundreds of other requests. */
const longMultisMax = 12;
const manyUnderWay = 1000;
const manySessions = 100;
const manyParts = 100;

export class Flood {
  readonly #stage: Stage;
  readonly #random: SeededRandom;
  readonly #plan: FloodPlan;
  readonly #clients: RawClient[] = [];
  #bytesLeft: number;
  #longLeft = longMultisMax;
  #values = 0;

  constructor(stage: Stage, random: SeededRandom, plan: FloodPlan) {
    this.#stage = stage;
    this.#random = new SeededRandom(random.uint32());
    this.#plan = plan;
    this.#bytesLeft = plan.bytesMax;
  }

  /** Whether no client of the flood waits for a reply. */
  get isQuiet(): boolean {
    return this.#clients.every(({ outstandingCount }) => outstandingCount === 0);
  }

  begin(): void {
    const stage = this.#stage;
    const { clients } = this.#plan;
    for (let number = 1; number <= clients; number++) {
      const afterMs = stage.fraction(arrivalMs);
      stage.after(afterMs, 'flood', undefined, () => this.#arrive(number, rushMs - afterMs));
    }
    stage.after(rushMs + stage.fraction(100), 'flood', undefined, () => this.#comeBack(wipeRetriesMax));
    this.#watch(arrivalMs);
    stage.note('flood');
  }

  #arrive(number: number, waitsMs: Millis): void {
    const stage = this.#stage;
    const client = new RawClient(stage.world, new SeededRandom(this.#random.uint32()), {
      name: `flood-${number}`,
      address: `10.6.${number >> 8}.${number & 255}`,
      timeoutMs: 2000 + this.#random.below(2000),
      redialMsMax: 500,
    });
    this.#clients.push(client);
    stage.after(waitsMs, 'flood', undefined, () => this.#rush(client, number, retriesMax));
    stage.after(arrivalMs + stayMs + stage.fraction(500), 'flood', undefined, () => {
      if (client.ready) client.ask({ name: 'closeSession', record: undefined });
      client.retire();
    });
  }

  #rush(client: RawClient, number: number, retries: number): void {
    if (!client.ready) {
      if (retries > 0) this.#stage.after(retryMs, 'flood', undefined, () => this.#rush(client, number, retries - 1));
      return;
    }
    client.ask({ name: 'create', record: { path: `/crowd-${number}`, data: null, acl: openAcl, flags: CreateMode.ephemeral } });
    client.ask({ name: 'create', record: { path: this.#path(), data: this.#value(), acl: openAcl, flags: CreateMode.persistent } });
    for (let count = 2; count < this.#plan.requests; count++) client.ask(this.#request());
  }

  #request(): Ask {
    const path = this.#path();
    switch (this.#random.below(8)) {
      case 0:
        return { name: 'create', record: { path, data: this.#value(), acl: openAcl, flags: CreateMode.persistent } };
      case 1:
      case 2:
        return { name: 'setData', record: { path, data: this.#value(), version: -1 } };
      case 3:
        return { name: 'multi', record: { ops: this.#parts() } };
      case 4:
        return { name: 'delete', record: { path, version: -1 } };
      case 5:
        return { name: 'getChildren', record: { path: '/', watch: this.#random.below(8) === 0 } };
      case 6:
        return { name: 'getData', record: { path, watch: this.#random.below(8) === 0 } };
      default:
        return { name: 'exists', record: { path, watch: false } };
    }
  }

  /** Either all create new znodes, or all set data of znodes that may exist. */
  #parts(): MultiOp[] {
    const parts = this.#random.below(16) === 0 ? this.#plan.parts : 1 + this.#random.below(4);
    const count = parts <= 4 || this.#longLeft-- > 0 ? parts : 1;
    if (count > 4) {
      const name = ++this.#values;
      const record = { data: null, acl: openAcl, flags: CreateMode.persistent };
      const top: MultiOp = { kind: 'create', path: `/many-${name}`, ...record };
      return [top, ...Array.from({ length: count - 1 }, (_, at): MultiOp => ({ kind: 'create', path: `/many-${name}/${at}`, ...record }))];
    }
    return Array.from({ length: count }, () => ({ kind: 'setData', path: this.#path(), data: this.#value(), version: -1 }));
  }

  #path(): string {
    return `/flood-${this.#random.below(znodes)}`;
  }

  /** Always unique; sometimes of maximum length. */
  #value(): Buffer {
    const text = `flood ${++this.#values} `;
    if (this.#random.below(4) > 0 || this.#bytesLeft < this.#plan.valueBytes) return Buffer.from(text);
    const length = this.#plan.valueBytes - this.#random.below(100);
    this.#bytesLeft -= length;
    return Buffer.from(text.padEnd(length, '.'));
  }

  #comeBack(retries: number): void {
    const stage = this.#stage;
    const server = stage.anyServer();
    if (stage.isHealed) return;
    if (this.#plan.comesBack === 'without its disk' && stage.mayWipe(server)) {
      stage.wipe(server);
      stage.note('flood: a server lost its disk');
    } else if (this.#plan.comesBack === 'without its disk' && retries > 0) {
      stage.after(wipeRetryMs, 'flood', undefined, () => this.#comeBack(retries - 1));
      return;
    } else {
      server.kill();
      stage.note('flood: a server was restarted');
    }
    stage.superviseAfter(server, 1 + stage.fraction(50));
  }

  /** Notes how large the flood is. */
  #watch(ms: Millis): void {
    const stage = this.#stage;
    const sum = this.#clients.reduce((total, { outstandingCount }) => total + outstandingCount, 0);
    if (sum >= manyUnderWay) stage.note('flood: a thousand requests under way');
    if (this.#clients.filter(({ ready }) => ready).length >= manySessions) stage.note('flood: a hundred sessions');
    if (ms < arrivalMs + stayMs) stage.after(20, 'flood', undefined, () => this.#watch(ms + 20));
  }
}

/** Requests of a flood that succeeded although they have the maximum length. */
export function isLongMulti({
  name,
  record,
  reply,
}: {
  name?: string | undefined;
  record: unknown;
  reply?: { err: number } | undefined;
}): boolean {
  return name === 'multi' && reply?.err === ErrorCode.Ok && (record as { ops: readonly unknown[] }).ops.length >= manyParts;
}

export function drawFlood(random: SeededRandom, safetyMs: Millis, juteMaxBuffer: number): FloodPlan {
  const pick = <T>(...from: readonly T[]): T => from[random.below(from.length)]!;
  const clients = pick(30, 120, 200, 300);
  return {
    atMs: random.below(Math.max(1, safetyMs - 1000)),
    clients,
    requests: Math.max(4, Math.floor(pick(1500, 1500, 2500) / clients)),
    parts: pick(100, 200, 300),
    valueBytes: juteMaxBuffer - 150,
    bytesMax: pick(200_000, 600_000),
    linkBytesPerMs: pick(2000, 5000, 10_000),
    diskBytesPerMs: pick(1000, 3000, 10_000),
    comesBack: pick('with its disk', 'without its disk', 'without its disk'),
  };
}
