/** One barrier that some processes set and remove, and others wait for. */
import { type Client, KeeperError } from '@tskeeper/client';
import { Barrier, type WaitOptions } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Evidence, Family, FamilyRun } from '../family.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { checkBarrierWaits, type BarrierWait } from './barrier-rules.ts';
import { drawWaitOptions } from './work-under-hold.ts';

export const barriers: Family = {
  description: 'processes put a barrier in place, remove it, and wait until there is none',
  marks: ['a barrier was set', 'a barrier was removed', 'waiting for a barrier timed out', 'an operator wrote to a barrier'],
  drawRun: (random) => new BarrierRun(random),
};

const barrierPath = '/gates/maintenance';

class BarrierRun implements FamilyRun {
  readonly processes: number;
  readonly pauseMsMax: number;
  readonly #isEphemeral: boolean;
  readonly #waits: BarrierWait[] = [];

  constructor(random: SeededRandom) {
    this.processes = 2 + random.below(4);
    this.pauseMsMax = 1 + random.below(200);
    this.#isEphemeral = random.below(2) === 0;
  }

  async turn(process: RecipeProcess, zk: Client): Promise<boolean> {
    const barrier = new Barrier(zk, barrierPath, { data: process.name, ephemeral: this.#isEphemeral });
    const what = process.isHealed ? 0 : process.below(4);
    if (what === 0) {
      await barrier.remove(drawWaitOptions(process));
      process.hitMark('a barrier was removed');
    } else if (what === 1) {
      await barrier.set(drawWaitOptions(process));
      process.hitMark('a barrier was set');
    }
    if (process.isHealed || process.below(2) === 0) await this.#wait(process, zk, barrier);
    return true;
  }

  async #wait(process: RecipeProcess, zk: Client, barrier: Barrier): Promise<void> {
    const fromZxid = zk.lastZxid;
    try {
      await barrier.wait(waitOf(process));
    } catch (error) {
      process.hitMark('waiting for a barrier timed out');
      throw error;
    }
    this.#waits.push({ process: process.name, fromZxid, toZxid: zk.lastZxid });
  }

  /** Wakes the waiters, none of which may continue. */
  async operatorAction(operator: RecipeProcess, zk: Client): Promise<void> {
    try {
      await zk.setData(barrierPath, `since ${operator.nowMs}`);
    } catch (error) {
      if (KeeperError.is(error, 'NoNode')) return;
      throw error;
    }
    operator.hitMark('an operator wrote to a barrier');
  }

  check({ history }: Evidence): readonly string[] {
    return checkBarrierWaits(this.#waits, barrierPath, history);
  }
}

/** If all wait after they have seen the barrier set, they would wait forever. */
function waitOf(process: RecipeProcess): WaitOptions {
  return { timeoutMs: 4000, signal: process.stopping, ...drawWaitOptions(process) };
}
