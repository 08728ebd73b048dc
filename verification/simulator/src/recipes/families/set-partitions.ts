/**
 * A set that members share: each item is worked on under its lock, and handed over when members
 * join and leave.
 */
import type { Client } from '@tskeeper/client';
import { type OwnedPartition, SetPartitioner } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Evidence, Family, FamilyRun } from '../family.ts';
import { MutualExclusionChecker } from '../mutual-exclusion.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { waitQueuePath, childPaths, storePath } from './family-helpers.ts';

export const setPartitions: Family = {
  description: 'processes share a set of items, and work on each under its lock',
  marks: ['a partition changed hands', 'a partition was acquired', 'a hold was lost'],
  drawRun: (random) => new SetPartitionRun(random),
};

const kind = '__lock__';

class SetPartitionRun implements FamilyRun {
  readonly processes: number;
  readonly pauseMsMax: number;
  /** By item. */
  readonly #holds: ReadonlyMap<string, MutualExclusionChecker>;
  readonly #timeBoundaryMs: number;

  constructor(random: SeededRandom) {
    this.processes = 2 + random.below(3);
    this.pauseMsMax = 1 + random.below(300);
    this.#timeBoundaryMs = 50 + random.below(400);
    this.#holds = new Map(['a', 'b', 'c', 'd', 'e'].map((item) => [item, new MutualExclusionChecker()]));
  }

  prepare(zk: Client): Promise<unknown> {
    return zk.ensurePath(storePath);
  }

  /** Is a member for a while. */
  async turn(process: RecipeProcess, zk: Client): Promise<boolean> {
    const work = (partition: OwnedPartition) => this.#work(process, zk, partition);
    const options = { timeBoundaryMs: this.#timeBoundaryMs };
    await using partitioner = new SetPartitioner(zk, waitQueuePath, process.name, this.#holds.keys(), work, options);
    await partitioner.ready({ timeoutMs: 6000 });
    process.hitMark('a partition was acquired');
    await process.sleep(process.below(1500));
    return true;
  }

  async #work(process: RecipeProcess, zk: Client, { item, hold: claimed, signal }: OwnedPartition): Promise<void> {
    const holds = this.#holds.get(item)!;
    const hold = holds.acquired(process, zk, claimed, kind);
    try {
      while (!signal.aborted) {
        if (hold.isLost) process.reportViolation(`${hold.path} is lost, but the signal of the work on ${item} was not aborted`);
        // Some write rarely.
        if (!hold.isSuspended && !hold.isLost && process.below(3) === 0) {
          holds.fencedStore.write(hold);
          await hold.write(storePath);
        }
        await process.sleep(20 + process.below(200));
      }
      process.hitMark('a partition changed hands');
    } catch (error) {
      // An error ends the work on this item, not the share.
      process.handleError(error);
    } finally {
      hold.end();
    }
  }

  async leftovers(zk: Client): Promise<readonly string[]> {
    const parents = [`${waitQueuePath}/party`, ...[...this.#holds.keys()].map((item) => `${waitQueuePath}/locks/${item}`)];
    return (await Promise.all(parents.map((path) => childPaths(zk, path)))).flat();
  }

  check({ history, recording }: Evidence): readonly string[] {
    return [...this.#holds].flatMap(([item, holds]) =>
      holds.check(
        { path: `${waitQueuePath}/locks/${item}`, kinds: [kind], storePath: storePath, goesFirst: () => true },
        history,
        recording,
      ),
    );
  }
}
