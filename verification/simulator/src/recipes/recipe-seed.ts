/**
 * One seed of a family: an ensemble, processes that live by the family's recipes, and faults; then
 * everything heals, each process must succeed, and the programs end and must leave nothing. The
 * family checks what they did.
 */
import type { Client } from '@tskeeper/client';
import type { Millis } from '@tskeeper/protocol';
import { SeededRandom } from '@tskeeper/runtime';
import { drawRecipePlan, type RecipePlan } from './recipe-plan.ts';
import type { Recording } from '../record/recording.ts';
import { writeSeedState } from '../run/seed-state.ts';
import { Run } from '../run/run.ts';
import { wallOffsetMs } from '../world/virtual-clock.ts';
import { VirtualWorld } from '../world/virtual-world.ts';
import type { FamilyRun } from './family.ts';
import { families, type FamilyName, familyNames } from './families.ts';
import { ZnodeHistory } from './znode-history.ts';
import { recipeFaults } from './recipe-faults.ts';
import { RecipeProcess } from './recipe-process.ts';
import { ProcessSlot } from './process-slot.ts';

/**
 * From the end of all faults: elections, sessions that have yet to expire, and the turns of all
 * processes.
 */
const turnsTimeoutMs = 60_000;
const turnsMin = 2;
/** Enough for an event to reach every process without faults. */
const deliveryMs = 500;
/** Enough for programs to end, and for what they leave to disappear. */
const endTimeoutMs = 30_000;
const operatorTimeoutMs = 4000;

export interface RecipeOutcome {
  readonly seed: number;
  readonly family: FamilyName;
  readonly world: VirtualWorld;
  readonly recording: Recording;
  readonly findings: readonly string[];
  readonly marks: ReadonlyMap<string, number>;
}

export interface RecipeRunOptions {
  /** Default: the families take turns, by seed. */
  readonly family?: FamilyName | undefined;
  readonly onEvent?: ((what: string, elapsedMs: Millis) => void) | undefined;
}

/** Runs a seed to its end, and checks it. */
export async function runRecipeSeed(seed: number, { family, onEvent }: RecipeRunOptions = {}): Promise<RecipeOutcome> {
  const name = family ?? familyNames[seed % familyNames.length]!;
  const random = new SeededRandom(seed);
  const familyRun = families[name].drawRun(random);
  const seedRun = new RecipeSeedRun(seed, random, familyRun, drawRecipePlan(random));
  seedRun.world.onEvent = onEvent;
  await seedRun.execute();
  const { world, run } = seedRun;
  const { recording } = world;
  const judged = familyRun.check({ history: new ZnodeHistory(recording), recording });
  const findings = [...recording.violations.map((fault) => `run: ${fault}`), ...judged];
  return { seed, family: name, world, recording, findings, marks: run.marks };
}

class RecipeSeedRun {
  readonly world: VirtualWorld;
  readonly run: Run;
  readonly #random: SeededRandom;
  readonly #familyRun: FamilyRun;
  readonly #plan: RecipePlan;
  readonly #slots: ProcessSlot[] = [];
  readonly #operator: RecipeProcess;
  /** The number of interventions in progress. */
  #pendingOperatorActions = 0;

  constructor(seed: number, random: SeededRandom, familyRun: FamilyRun, plan: RecipePlan) {
    this.#random = random;
    this.#familyRun = familyRun;
    this.#plan = plan;
    const { servers, ensemble, core, options } = plan;
    this.world = new VirtualWorld(seed, { servers, ...(ensemble !== undefined && { ensemble }), core, options });
    this.run = new Run(this.world, random);
    const operator = { name: 'operator', address: '10.8.0.1', number: -1, timeoutMs: operatorTimeoutMs, requestTimeoutMs: undefined };
    this.#operator = new RecipeProcess(this.run, new SeededRandom(random.uint32()), operator);
  }

  async execute(): Promise<void> {
    const { world, run } = this;
    await this.#begin();
    this.#scheduleFault();
    if (this.#familyRun.operatorAction !== undefined) this.#scheduleOperatorAction();
    await world.run(this.#plan.safetyMs);
    run.heal();
    if ((await this.#waitForOperator()) && (await this.#allComplete())) await this.#end();
    await world.readLogs();
  }

  async #begin(): Promise<void> {
    const { world, run } = this;
    const familyRun = this.#familyRun;
    const { processes, pauseMsMax, seedZnodes, wallClocksAgree } = familyRun;
    if (seedZnodes !== undefined) {
      for (const server of world.servers)
        await writeSeedState(world, server, { zxid: seedZnodes.length, wallMs: seedStateMs, znodes: seedZnodes });
    }
    if (wallClocksAgree === true) for (const server of world.servers) server.setWallClock(wallOffsetMs);
    for (const server of world.servers) run.boot(server);
    if (familyRun.prepare !== undefined) await this.#asOperator((zk) => familyRun.prepare!(zk));
    for (let number = 0; number < processes; number++) {
      const timeoutMs = this.#plan.timeoutsMs[number % this.#plan.timeoutsMs.length]!;
      const turn = (process: RecipeProcess, zk: Client) => familyRun.turn(process, zk);
      const { requestTimeoutMs } = this.#plan;
      const slot = new ProcessSlot(run, new SeededRandom(this.#random.uint32()), { number, timeoutMs, requestTimeoutMs, pauseMsMax, turn });
      this.#slots.push(slot);
      run.actors.push(slot);
    }
  }

  /** Repeats until it succeeds. */
  async #asOperator<Result>(work: (zk: Client) => Promise<Result>): Promise<Result> {
    const operator = this.#operator;
    const trying = async () => {
      for (;;) {
        try {
          return await work(await operator.session());
        } catch {
          await operator.sleep(100);
        }
      }
    };
    return await this.world.until(trying(), endTimeoutMs);
  }

  #scheduleFault(): void {
    const { faultIntervalMs } = this.#plan;
    const faults = this.#plan.faults.filter((name) => name !== 'wallClock' || this.#familyRun.wallClocksAgree !== true);
    if (faults.length === 0) return;
    this.run.schedule(1 + this.#random.below(faultIntervalMs * 2), 'fault', undefined, () => {
      if (this.run.isHealed) return;
      const name = faults[this.#random.below(faults.length)]!;
      this.run.hitMark(`fault ${name}`);
      recipeFaults[name].inject(this.run, this.#random);
      this.#scheduleFault();
    });
  }

  #scheduleOperatorAction(): void {
    this.run.schedule(1 + this.#random.below(this.#plan.operatorIntervalMs * 2), 'meddle', undefined, () => {
      if (this.run.isHealed) return;
      void this.#operatorAction();
      this.#scheduleOperatorAction();
    });
  }

  async #operatorAction(): Promise<void> {
    const operator = this.#operator;
    this.#pendingOperatorActions++;
    await operator.once(async (zk) => await this.#familyRun.operatorAction!(operator, zk));
    this.#pendingOperatorActions--;
  }

  /**
   * Waits until the operator's interventions are complete and every process has learned of them:
   * what it deletes later would be missing when programs end.
   */
  async #waitForOperator(): Promise<boolean> {
    const { world, run } = this;
    const isOff = await world.runUntil(() => this.#pendingOperatorActions === 0, turnsTimeoutMs);
    if (isOff) await world.run(deliveryMs);
    else run.reportViolation(`the operator has not finished within ${turnsTimeoutMs} ms after the last fault`);
    return isOff;
  }

  /**
   * After the healing the ensemble must be complete and every process must succeed, within bounds.
   */
  async #allComplete(): Promise<boolean> {
    const { world, run } = this;
    const before = this.#slots.map(({ turns }) => turns);
    const isServed = (slot: ProcessSlot, at: number) => slot.turns - before[at]! >= turnsMin;
    if (await world.runUntil(() => run.allServing && this.#slots.every(isServed), turnsTimeoutMs)) return true;
    const waiting = this.#slots.filter((slot, at) => !isServed(slot, at)).map(({ name }) => name);
    const roles = world.servers.map(({ name, role }) => `${name} is ${role ?? 'down'}`);
    run.reportViolation(`no turn for ${waiting.join(', ')} within ${turnsTimeoutMs} ms after the last fault; ${roles.join(', ')}`);
    return false;
  }

  async #end(): Promise<void> {
    const { world, run } = this;
    for (const slot of this.#slots) slot.stop();
    this.#operator.stop();
    if (!(await world.runUntil(() => this.#slots.every(({ isDone }) => isDone), endTimeoutMs))) {
      const names = this.#slots.filter(({ isDone }) => !isDone).map(({ name }) => name);
      run.reportViolation(`${names.join(', ')} did not end within ${endTimeoutMs} ms`);
      return;
    }
    // Sessions of crashed processes expire, and what could not be deleted at once is deleted by
    // now.
    await world.run(Math.max(...this.#plan.timeoutsMs) * 2);
    const familyRun = this.#familyRun;
    if (familyRun.leftovers !== undefined) {
      const names = await this.#asOperator((zk) => familyRun.leftovers!(zk));
      if (names.length > 0) run.reportViolation(`not deleted at the end: ${names.join(', ')}`);
    }
    for (const { process } of [...this.#slots, { process: this.#operator }]) {
      const closing = process.client?.close();
      if (closing !== undefined) await world.until(closing, endTimeoutMs);
    }
  }
}

const seedStateMs = 1_699_999_999_000;
