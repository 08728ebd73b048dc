/**
 * What caches guarantee, over seeds that decide what is written, which ACLs exclude them, when
 * connections break, stall, and stay away until the session has expired, when the server dies, the
 * options of caches, and how slow loops are:
 *
 * - after the faults a cache shows what the tree has, and says that it is in step;
 * - a cache that says so after a lost connection has read everything again;
 * - its changes, replayed, give what it shows; it reports no state that did not exist, and no znode
 *   older than before;
 * - the parents of what it shows are shown.
 */
import {
  type Client,
  ClientView,
  connect,
  creatorAcl,
  KeeperError,
  op,
  openAcl,
  type WatchLoop,
  type WatchLoopEvent,
  type WatchLoopOptions,
} from '@tskeeper/client';
import { SeededRandom } from '@tskeeper/runtime';
import { vi } from 'vitest';
import type { ClientWorld } from '../../../client/test/support/client-world.ts';
import { type CacheChange, type CachedZnode, ChildrenCache, NodeCache, TreeCache } from '../../src/index.ts';
import { Storm, storyWorld } from '../support/storm.ts';

const root = '/m';
const paths = [root, '/m/a', '/m/b', '/m/c', '/m/a/x', '/m/a/y', '/m/b/x', '/m/a/x/1', '/m/a/x/2', '/m/a/x/1/i'];

/** Counts of the events of a run. */
export class Tally {
  changes = 0;
  recreated = 0;
  outOfStep = 0;
  overflowed = 0;
  unreadable = 0;
  expired = 0;
}

interface Version {
  readonly czxid: bigint;
  readonly mzxid: bigint;
}

interface Truth {
  readonly data: string;
  readonly czxid: bigint;
  readonly mzxid: bigint;
  readonly isReadable: boolean;
}

const textOf = (data: Uint8Array | null | undefined) => new TextDecoder().decode(data ?? undefined);
const parentOf = (path: string) => path.slice(0, Math.max(1, path.lastIndexOf('/')));
const depthOf = (path: string) => (path === '/' ? 0 : path.split('/').length - 1);
const versionOf = (path: string, { czxid, mzxid }: Version) => `${path} ${czxid} ${mzxid}`;

async function readTree(writer: Client, reader: Client): Promise<Map<string, Truth>> {
  const tree = new Map<string, Truth>();
  try {
    for await (const { path, data, stat } of writer.walk(root, { data: true })) {
      let isReadable = true;
      await reader.getData(path).catch((error: unknown) => {
        if (!KeeperError.is(error, 'NoAuth')) throw error;
        isReadable = false;
      });
      tree.set(path, { data: textOf(data), czxid: stat.czxid, mzxid: stat.mzxid, isReadable });
    }
  } catch (error) {
    if (!KeeperError.is(error, 'NoNode')) throw error;
  }
  return tree;
}

type AnyCache = TreeCache | ChildrenCache | NodeCache;

/** Everything that a cache shows, by the paths of the writer. */
function shownBy(cache: AnyCache, prefix: string): Map<string, CachedZnode> {
  const znodes = cache instanceof NodeCache ? (cache.znode === undefined ? [] : [cache.znode]) : [...cache];
  return new Map(znodes.map((znode) => [znode.path === '/' ? prefix : prefix + znode.path, znode]));
}

/**
 * What has been written, and what caches have reported of it. The reply to a write may arrive after
 * its effects, or not at all.
 */
class Ledger {
  readonly #written = new Set<string>();
  readonly #unsure = new Set<string>();
  readonly #received = new Map<string, string>();

  wrote(path: string, stat: Version): void {
    this.#written.add(versionOf(path, stat));
  }

  lost(path: string): void {
    this.#unsure.add(path);
  }

  received(path: string, stat: Version): void {
    this.#received.set(versionOf(path, stat), path);
  }

  get fault(): string | undefined {
    for (const [version, path] of this.#received)
      if (!this.#written.has(version) && !this.#unsure.has(path)) return `${version} was never written`;
    return undefined;
  }
}

/** One cache after the other, each with a session that has not expired yet, and a loop. */
class Mirror {
  readonly #world: ClientWorld;
  readonly #random: SeededRandom;
  readonly #tally: Tally;
  readonly #ledger: Ledger;
  readonly kind: 'tree' | 'children' | 'node';
  /** Of a view; the paths of the cache are without it. */
  readonly prefix: string;
  readonly top: string;
  readonly maxDepth: number;
  readonly #excluded: string | undefined;
  readonly data: boolean;
  readonly #concurrency: number;
  readonly #maxQueuedChanges: number;
  readonly #pauseMsMax: number;
  client: Client | undefined;
  cache: AnyCache | undefined;
  replayed = new Map<string, CachedZnode>();
  /** The last reported version of each znode. */
  #last = new Map<string, Version & { hidden: boolean }>();
  /** Changes of these may have been visible in the cache when an overflow was reported. */
  #perhapsSeen = new Set<string>();
  idle = false;

  constructor(world: ClientWorld, random: SeededRandom, tally: Tally, ledger: Ledger) {
    this.#world = world;
    this.#random = random;
    this.#tally = tally;
    this.#ledger = ledger;
    this.kind = (['tree', 'tree', 'children', 'node'] as const)[random.below(4)]!;
    this.prefix = random.below(3) === 0 ? (random.below(2) === 0 ? root : '/m/a') : '';
    const top = ['/m', '/m', '/m/a'][random.below(3)]!;
    this.top = this.prefix === '' ? top : this.prefix;
    this.maxDepth = this.kind === 'node' ? 0 : this.kind === 'children' ? 1 : random.below(3) === 0 ? 1 + random.below(2) : Infinity;
    this.#excluded = this.kind !== 'node' && random.below(4) === 0 ? 'x' : undefined;
    this.data = this.kind === 'node' || random.below(4) > 0;
    this.#concurrency = random.below(2) === 0 ? 1 + random.below(3) : 16;
    this.#maxQueuedChanges = random.below(3) === 0 ? 1 + random.below(5) : 1000;
    this.#pauseMsMax = random.below(2) === 0 ? 0 : 300;
  }

  async run(): Promise<void> {
    for (;;) {
      this.client = await connect('server:2181', this.#world.options({ sessionTimeoutMs: 4000, connectTimeoutMs: Infinity }));
      const zk = this.client;
      const cache = this.#make(this.prefix === '' ? zk : zk.chroot(this.prefix));
      this.cache = cache;
      this.replayed = new Map();
      this.#last = new Map();
      this.#perhapsSeen = new Set();
      try {
        for await (const change of cache.changes({ maxQueuedChanges: this.#maxQueuedChanges })) {
          this.idle = false;
          this.#heed(cache, change);
          if (this.#pauseMsMax > 0) await this.#pause(this.#random.below(this.#pauseMsMax));
          this.idle = true;
        }
        return;
      } catch (error) {
        if (!KeeperError.is(error, 'SessionExpired')) throw error;
        this.#tally.expired++;
      }
    }
  }

  #make(zk: ClientView): AnyCache {
    const path = this.top.slice(this.prefix.length) || '/';
    const { maxDepth, data } = this;
    const concurrency = this.#concurrency;
    const excluded = this.#excluded;
    if (this.kind === 'node') return new NodeCache(zk, path);
    if (this.kind === 'children')
      return new ChildrenCache(zk, path, { data, concurrency, include: excluded === undefined ? undefined : (name) => name !== excluded });
    const include = excluded === undefined ? undefined : (each: string) => !each.endsWith(`/${excluded}`);
    return new TreeCache(zk, path, { data, concurrency, maxDepth, include });
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#world.clock.after(ms, () => resolve());
    });
  }

  #outer(path: string): string {
    return path === '/' ? this.prefix : this.prefix + path;
  }

  #heed(cache: AnyCache, change: CacheChange): void {
    if (this.kind === 'tree') this.#expectToHang(cache);
    switch (change.kind) {
      case 'inStep':
        return;
      case 'outOfStep':
        this.#tally.outOfStep++;
        return;
      case 'overflowed':
        this.#tally.overflowed++;
        this.replayed = shownBy(cache, this.prefix);
        // Whether they were hidden meanwhile was dropped.
        for (const each of this.#last.values()) each.hidden = true;
        for (const [path, { stat }] of this.replayed) this.#last.set(path, { ...stat, hidden: false });
        this.#perhapsSeen = new Set(paths);
        return;
      default:
    }
    const path = this.#outer(change.path);
    const { before, after } = change;
    this.#tally.changes++;
    const known = this.replayed.get(path);
    // What follows an overflow may have been visible by then.
    const seenUpTo = known?.stat.mzxid ?? -1n;
    if (this.#perhapsSeen.has(path) && (after === undefined ? seenUpTo !== before?.stat.mzxid : seenUpTo >= after.stat.mzxid)) return;
    this.#perhapsSeen.delete(path);
    must(known?.stat.mzxid === before?.stat.mzxid, `${change.kind} ${path}: the state before differs from the last reported one`);
    const last = this.#last.get(path);
    if (change.kind === 'created') {
      if (last !== undefined && !last.hidden) {
        must(after!.stat.czxid > last.czxid, `created ${path}: its creation was reported before`);
        this.#tally.recreated++;
      }
      if (last?.hidden === true) must(after!.stat.mzxid >= last.mzxid, `created ${path}: older than before`);
    } else if (change.kind === 'changed') {
      must(before!.stat.czxid === after!.stat.czxid, `changed ${path}: it is another znode`);
      must(after!.stat.mzxid > before!.stat.mzxid, `changed ${path}: older than before`);
    } else if (change.kind === 'unreadable') {
      this.#tally.unreadable++;
    }
    if (after === undefined) {
      this.replayed.delete(path);
      if (last !== undefined) last.hidden = change.kind === 'unreadable';
    } else {
      this.#ledger.received(path, after.stat);
      if (this.data && (this.kind !== 'children' || path !== this.top))
        must(textOf(after.data) === `${after.stat.version}:${path}`, `${path}: data and Stat do not belong together`);
      this.replayed.set(path, after);
      this.#last.set(path, { czxid: after.stat.czxid, mzxid: after.stat.mzxid, hidden: false });
    }
  }

  #expectToHang(cache: AnyCache): void {
    const shown = shownBy(cache, this.prefix);
    for (const path of shown.keys()) must(path === this.top || shown.has(parentOf(path)), `${path} hangs on nothing`);
  }

  /** What it should show. */
  #expected(tree: ReadonlyMap<string, Truth>): string[] {
    const expected = new Set<string>();
    const lines: string[] = [];
    for (const [path, { czxid, mzxid, isReadable }] of tree) {
      const depth = depthOf(path) - depthOf(this.top);
      const isTop = path === this.top;
      if (!isTop && (!path.startsWith(`${this.top}/`) || depth > this.maxDepth || path.endsWith(`/${this.#excluded}`))) continue;
      if (!isTop && !expected.has(parentOf(path))) continue;
      if (!isReadable) continue;
      expected.add(path);
      if (this.kind !== 'children' || !isTop) lines.push(versionOf(path, { czxid, mzxid }));
    }
    return lines.toSorted();
  }

  /** What is wrong with it; undefined if nothing is. */
  fault(tree: ReadonlyMap<string, Truth>): string | undefined {
    const lines = (znodes: ReadonlyMap<string, CachedZnode>) => [...znodes].map(([path, { stat }]) => versionOf(path, stat)).toSorted();
    const shown = lines(shownBy(this.cache!, this.prefix));
    const replayed = lines(this.replayed);
    const expected = this.#expected(tree);
    if (!this.cache!.isSynced) return `${this.kind} of ${this.top}: not in step`;
    if (shown.join() !== expected.join()) return `${this.kind} of ${this.top}: shows ${shown.join(', ')} instead of ${expected.join(', ')}`;
    if (replayed.join() !== shown.join())
      return `${this.kind} of ${this.top}: reported ${replayed.join(', ')} and shows ${shown.join(', ')}`;
    return undefined;
  }
}

class Broken extends Error {}

function must(isSo: boolean, otherwise: string): void {
  if (!isSo) throw new Broken(otherwise);
}

/** Loops that deliver other events, or none. Returns a function that restores them. */
export function withLoops(received: (event: WatchLoopEvent) => WatchLoopEvent | undefined): () => void {
  const watch = Object.getOwnPropertyDescriptor(ClientView.prototype, 'watch')!.value as (
    this: ClientView,
    path: string,
    options?: WatchLoopOptions,
  ) => WatchLoop;
  const spy = vi.spyOn(ClientView.prototype, 'watch').mockImplementation(function (
    this: ClientView,
    path: string,
    options?: WatchLoopOptions,
  ) {
    const loop = watch.call(this, path, options);
    const next = loop.next.bind(loop);
    loop.next = async () => {
      for (;;) {
        const result = await next();
        const value = result.done === true ? undefined : received(result.value);
        if (result.done === true || value !== undefined) return value === undefined ? result : { done: false, value };
      }
    };
    return loop;
  });
  return () => spy.mockRestore();
}

/** As before ZooKeeper 3.9, where events do not contain their txn. */
const withoutZxids = () => withLoops((event) => (event.type === 'Reread' ? event : { ...event, zxid: undefined }));

/** What was found wrong; undefined if nothing was. */
export async function run(seed: number, tally: Tally): Promise<string | undefined> {
  const { world, random } = await storyWorld(seed, 40);
  const restore = random.below(3) === 0 ? withoutZxids() : () => {};
  try {
    return await runIn(world, random, tally);
  } finally {
    restore();
  }
}

async function runIn(world: ClientWorld, random: SeededRandom, tally: Tally): Promise<string | undefined> {
  const writer = await world.connect({ sessionTimeoutMs: 40_000, auth: [{ scheme: 'digest', auth: 'writer:secret' }] });
  const reader = await world.connect({ sessionTimeoutMs: 40_000 });
  const ledger = new Ledger();
  const mirrors = Array.from({ length: 3 }, () => new Mirror(world, new SeededRandom(random.uint32()), tally, ledger));
  const trouble: unknown[] = [];
  const running = mirrors.map((mirror) => mirror.run());
  for (const each of running) each.catch((error: unknown) => void trouble.push(error));
  const own = new Set(['10.1.0.1', '10.1.0.2']);
  const cables = () => [...world.wire.cnxns].filter(({ dialer, forward }) => !own.has(dialer.address) && !forward.from.isClosed);
  const isSealing = random.below(3) === 0;

  const write = (): void => {
    const path = paths[random.below(paths.length)]!;
    const note = (each: string, stat: Version) => ledger.wrote(each, stat);
    const acl = isSealing && random.below(6) === 0 ? creatorAcl : openAcl;
    const create = async () => note(path, (await writer.create(path, `0:${path}`, { acl })).stat);
    const set = async () => {
      const stat = await writer.exists(path);
      if (stat !== null) note(path, await writer.setData(path, `${stat.version + 1}:${path}`, { version: stat.version }));
    };
    const remake = async () => {
      const [, made] = await writer.multi([op.delete(path), op.create(path, `0:${path}`)]);
      note(path, made.stat!);
    };
    const calls: (() => Promise<unknown>)[] = [
      create,
      create,
      create,
      set,
      set,
      remake,
      () => writer.delete(path),
      () => (random.below(3) === 0 ? writer.deleteRecursive(path) : writer.delete(path)),
      () => (isSealing ? writer.setACL(path, random.below(2) === 0 ? creatorAcl : openAcl) : create()),
    ];
    calls[random.below(calls.length)]!().catch((error: unknown) => {
      if (!KeeperError.is(error)) trouble.push(error);
      else if (error.outcome === 'unknown') ledger.lost(path);
    });
  };
  const still = () => trouble.length > 0 || mirrors.every(({ idle, cache }) => idle && cache?.isSynced === true);
  const quiet = async () => {
    for (let round = 0; round < 2; round++) {
      await world.pass(2400, 300);
      await world.untilSo(still);
    }
  };
  const firstFault = async () => {
    const tree = await world.until(readTree(writer, reader));
    return mirrors.map((mirror) => mirror.fault(tree)).find((fault) => fault !== undefined);
  };

  const writeSome = (writes: number) => {
    for (let left = writes; left > 0; left--) write();
  };
  const storm = new Storm(world, random, {
    steps: 30,
    breaks: 13,
    cuts: 10,
    restarts: 2,
    mishaps: [
      [55, () => writeSome(1 + random.below(4))],
      [12, () => writeSome(20)],
    ],
    cutSteps: () => (random.below(3) === 0 ? 40 : 1 + random.below(8)),
    stepMsMax: 300,
    parts: 3,
    spared: [...own],
    isOver: () => false,
  });
  await storm.pass();
  await world.untilSo(() => (writer.state === 'connected' && reader.state === 'connected') || trouble.length > 0);

  let fault: string | undefined;
  if (!isSealing) {
    // A while without faults, in which no Reread repairs anything. (Clients receive no events about
    // what they may not READ.)
    for (let step = 0; step < 8; step++) {
      writeSome(1 + random.below(3));
      await world.pass(200, 200);
    }
    await quiet();
    if (trouble.length === 0) fault = await firstFault();
  }
  if (fault === undefined && trouble.length === 0) {
    // And after a lost connection, as soon as they say that they are in step.
    const dialers = Array.from({ length: world.clients - own.size }, (_, index) => `10.1.0.${1 + own.size + index}`);
    for (const dialer of dialers) world.wire.cut(dialer, world.address);
    for (const cable of cables()) world.break(cable);
    writeSome(10);
    await world.pass(600, 100);
    for (const dialer of dialers) world.wire.heal(dialer, world.address);
    await world.untilSo(() => trouble.length > 0 || mirrors.every(({ cache }) => cache?.isSynced === true));
    if (trouble.length === 0) await world.untilSo(still);
    if (trouble.length === 0) fault = await firstFault();
  }
  await world.until(Promise.all(mirrors.map(async ({ client }) => client?.close())));
  await world.until(Promise.allSettled(running));
  await world.close();
  if (trouble.length === 0) return fault ?? ledger.fault;
  if (trouble[0] instanceof Broken) return trouble[0].message;
  throw trouble[0];
}
