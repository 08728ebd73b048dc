/**
 * The purpose of watch loops: a mirror that applies the events, and reads again at each Reread,
 * equals the server's tree when there are no more changes. Tested over seeds that decide what is
 * written, where connections break, stall, and stay away until the session has expired, when the
 * server crashes, how slow a mirror is, how small its queue is, and when it leaves its loop to
 * start another.
 */
import { SeededRandom } from '@tskeeper/runtime';
import { describe, expect, it, vi } from 'vitest';
import { breadth, expectHappened } from '../../../test/breadth.ts';
import { type Client, connect, KeeperError, op, type WatchLoopEvent } from '../src/index.ts';
import { ChangeQueue } from '../src/watches/change-queue.ts';
import { WatchTable } from '../src/watches/watch-table.ts';
import { ClientWorld } from './support/client-world.ts';

const root = '/m';
const paths = [root, '/m/a', '/m/b', '/m/c', '/m/a/x', '/m/a/y', '/m/b/x', '/m/a/x/1'];

/** What was done and delivered in a run. */
class Tally {
  reconnected = 0;
  overflowed = 0;
  expired = 0;
  left = 0;
  lostReads = 0;
  changes = 0;
}

interface Znode {
  readonly data: string;
  readonly mzxid: bigint;
  /** From one answer. */
  readonly children: { readonly names: readonly string[]; readonly pzxid: bigint } | undefined;
}

async function readTree(zk: Client, path: string, deep: boolean, tree = new Map<string, Znode>()): Promise<Map<string, Znode>> {
  try {
    const { data, stat } = await zk.getData(path);
    const { children: names, stat: parent } = await zk.getChildren(path);
    tree.set(path, { data: textOf(data), mzxid: stat.mzxid, children: { names, pzxid: parent.pzxid } });
    for (const name of names) {
      if (deep) await readTree(zk, `${path}/${name}`, deep, tree);
      else tree.set(`${path}/${name}`, { data: '', mzxid: 0n, children: undefined });
    }
  } catch (error) {
    if (!KeeperError.is(error, 'NoNode')) throw error;
    if (!deep) tree.clear();
  }
  return tree;
}

const textOf = (data: Uint8Array | null) => new TextDecoder().decode(data ?? undefined);
const plain = (tree: ReadonlyMap<string, Znode>): string[] => [...tree].map(([path, { data }]) => `${path}=${data}`).toSorted();

class Mirror {
  readonly #world: ClientWorld;
  readonly #random: SeededRandom;
  readonly #tally: Tally;
  readonly recursive: boolean;
  readonly #maxQueuedEvents: number;
  readonly #pauseMsMax: number;
  readonly #leavesOneIn: number;
  address = '';
  client: Client | undefined;
  tree = new Map<string, Znode>();
  /** The loop waits for events. */
  idle = false;
  /** A read has failed, so the mirror lacks some delivered changes. */
  #incomplete = true;
  /** Another mirror whose client this one uses too. */
  readonly #host: Mirror | undefined;

  constructor(world: ClientWorld, random: SeededRandom, tally: Tally, host?: Mirror) {
    this.#world = world;
    this.#random = random;
    this.#tally = tally;
    this.#host = host;
    this.recursive = host?.recursive ?? random.below(3) > 0;
    this.#maxQueuedEvents = random.below(2) === 0 ? 1 + random.below(6) : 1000;
    this.#pauseMsMax = random.below(2) === 0 ? 0 : 300;
    this.#leavesOneIn = random.below(2) === 0 ? 20 : 1_000_000;
  }

  async run(): Promise<void> {
    for (;;) {
      const zk = await this.#session();
      try {
        for await (const event of zk.watch(root, { recursive: this.recursive, maxQueuedEvents: this.#maxQueuedEvents })) {
          this.idle = false;
          await this.#heed(zk, event);
          if (this.#pauseMsMax > 0) await this.#pause(this.#random.below(this.#pauseMsMax));
          this.idle = true;
          if (this.#random.below(this.#leavesOneIn) > 0) continue;
          this.#tally.left++;
          break;
        }
        if (zk.endReason === 'closed') return;
        this.idle = false;
        await this.#pause(this.#random.below(3) * 500);
      } catch (error) {
        if (!KeeperError.is(error, 'SessionExpired')) throw error;
        if (zk.endReason === 'closed') return;
        this.#tally.expired++;
      }
      this.idle = false;
    }
  }

  async #session(): Promise<Client> {
    if (this.#host !== undefined) {
      while (this.#host.client === undefined || this.#host.client.endReason !== undefined) await this.#pause(100);
      return this.#host.client;
    }
    if (this.client === undefined || this.client.endReason !== undefined) {
      this.client = await connect('server:2181', this.#world.options({ sessionTimeoutMs: 4000, connectTimeoutMs: Infinity }));
    }
    return this.client;
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#world.clock.after(ms, () => resolve());
    });
  }

  async #heed(zk: Client, event: WatchLoopEvent): Promise<void> {
    try {
      if (event.type === 'Reread') {
        if (event.cause !== 'started') this.#tally[event.cause]++;
        const before = this.tree;
        this.tree = await readTree(zk, root, this.recursive);
        if (event.since !== undefined && this.recursive && !this.#incomplete) this.#expectExplained(before, event.since);
        this.#incomplete = false;
        return;
      }
      this.#tally.changes++;
      if (!this.recursive) this.tree = await readTree(zk, root, false);
      else if (event.type === 'NodeDeleted') this.tree.delete(event.path);
      else await this.#read(zk, event.path);
    } catch (error) {
      // Ignored, as another Reread follows.
      if (!KeeperError.is(error, 'ConnectionLoss')) throw error;
      this.#incomplete = true;
      this.#tally.lostReads++;
    }
  }

  async #read(zk: Client, path: string): Promise<void> {
    try {
      const { data, stat } = await zk.getData(path);
      this.tree.set(path, { data: textOf(data), mzxid: stat.mzxid, children: undefined });
    } catch (error) {
      if (!KeeperError.is(error, 'NoNode')) throw error;
      this.tree.delete(path);
    }
  }

  /** Every znode that differs must have changed after `since`. */
  #expectExplained(before: ReadonlyMap<string, Znode>, since: bigint): void {
    for (const [path, { data, mzxid, children }] of this.tree) {
      if (before.get(path)?.data !== data && mzxid <= since) throw new Error(`${path} changed unheard: mzxid ${mzxid}, since ${since}`);
      const isGone = (each: string) => parentOf(each) === path && !children!.names.includes(each.slice(path.length + 1));
      if (children!.pzxid <= since && [...before.keys()].some(isGone))
        throw new Error(`a child of ${path} went unheard: pzxid ${children!.pzxid}, since ${since}`);
    }
  }
}

const parentOf = (path: string) => path.slice(0, path.lastIndexOf('/'));

interface Outcome {
  readonly equal: boolean;
  readonly differences: string;
}

async function run(seed: number, tally: Tally): Promise<Outcome> {
  const random = new SeededRandom(seed);
  const world = await ClientWorld.start();
  const delayMsMax = random.below(2) === 0 ? 0 : 40;
  world.wire.conditionsOf = () => ({ delayMs: random.below(delayMsMax + 1) });
  const writer = await world.connect({ sessionTimeoutMs: 40_000 });
  const first = new Mirror(world, new SeededRandom(random.uint32()), tally);
  const mirrors = [
    first,
    new Mirror(world, new SeededRandom(random.uint32()), tally, first),
    new Mirror(world, new SeededRandom(random.uint32()), tally),
  ];
  const running = mirrors.map((mirror) => mirror.run());
  const trouble: unknown[] = [];
  for (const each of running) each.catch((error: unknown) => void trouble.push(error));

  const cables = () => [...world.wire.cnxns].filter(({ dialer, forward }) => dialer.address !== '10.1.0.1' && !forward.from.isClosed);
  const cuts: { readonly at: number; readonly heal: () => void }[] = [];
  const write = (): void => {
    const path = paths[random.below(paths.length)]!;
    const data = String(random.below(1000));
    const calls: (() => Promise<unknown>)[] = [
      () => writer.create(path, data),
      () => writer.create(path, data),
      () => writer.setData(path, data),
      () => writer.delete(path),
      () => writer.multi([op.create(`${root}/t`, data), op.setData(root, data), op.delete(`${root}/t`)]),
    ];
    calls[random.below(calls.length)]!().catch((error: unknown) => {
      if (!KeeperError.is(error)) trouble.push(error);
    });
  };
  for (let step = 0; step < 35; step++) {
    for (const { at, heal } of cuts.splice(0)) {
      if (at <= step) heal();
      else cuts.push({ at, heal });
    }
    const dice = random.below(100);
    if (dice < 55) {
      for (let writes = 1 + random.below(3); writes > 0; writes--) write();
    } else if (dice < 65) {
      for (let writes = 20; writes > 0; writes--) write();
    } else if (dice < 80) {
      const open = cables();
      if (open.length > 0) world.break(open[random.below(open.length)]);
    } else if (dice < 90) {
      const cable = cables()[random.below(2)];
      if (cable !== undefined) {
        const [from, to] = [cable.dialer.address, cable.listener.address];
        world.wire.cut(from, to);
        cuts.push({ at: step + (random.below(3) === 0 ? 40 : 1 + random.below(8)), heal: () => world.wire.heal(from, to) });
      }
    } else if (dice < 92) {
      world.kill();
      await world.boot();
    }
    await world.pass(random.below(4) * 100, 100);
  }

  for (const { heal } of cuts) heal();
  await world.untilSo(() => writer.state === 'connected' || trouble.length > 0);
  // A while without faults, in which no Reread corrects anything.
  for (let step = 0; step < 8; step++) {
    write();
    await world.pass(200, 200);
  }
  const still = () => trouble.length > 0 || mirrors.every(({ idle }) => idle);
  for (let round = 0; round < 2; round++) {
    await world.pass(3000, 300);
    await world.untilSo(still);
  }
  if (trouble.length > 0) throw trouble[0];
  const truth = [plain(await world.until(readTree(writer, root, false))), plain(await world.until(readTree(writer, root, true)))] as const;
  const wrong = mirrors.filter(({ tree, recursive }) => plain(tree).join() !== truth[recursive ? 1 : 0].join());
  await world.until(Promise.all(mirrors.map(async ({ client }) => client?.close())));
  await world.until(Promise.all(running));
  await world.close();
  const shown = wrong.map(({ tree, recursive }) => `${plain(tree).join(' ')} instead of ${truth[recursive ? 1 : 0].join(' ')}`);
  return { equal: wrong.length === 0, differences: shown.join('\n') };
}

describe('mirrors of watch loops', () => {
  it.each(breadth([0], [0, 50, 100, 150, 200, 250]))(
    'D7: equal the tree when there are no more changes, over the seeds after %i',
    async (behind) => {
      const tally = new Tally();
      for (let seed = behind + 1; seed <= behind + breadth(5, 50); seed++) {
        const { equal, differences } = await run(seed, tally);
        expect(equal, `seed ${seed}: ${differences}`).toBe(true);
      }
      // All of it has really happened.
      expectHappened(tally, 10);
    },
  );

  const method = <Name extends 'push' | 'reread'>(name: Name) =>
    Object.getOwnPropertyDescriptor(ChangeQueue.prototype, name)!.value as (
      this: ChangeQueue,
      ...given: Parameters<ChangeQueue[Name]>
    ) => void;
  const [push, reread] = [method('push'), method('reread')];
  const canaries: Record<string, () => void> = {
    'says nothing after a lost connection': () => {
      vi.spyOn(ChangeQueue.prototype, 'reread').mockImplementation(function (this: ChangeQueue, because, since) {
        if (because === 'started') reread.call(this, because, since);
      });
    },
    'drops what is too much without a word': () => {
      vi.spyOn(ChangeQueue.prototype, 'push').mockImplementation(function (this: ChangeQueue, change) {
        if (this.length < 5) push.call(this, change);
      });
    },
    'claims to have reported more than it has': () => {
      vi.spyOn(ChangeQueue.prototype, 'reread').mockImplementation(function (this: ChangeQueue, because, since) {
        reread.call(this, because, since === undefined ? undefined : since + 1n);
      });
    },
    'takes the watch of others with it': () => {
      vi.spyOn(WatchTable.prototype, 'isNeeded').mockReturnValue(false);
    },
  };

  it.each(breadth(['drops what is too much without a word'], Object.keys(canaries)))(
    'are detected as wrong if the loop %s',
    async (name) => {
      canaries[name]!();
      const enough = breadth(1, 3);
      let caught = 0;
      try {
        for (let seed = 1; seed <= 60 && caught < enough; seed++) {
          const isCaught = await run(seed, new Tally()).then(
            ({ equal }) => !equal,
            (error: Error) => /went unheard|changed unheard/.test(error.message),
          );
          if (isCaught) caught++;
        }
      } finally {
        vi.restoreAllMocks();
      }
      expect(caught).toBe(enough);
    },
  );
});
