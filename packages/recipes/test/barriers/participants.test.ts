/**
 * What double barriers guarantee, over seeds that decide how many participants arrive, when
 * connections break, stall and stay away until the session has expired, when the server dies, which
 * participants die, and which give up:
 *
 * - no participant enters before enough others are present that have been in no round before; nor a
 *   round that is over, or that it has left;
 * - no participant has left before all that were inside when it called `leave` are done;
 * - after the faults all go through round after round, and nothing is left behind.
 */
import { type Client, connect, KeeperError } from '@tskeeper/client';
import { nameOf } from '@tskeeper/client/internal';
import { SeededRandom } from '@tskeeper/runtime';
import { describe, expect, it, vi } from 'vitest';
import { expectHappened, sample } from '../../../../test/breadth.ts';
import type { ClientWorld } from '../../../client/test/support/client-world.ts';
import { DoubleBarrier, RecipeError } from '../../src/index.ts';
import { BarrierEntry } from '../../src/barriers/barrier-entry.ts';
import { BarrierExit } from '../../src/barriers/barrier-exit.ts';
import { ParticipantNode } from '../../src/barriers/participant-node.ts';
import { readReady } from '../../src/barriers/ready.ts';
import { findings, overSeeds } from '../support/seeds.ts';
import { Storm, storyWorld } from '../support/storm.ts';
import { type Passage, Rounds } from './rounds.ts';

const path = '/b';
const enterBarrier = methodOf('run');
const removeStaleReady = methodOf('removeStaleReady');
const create = ParticipantNode.create.bind(ParticipantNode);

function methodOf<Name extends 'run' | 'removeStaleReady' | 'tryEnter'>(name: Name): BarrierEntry[Name] {
  return Object.getOwnPropertyDescriptor(BarrierEntry.prototype, name)!.value as BarrierEntry[Name];
}

class Tally {
  rounds = 0;
  late = 0;
  timedOut = 0;
  died = 0;
  expired = 0;
  stale = 0;
}

class Worker {
  client: Client | undefined;
  address = '';
  passage: Passage | undefined;
  /** Rounds since the faults ended. */
  turns = 0;
  isQuiet = false;
  /** The addresses of dead processes. */
  readonly dead = new Set<string>();
  readonly #name: string;
  readonly #world: ClientWorld;
  readonly #random: SeededRandom;
  readonly #tally: Tally;
  readonly #rounds: Rounds;
  readonly #size: number;
  readonly #stop: AbortSignal;
  #die: (() => void) | undefined;

  constructor(
    name: string,
    size: number,
    world: ClientWorld,
    random: SeededRandom,
    { tally, rounds, stop }: { readonly tally: Tally; readonly rounds: Rounds; readonly stop: AbortSignal },
  ) {
    this.#name = name;
    this.#size = size;
    this.#world = world;
    this.#random = random;
    this.#tally = tally;
    this.#rounds = rounds;
    this.#stop = stop;
  }

  async run(): Promise<void> {
    while (!this.#stop.aborted) {
      const died = new Promise<never>((_resolve, reject) => (this.#die = () => reject(new Error('died'))));
      const going = this.#go();
      // A dead process notices nothing; its outcome is ignored.
      going.catch(() => undefined);
      await Promise.race([going, died]).catch((error: unknown) => this.#judge(error));
      await this.#pause(this.#random.below(150));
    }
  }

  /** The process is gone, its session is not. */
  die(): void {
    if (this.client === undefined) return;
    const { address } = this;
    this.client = undefined;
    if (this.passage !== undefined) this.passage.isOver = true;
    for (let life = 1; life < 20; life++) this.#world.wire.cut(address, `10.0.0.${life}`);
    this.dead.add(address);
    this.#tally.died++;
    this.#die?.();
  }

  async #session(): Promise<Client> {
    if (this.client === undefined || this.client.endReason !== undefined) {
      this.client = undefined;
      const options = this.#world.options({ sessionTimeoutMs: 4000, connectTimeoutMs: Infinity });
      this.address = `10.1.0.${this.#world.clients}`;
      this.client = await connect('server:2181', options);
    }
    return this.client;
  }

  async #go(): Promise<void> {
    const zk = await this.#session();
    const isPatient = this.isQuiet || this.#random.below(4) > 0;
    const limit = () => ({ signal: this.#stop, ...(isPatient || this.isQuiet ? {} : { timeoutMs: this.#random.below(3000) }) });
    const passage = this.#rounds.called(this.#name);
    this.passage = passage;
    try {
      const inside = await new DoubleBarrier(zk, path, this.#size).enter(limit());
      if (isOver(passage)) return;
      if (this.#rounds.admitted(passage, inside)) this.#tally.late++;
      await this.#pause(this.#random.below(4) === 0 ? this.#random.below(3000) : this.#random.below(100));
      if (isOver(passage)) return;
      this.#rounds.leaves(passage);
      await inside.leave(limit());
      if (isOver(passage)) return;
      this.#rounds.left(passage);
      if (this.isQuiet) this.turns++;
    } catch (error) {
      passage.isOver = true;
      throw error;
    }
  }

  #judge(error: unknown): void {
    if (this.#stop.aborted && error === this.#stop.reason) return;
    if (error instanceof RecipeError) {
      if (error.code === 'TimedOut') this.#tally.timedOut++;
    } else if (KeeperError.is(error, 'SessionExpired')) this.#tally.expired++;
    else if (!KeeperError.is(error, 'ConnectionLoss') && (error as Error).message !== 'died') throw error;
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#world.clock.after(ms, () => resolve());
    });
  }
}

function isOver(passage: Passage): boolean {
  return passage.isOver === true;
}

async function run(seed: number, tally: Tally, plant: (() => { mockRestore(): void }) | undefined): Promise<void> {
  const { world, random } = await storyWorld(seed, 60);
  const observer = await world.connect({ sessionTimeoutMs: 40_000 });
  const count = 2 + random.below(4);
  const size = random.below(2) === 0 ? count : 1 + random.below(count);
  const rounds = new Rounds(size);
  const stop = new AbortController();
  const shared = { tally, rounds, stop: stop.signal };
  const workers = Array.from({ length: count }, (_, at) => new Worker(`w${at}`, size, world, new SeededRandom(random.uint32()), shared));
  const passageOf = (zk: unknown) => workers.find(({ client }) => client === zk)?.passage;
  spies.push(
    vi.spyOn(ParticipantNode, 'create').mockImplementation(async (context, signal) => {
      const passage = passageOf(context.zk);
      const node = await create(context, signal);
      if (passage !== undefined) passage.name = nameOf(node.path);
      return node;
    }),
    vi.spyOn(BarrierEntry.prototype, 'run').mockImplementation(async function (this: BarrierEntry, look) {
      const entered = await enterBarrier.call(this, look);
      const passage = passageOf(entered.node.zk);
      if (passage !== undefined) passage.openers = entered.openers;
      return entered;
    }),
    vi.spyOn(BarrierEntry.prototype, 'removeStaleReady').mockImplementation(async function (this: BarrierEntry, czxid) {
      tally.stale++;
      await removeStaleReady.call(this, czxid);
    }),
  );
  if (plant !== undefined) spies.push(plant());
  const trouble: unknown[] = [];
  const running = workers.map((worker) => worker.run());
  for (const each of running) each.catch((error: unknown) => void trouble.push(error));
  const storm = new Storm(world, random, {
    steps: 30,
    breaks: 25,
    cuts: 10,
    restarts: 3,
    mishaps: [[10, () => workers[random.below(count)]!.die()]],
    cutSteps: () => (random.below(3) === 0 ? 30 : 1 + random.below(8)),
    staysAway: (address) => workers.some(({ dead }) => dead.has(address)),
    stepMsMax: 500,
    parts: 5,
    isOver: () => trouble.length > 0,
  });
  await storm.pass();
  for (const worker of workers) worker.isQuiet = true;
  await world.untilSo(() => trouble.length > 0 || workers.every(({ turns }) => turns > 1), 30_000);
  stop.abort(new Error('it is over'));
  if (trouble.length > 0) throw trouble[0];
  await world.until(Promise.all(running));
  rounds.judge();
  tally.rounds += rounds.count;
  await world.untilSo(() => observer.state === 'connected');
  await world.pass(6000);
  const { children } = await world.until(observer.getChildren(path));
  const left = children.filter((name) => name !== 'ready');
  if (left.length > 0) throw new Error(`left behind: ${left.join()}`);
  await world.until(Promise.all(workers.map(async ({ client }) => client?.close())));
  await world.close();
}

const spies: { mockRestore(): void }[] = [];

async function story(seed: number, tally: Tally, plant?: () => { mockRestore(): void }): Promise<void> {
  try {
    await run(seed, tally, plant);
  } finally {
    for (const spy of spies.splice(0)) spy.mockRestore();
  }
}

describe('participants of a double barrier', () => {
  it('B4, C1-12, C1-13, C1-3: never enter early, and never wait forever, over seeds', async () => {
    const tally = new Tally();
    await overSeeds(30, (seed) => story(seed, tally));
    expectHappened(tally, 3);
  });

  // `from`: the first seed that detects it, to save time.
  const canaries: Record<string, { readonly from?: number; readonly plant: () => { mockRestore(): void }; readonly finds: RegExp }> = {
    'begins a round without checks on its participants': {
      from: 15,
      plant: () =>
        vi.spyOn(BarrierEntry.prototype, 'tryOpen').mockImplementation(async function (this: BarrierEntry, waiting) {
          const created = await this.zk.create(this.readyPath, JSON.stringify(waiting)).catch(() => undefined);
          return created && new Set(waiting);
        }),
      finds: /begins early|comes into a round/,
    },
    'trusts any `ready`': {
      plant: () =>
        vi.spyOn(BarrierEntry.prototype, 'tryEnter').mockImplementation(async function (this: BarrierEntry) {
          return (await readReady(this.zk, this.readyPath, this.signal))?.openers;
        }),
      finds: /whose openers had left|that it has left/,
    },
    'does not mark itself as late': {
      plant: () => vi.spyOn(BarrierEntry.prototype, 'markEntered').mockResolvedValue(true),
      finds: /begins early|comes into a round|still not so/,
    },
    'also waits for participants that are not inside': {
      from: 29,
      plant: () => vi.spyOn(BarrierExit.prototype, 'isInside').mockReturnValue(true),
      finds: /still not so/,
    },
    'waits for later participants too': {
      from: 12,
      plant: () =>
        vi.spyOn(BarrierExit.prototype, 'namesInside').mockImplementation(function (this: BarrierExit, names) {
          this.seen = new Set(names);
          return names.toSorted();
        }),
      finds: /still not so/,
    },
    'deletes `ready` while another opener is inside': {
      plant: () => vi.spyOn(BarrierExit.prototype, 'isLastOpener').mockReturnValue(true),
      finds: /begins early|still not so/,
    },
    'does not wait for the others at the end': {
      plant: () =>
        vi.spyOn(BarrierExit.prototype, 'run').mockImplementation(async (release) => {
          await release();
        }),
      finds: /has left while .* was at work|that it has left/,
    },
    'never deletes the `ready` that a crash has left': {
      plant: () => vi.spyOn(BarrierEntry.prototype, 'removeStaleReady').mockResolvedValue(),
      finds: /still not so/,
    },
    'keeps its znode when it gives up': {
      plant: () => vi.spyOn(ParticipantNode.prototype, 'leave').mockResolvedValue(),
      finds: /still not so|left behind|that it has left/,
    },
  };

  it.each(sample(Object.keys(canaries), 3))('fail a seeded run when one %s', async (name) => {
    const { from = 1, plant, finds } = canaries[name]!;
    const caught = await findings((seed) => story(seed, new Tally(), plant), { enough: 1, first: from });
    expect(caught).toEqual([expect.stringMatching(finds)]);
  });
});
