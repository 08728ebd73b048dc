/**
 * One event, which lets all waiters pass until it is reset, or one waiter for each time it is set.
 */
import type { Client } from '@tskeeper/client';
import { EventHandle, type WaitOptions } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Evidence, Family, FamilyRun } from '../family.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { checkWaitCalls, checkSetCalls, type WaitCall, type SetCall, recordOutcome } from './event-rules.ts';
import { drawWaitOptions } from './work-under-hold.ts';
import { deleteAsOperator, childPaths } from './family-helpers.ts';

export const events: Family = {
  description: 'processes set an event, and wait for it',
  marks: [
    'an event released a waiter',
    'waiting for an event timed out',
    'an event was set',
    'an event was reset',
    'an operator removed a waiter of an event',
  ],
  drawRun: (random) => new EventRun(random),
};

const eventPath = '/events/loaded';

class EventRun implements FamilyRun {
  readonly processes: number;
  readonly pauseMsMax: number;
  readonly #autoReset: boolean;
  readonly #waitCalls: WaitCall[] = [];
  readonly #setCalls: SetCall[] = [];
  readonly #waiting = new Set<RecipeProcess>();

  constructor(random: SeededRandom) {
    this.processes = 2 + random.below(4);
    this.pauseMsMax = 1 + random.below(100);
    this.#autoReset = random.below(4) > 0;
  }

  async turn(process: RecipeProcess, zk: Client): Promise<boolean> {
    const event = this.#eventOf(zk);
    if (process.isHealed || process.below(2) === 0) {
      if (!process.isHealed) this.#loseAnswers(process);
      await this.#set(process, zk, event, waitOf(process));
    }
    // Sometimes during a wait of another process.
    if (!process.isHealed && process.below(3) === 0) {
      await this.#reset(process, event, waitOf(process));
    }
    if (process.isHealed || process.below(3) > 0) await this.#wait(process, zk, event);
    return true;
  }

  #eventOf(zk: Client): EventHandle {
    return new EventHandle(zk, eventPath, { autoReset: this.#autoReset });
  }

  async #set(process: RecipeProcess, zk: Client, event: EventHandle, options: WaitOptions): Promise<void> {
    const setting: SetCall = {
      process: process.name,
      session: zk.sessionId,
      fromZxid: zk.lastZxid,
      toZxid: undefined,
      state: 'open',
    };
    this.#setCalls.push(setting);
    await recordOutcome(setting, zk, event.set(options));
    process.hitMark('an event was set');
  }

  /** Loses replies to the process that sets the event, and to those about to take it. */
  #loseAnswers(setter: RecipeProcess): void {
    for (const process of [setter, ...this.#waiting])
      if (setter.below(3) === 0) process.clock.after(setter.below(30), () => process.wire?.forward.resetAfter(0));
  }

  /**
   * A late reset, during the healing, is made up for: processes that have set the event by then
   * would otherwise wait forever.
   */
  async #reset(process: RecipeProcess, event: EventHandle, options?: WaitOptions): Promise<void> {
    try {
      await event.reset(options);
      process.hitMark('an event was reset');
    } finally {
      if (process.isHealed) {
        const zk = await process.session();
        await this.#set(process, zk, this.#eventOf(zk), { signal: process.stopping });
      }
    }
  }

  async #wait(process: RecipeProcess, zk: Client, event: EventHandle): Promise<void> {
    const passage: WaitCall = { process: process.name, session: zk.sessionId, fromZxid: zk.lastZxid, toZxid: undefined };
    this.#waitCalls.push(passage);
    this.#waiting.add(process);
    try {
      await event.wait(waitOf(process));
    } catch (error) {
      process.hitMark('waiting for an event timed out');
      throw error;
    } finally {
      this.#waiting.delete(process);
    }
    passage.toZxid = zk.lastZxid;
    process.hitMark('an event released a waiter');
  }

  async operatorAction(operator: RecipeProcess, zk: Client): Promise<void> {
    if (operator.below(2) === 0) {
      await this.#reset(operator, this.#eventOf(zk));
      return;
    }
    const victim = (await waiting(zk))[operator.below(2)];
    if (victim === undefined) return;
    operator.hitMark('an operator removed a waiter of an event');
    await deleteAsOperator(zk, victim);
  }

  leftovers(zk: Client): Promise<readonly string[]> {
    return waiting(zk);
  }

  check({ history }: Evidence): readonly string[] {
    return [
      ...checkWaitCalls(this.#waitCalls, eventPath, this.#autoReset, history),
      ...checkSetCalls(this.#setCalls, eventPath, this.#autoReset, history),
    ];
  }
}

function waitOf(process: RecipeProcess): WaitOptions {
  // If all wait and none sets it, they would wait forever.
  return process.isHealed ? { signal: process.stopping } : { timeoutMs: 4000, ...drawWaitOptions(process) };
}

/** The znodes of the waiters. */
async function waiting(zk: Client): Promise<readonly string[]> {
  return (await childPaths(zk, eventPath)).filter((path) => path !== `${eventPath}/set`);
}
