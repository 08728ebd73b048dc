/**
 * What set partitioners guarantee, over seeds that decide which members join and leave, when
 * connections break, stall and stay away until the session has expired, when the server dies, and
 * when a member or a lock is deleted by hand:
 *
 * - no two work on one item, as far as they know, except in the moments before one learns that its
 *   lock was deleted by hand;
 * - writes through holds are in the order of the tokens;
 * - after the faults each item is owned by the member that the plan says, and nothing is left
 *   behind by those that close.
 */
import { type Client, connect, KeeperError, op } from '@tskeeper/client';
import { SeededRandom } from '@tskeeper/runtime';
import { describe, it, vi } from 'vitest';
import { expectHappened } from '../../../../test/breadth.ts';
import type { ClientWorld } from '../../../client/test/support/client-world.ts';
import { type Hold, type OwnedPartition, RecipeError, SetPartitioner } from '../../src/index.ts';
import { PartitionClaim } from '../../src/groups/partition-claim.ts';
import { QueueNode } from '../../src/wait-queue/wait-queue.ts';
import { assertInOrder, entriesOf } from '../support/log.ts';
import { type Canary, itFindsOut, overSeeds } from '../support/seeds.ts';
import { Storm, storyWorld } from '../support/storm.ts';

const path = '/set';
const items = ['a', 'b', 'c', 'd', 'e'];

class Tally {
  worked = 0;
  revoked = 0;
  lost = 0;
  left = 0;
  ended = 0;
  writes = 0;
  stale = 0;
  byHand = 0;
}

interface Story {
  readonly world: ClientWorld;
  readonly tally: Tally;
  readonly deleted: Set<string>;
  readonly working: Map<string, Set<Hold>>;
  readonly trouble: unknown[];
  isQuiet: boolean;
}

class Worker {
  readonly name: string;
  readonly #story: Story;
  readonly #random: SeededRandom;
  client: Client | undefined;
  partitioner: SetPartitioner | undefined;
  #stopped = false;

  constructor(name: string, story: Story, random: SeededRandom) {
    this.name = name;
    this.#story = story;
    this.#random = random;
  }

  async run(): Promise<void> {
    while (!this.#stopped) {
      try {
        await this.#life();
      } catch (error) {
        if (!(error instanceof RecipeError) && !KeeperError.is(error, 'SessionExpired', 'ConnectionLoss')) throw error;
        this.#story.tally.ended++;
      }
      await this.pause(this.#random.below(1000));
    }
  }

  stop(): void {
    this.#stopped = true;
  }

  async #life(): Promise<void> {
    const { world, tally } = this.#story;
    this.client = await connect('server:2181', world.options({ sessionTimeoutMs: 3000, connectTimeoutMs: Infinity }));
    await using partitioner = new SetPartitioner(this.client, path, this.name, items, (each) => this.#work(each), { timeBoundaryMs: 400 });
    this.partitioner = partitioner;
    for (let left = 1000 + this.#random.below(9000); left > 0 || this.#story.isQuiet; left -= 500) {
      if (this.#stopped || partitioner.signal.aborted) break;
      await this.pause(500);
    }
    if (partitioner.signal.aborted) tally.ended++;
    else tally.left++;
    await partitioner.close();
    await this.client.close();
  }

  async #work({ item, hold, signal }: OwnedPartition): Promise<void> {
    const { tally, working, deleted, trouble } = this.#story;
    const others = working.get(item) ?? new Set();
    working.set(item, others);
    for (const other of others) {
      if (other.state === 'lost' || deleted.has(other.path)) continue;
      trouble.push(new Error(`two work on ${item}: ${other.path} (${other.state}) and ${hold.path}`));
    }
    others.add(hold);
    tally.worked++;
    while (!signal.aborted) {
      await this.pause(300 + this.#random.below(1700));
      await this.#write(item, hold);
    }
    tally[(signal.reason as RecipeError).code === 'Revoked' ? 'revoked' : 'lost']++;
    // Some end slowly.
    if (this.#random.below(3) === 0) {
      await this.pause(this.#random.below(1500));
      await this.#write(item, hold);
    }
    others.delete(hold);
  }

  async #write(item: string, held: Hold): Promise<void> {
    try {
      await held.multi([op.create(`/log/${item}/e-`, String(held.fencingToken), { mode: 'persistentSequential' })]);
      this.#story.tally.writes++;
    } catch {
      this.#story.tally.stale++;
    }
  }

  pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#story.world.clock.after(ms, () => resolve());
    });
  }
}

/** As many items for each as the plan says, and each with one owner. */
function isShared(workers: readonly Worker[]): boolean {
  const names = workers.map(({ name }) => name).sort();
  return workers.every(({ name, partitioner }) => {
    const share = items.filter((_item, index) => index % names.length === names.indexOf(name));
    const owned = partitioner?.owned.map(({ item }) => item).sort();
    return partitioner?.state === 'acquired' && owned?.join() === share.join();
  });
}

async function run(seed: number, tally: Tally): Promise<void> {
  const { world, random } = await storyWorld(seed, 30);
  const observer = await world.connect({ sessionTimeoutMs: 40_000 });
  await world.until(Promise.all(items.map((item) => observer.ensurePath(`/log/${item}`))));
  const story: Story = { world, tally, deleted: new Set(), working: new Map(), trouble: [], isQuiet: false };
  const workers = ['w1', 'w2', 'w3'].map((name) => new Worker(name, story, new SeededRandom(random.uint32())));
  const running = workers.map((worker) => worker.run());
  for (const each of running) each.catch((error: unknown) => void story.trouble.push(error));
  const deleteByHand = async () => {
    const parent = random.below(3) === 0 ? `${path}/party` : `${path}/locks/${items[random.below(items.length)]}`;
    const { children } = await observer.getChildren(parent);
    const victim = children[random.below(Math.max(1, children.length))];
    if (victim === undefined) return;
    story.deleted.add(`${parent}/${victim}`);
    tally.byHand++;
    await observer.delete(`${parent}/${victim}`);
  };
  const storm = new Storm(world, random, {
    steps: 30,
    breaks: 15,
    cuts: 18,
    restarts: 3,
    mishaps: [[14, () => void deleteByHand().catch(() => undefined)]],
    cutSteps: () => 1 + random.below(25),
    stepMsMax: 800,
    parts: 4,
    isOver: () => story.trouble.length > 0,
  });
  await storm.pass();
  story.isQuiet = true;
  for (let leftMs = 60_000; story.trouble.length === 0 && !isShared(workers); leftMs -= 200) {
    if (leftMs === 0) throw new Error('the items are still not shared as planned');
    await world.pass(200, 200);
  }
  for (const worker of workers) worker.stop();
  if (story.trouble.length > 0) throw story.trouble[0];
  await world.until(Promise.all(running));
  for (const item of items) assertInOrder(item, await entriesOf(world, observer, `/log/${item}`));
  for (const parent of ['party', ...items.map((item) => `locks/${item}`)]) {
    const stat = await world.until(observer.exists(`${path}/${parent}`));
    if (stat !== null && stat.numChildren > 0) throw new Error(`left behind: ${stat.numChildren} of ${parent}`);
  }
  await world.close();
}

describe('members that share a set', () => {
  it('B25: never work on the same item at the same time, and own all items in the end, over seeds', async () => {
    const tally = new Tally();
    await overSeeds(12, (seed) => run(seed, tally));
    expectHappened(tally, 3);
  });

  const release = Object.getOwnPropertyDescriptor(PartitionClaim.prototype, 'release')!.value as PartitionClaim['release'];
  const canaries: Record<string, Canary> = {
    'does not wait for the lock': {
      plant: () => vi.spyOn(QueueNode.prototype, 'waitForTurn').mockResolvedValue(),
      finds: /two work on/,
    },
    'keeps items of the share of another': {
      plant: () =>
        vi.spyOn(PartitionClaim.prototype, 'release').mockImplementation(function (this: PartitionClaim, reason) {
          if ((reason as RecipeError).code !== 'Revoked') release.call(this, reason);
        }),
      finds: /still not shared/,
    },
    'releases an item before its work is done': {
      plant: () =>
        vi.spyOn(PartitionClaim.prototype, 'release').mockImplementation(function (this: PartitionClaim, reason) {
          void this.partition?.hold.release();
          release.call(this, reason);
        }),
      finds: /two work on/,
    },
  };

  itFindsOut(canaries, (seed) => run(seed, new Tally()), { enough: 1, atMost: 20 });
});
