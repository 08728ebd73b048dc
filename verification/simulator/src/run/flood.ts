/**
 * A flood: a crowd of clients arrives at once, each with many requests that do not wait for
 * replies, some of maximum length. Links and disks transfer a few megabytes per second, and in the
 * middle of it a server restarts, with or without its disk. Then the crowd leaves.
 */
import { CreateMode, ErrorCode, type Millis, type MultiOp, openAcl } from '@tskeeper/protocol';
import { SeededRandom } from '@tskeeper/runtime';
import type { ClientRequest } from '../clients/actor.ts';
import { RawClient } from '../clients/raw-client.ts';
import type { Run } from './run.ts';

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
  readonly restart: 'with its disk' | 'without its disk';
}

/** From the first client to the last. */
const arrivalMs = 100;
/**
 * Clients that have a session by then send all their requests at once; the others do so when they
 * have one.
 */
const sendStartMs = 250;
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
  readonly #run: Run;
  readonly #random: SeededRandom;
  readonly #plan: FloodPlan;
  readonly #clients: RawClient[] = [];
  #bytesLeft: number;
  #longMultisLeft = longMultisMax;
  #values = 0;

  constructor(run: Run, random: SeededRandom, plan: FloodPlan) {
    this.#run = run;
    this.#random = new SeededRandom(random.uint32());
    this.#plan = plan;
    this.#bytesLeft = plan.bytesMax;
  }

  /** Whether no client of the flood waits for a reply. */
  get isQuiet(): boolean {
    return this.#clients.every(({ outstandingCount }) => outstandingCount === 0);
  }

  begin(): void {
    const run = this.#run;
    const { clients } = this.#plan;
    for (let number = 1; number <= clients; number++) {
      const afterMs = run.drawMs(arrivalMs);
      run.schedule(afterMs, 'flood', undefined, () => this.#arrive(number, sendStartMs - afterMs));
    }
    run.schedule(sendStartMs + run.drawMs(100), 'flood', undefined, () => this.#restartServer(wipeRetriesMax));
    this.#countLoad(arrivalMs);
    run.hitMark('flood');
  }

  #arrive(number: number, waitsMs: Millis): void {
    const run = this.#run;
    const client = new RawClient(run.world, new SeededRandom(this.#random.uint32()), {
      name: `flood-${number}`,
      address: `10.6.${number >> 8}.${number & 255}`,
      timeoutMs: 2000 + this.#random.below(2000),
      redialMsMax: 500,
    });
    this.#clients.push(client);
    run.schedule(waitsMs, 'flood', undefined, () => this.#sendAll(client, number, retriesMax));
    run.schedule(arrivalMs + stayMs + run.drawMs(500), 'flood', undefined, () => {
      if (client.ready) client.submit({ name: 'closeSession', record: undefined });
      client.abandon();
    });
  }

  #sendAll(client: RawClient, number: number, retries: number): void {
    if (!client.ready) {
      if (retries > 0) this.#run.schedule(retryMs, 'flood', undefined, () => this.#sendAll(client, number, retries - 1));
      return;
    }
    client.submit({ name: 'create', record: { path: `/crowd-${number}`, data: null, acl: openAcl, flags: CreateMode.ephemeral } });
    client.submit({ name: 'create', record: { path: this.#path(), data: this.#value(), acl: openAcl, flags: CreateMode.persistent } });
    for (let count = 2; count < this.#plan.requests; count++) client.submit(this.#request());
  }

  #request(): ClientRequest {
    const path = this.#path();
    switch (this.#random.below(8)) {
      case 0:
        return { name: 'create', record: { path, data: this.#value(), acl: openAcl, flags: CreateMode.persistent } };
      case 1:
      case 2:
        return { name: 'setData', record: { path, data: this.#value(), version: -1 } };
      case 3:
        return { name: 'multi', record: { ops: this.#multiOps() } };
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
  #multiOps(): MultiOp[] {
    const parts = this.#random.below(16) === 0 ? this.#plan.parts : 1 + this.#random.below(4);
    const count = parts <= 4 || this.#longMultisLeft-- > 0 ? parts : 1;
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

  #restartServer(retries: number): void {
    const run = this.#run;
    const server = run.anyServer();
    if (run.isHealed) return;
    if (this.#plan.restart === 'without its disk' && run.disks.canWipe(server)) {
      run.disks.wipe(server);
      run.hitMark('flood: a server lost its disk');
    } else if (this.#plan.restart === 'without its disk' && retries > 0) {
      run.schedule(wipeRetryMs, 'flood', undefined, () => this.#restartServer(retries - 1));
      return;
    } else {
      server.kill();
      run.hitMark('flood: a server was restarted');
    }
    run.restartAfter(server, 1 + run.drawMs(50));
  }

  /** Notes how large the flood is. */
  #countLoad(ms: Millis): void {
    const run = this.#run;
    const sum = this.#clients.reduce((total, { outstandingCount }) => total + outstandingCount, 0);
    if (sum >= manyUnderWay) run.hitMark('flood: a thousand requests in flight');
    if (this.#clients.filter(({ ready }) => ready).length >= manySessions) run.hitMark('flood: a hundred sessions');
    if (ms < arrivalMs + stayMs) run.schedule(20, 'flood', undefined, () => this.#countLoad(ms + 20));
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
    restart: pick('with its disk', 'without its disk', 'without its disk'),
  };
}
