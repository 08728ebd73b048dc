/**
 * A lease has one holder at a time, over seeds that decide when connections break and stall,
 * sessions end, and the server dies; all clocks run at the same rate.
 */
import { type Client, ClientView, connect, KeeperError } from '@tskeeper/client';
import { SeededRandom } from '@tskeeper/runtime';
import { describe, expect, it, vi } from 'vitest';
import { breadth, expectHappened } from '../../../../test/breadth.ts';
import type { ClientWorld } from '../../../client/test/support/client-world.ts';
import { type HeldLease, Lease, RecipeError } from '../../src/index.ts';
import { findings, overSeeds } from '../support/seeds.ts';
import { Storm, storyWorld } from '../support/storm.ts';

interface Tally {
  had: number;
  renewed: number;
  lost: number;
  expired: number;
}

class Worker {
  isStopped = false;
  readonly #world: ClientWorld;
  readonly #random: SeededRandom;
  readonly #holder: string;
  readonly #tally: Tally;
  readonly #holds: Map<HeldLease, string>;
  #client: Client | undefined;

  constructor(world: ClientWorld, random: SeededRandom, holder: string, tally: Tally, holds: Map<HeldLease, string>) {
    this.#world = world;
    this.#random = random;
    this.#holder = holder;
    this.#tally = tally;
    this.#holds = holds;
  }

  async run(): Promise<void> {
    while (!this.isStopped) {
      try {
        await this.#turn();
      } catch (error) {
        if (KeeperError.is(error, 'SessionExpired')) this.#tally.expired++;
        else if (!(error instanceof RecipeError) && !KeeperError.is(error, 'ConnectionLoss')) throw error;
      }
      await this.#pause(this.#random.below(300));
    }
    await this.#client?.close();
  }

  async #turn(): Promise<void> {
    if (this.#client === undefined || this.#client.endReason !== undefined)
      this.#client = await connect('server:2181', this.#world.options({ sessionTimeoutMs: 4000, connectTimeoutMs: Infinity }));
    const lease = new Lease(this.#client, '/leases/x', { holder: this.#holder, durationMs: 1000 + this.#random.below(5000) });
    const isPatient = this.#random.below(2) === 0;
    const held = isPatient ? await lease.acquire({ timeoutMs: 8000 }) : await lease.tryAcquire();
    if (held === undefined) return;
    // A holder that could not renew is over when one with the same name takes the lease: that is
    // the holder now.
    for (const [before, holder] of this.#holds) if (holder === this.#holder) this.#holds.delete(before);
    const others = [...this.#holds].filter(([{ state }]) => state === 'held');
    if (held.state === 'held' && others.length > 0) throw new Error(`two hold: ${this.#holder} and ${others[0]![1]}`);
    this.#holds.set(held, this.#holder);
    this.#tally.had++;
    for (let times = this.#random.below(3); times > 0; times--) {
      await this.#pause(this.#random.below(1500));
      await held.renew();
      this.#tally.renewed++;
    }
    await this.#pause(this.#random.below(3000));
    if (held.state === 'lost') this.#tally.lost++;
    if (this.#random.below(2) === 0) await held.release();
    else if (!held.signal.aborted) await new Promise((resolve) => held.signal.addEventListener('abort', resolve));
    this.#holds.delete(held);
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#world.clock.after(ms, () => resolve());
    });
  }
}

async function run(seed: number, tally: Tally): Promise<void> {
  const { world, random } = await storyWorld(seed, 40);
  const holds = new Map<HeldLease, string>();
  const workers = ['a', 'b', 'c'].map((holder) => new Worker(world, new SeededRandom(random.uint32()), holder, tally, holds));
  const trouble: unknown[] = [];
  const running = workers.map((worker) => worker.run().catch((error: unknown) => void trouble.push(error)));
  const storm = new Storm(world, random, {
    steps: 60,
    breaks: 15,
    cuts: 15,
    restarts: 4,
    cutSteps: () => 1 + random.below(12),
    stepMsMax: 500,
    parts: 5,
    spared: [],
    isOver: () => trouble.length > 0,
  });
  await storm.pass();
  for (const worker of workers) worker.isStopped = true;
  if (trouble.length === 0) await world.until(Promise.all(running));
  if (trouble.length > 0) throw trouble[0];
  await world.close();
}

describe('a lease', () => {
  it('B24, C1-3: has one holder at a time under failures, over seeds', async () => {
    const tally: Tally = { had: 0, renewed: 0, lost: 0, expired: 0 };
    await overSeeds(12, (seed) => run(seed, tally));
    expectHappened(tally, 0);
  });

  it('is found to have two holders when the clocks of its contenders do not agree', async () => {
    const create = Object.getOwnPropertyDescriptor(ClientView.prototype, 'create')!.value as ClientView['create'];
    vi.spyOn(ClientView.prototype, 'create').mockImplementation(async function (this: ClientView, path, data, options) {
      const created = await create.call(this, path, data, options);
      return path.endsWith('/lease-') ? { ...created, stat: { ...created.stat, ctime: created.stat.ctime + 3000 } } : created;
    });
    const caught = await findings((seed) => run(seed, { had: 0, renewed: 0, lost: 0, expired: 0 }), { atMost: 20 }).finally(() =>
      vi.restoreAllMocks(),
    );
    const two = expect.stringMatching(/two hold/);
    expect(caught).toEqual(breadth([two], [two, two, two]));
  });
});
