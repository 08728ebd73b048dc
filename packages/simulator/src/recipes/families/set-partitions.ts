/**
 * A set that members share: each item is worked on under its lock, and handed over when members
 * join and leave.
 */
import type { Client } from '@tskeeper/client';
import { type OwnPartition, SetPartitioner } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Evidence, Family, RecipeStory } from '../family.ts';
import { Holds } from '../holds.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { linePath, pathsBelow, storePath } from './line-of-story.ts';

export const setPartitions: Family = {
  what: 'processes share a set of items, and work on each under its lock',
  marks: ['an item was handed on', 'a share was acquired', 'a hold was lost'],
  draw: (random) => new SetPartitionStory(random),
};

const kind = '__lock__';

class SetPartitionStory implements RecipeStory {
  readonly processes: number;
  readonly restMsMax: number;
  /** By item. */
  readonly #holds: ReadonlyMap<string, Holds>;
  readonly #timeBoundaryMs: number;

  constructor(random: SeededRandom) {
    this.processes = 2 + random.below(3);
    this.restMsMax = 1 + random.below(300);
    this.#timeBoundaryMs = 50 + random.below(400);
    this.#holds = new Map(['a', 'b', 'c', 'd', 'e'].map((item) => [item, new Holds()]));
  }

  prepare(zk: Client): Promise<unknown> {
    return zk.ensurePath(storePath);
  }

  /** Is a member for a while. */
  async turn(process: RecipeProcess, zk: Client): Promise<boolean> {
    const work = (partition: OwnPartition) => this.#work(process, zk, partition);
    const options = { timeBoundaryMs: this.#timeBoundaryMs };
    await using partitioner = new SetPartitioner(zk, linePath, process.name, this.#holds.keys(), work, options);
    await partitioner.ready({ timeoutMs: 6000 });
    process.note('a share was acquired');
    await process.pause(process.below(1500));
    return true;
  }

  async #work(process: RecipeProcess, zk: Client, { item, held, signal }: OwnPartition): Promise<void> {
    const holds = this.#holds.get(item)!;
    const hold = holds.enter(process, zk, held, kind);
    try {
      while (!signal.aborted) {
        if (hold.isLost) process.complain(`${held.path} is lost, but the work on ${item} was not told`);
        // Some write rarely.
        if (!hold.isSuspended && !hold.isLost && process.below(3) === 0) {
          holds.witness.write(hold);
          await hold.write(storePath);
        }
        await process.pause(20 + process.below(200));
      }
      process.note('an item was handed on');
    } catch (error) {
      // An error ends the work on this item, not the share.
      process.met(error);
    } finally {
      hold.over();
    }
  }

  async left(zk: Client): Promise<readonly string[]> {
    const parents = [`${linePath}/party`, ...[...this.#holds.keys()].map((item) => `${linePath}/locks/${item}`)];
    return (await Promise.all(parents.map((path) => pathsBelow(zk, path)))).flat();
  }

  judge({ history, recording }: Evidence): readonly string[] {
    return [...this.#holds].flatMap(([item, holds]) =>
      holds.judge({ path: `${linePath}/locks/${item}`, kinds: [kind], store: storePath, goesFirst: () => true }, history, recording),
    );
  }
}
