/**
 * One seed of a family: an ensemble, processes that live by the family's recipes, and faults; then
 * everything heals, each process must succeed, and the programs end and must leave nothing.
 * The family judges what they did.
 */
import type { Client } from '@tskeeper/client';
import type { Millis } from '@tskeeper/protocol';
import { SeededRandom } from '@tskeeper/runtime';
import { newPlan, type RecipePlan } from './recipe-plan.ts';
import type { Recording } from '../record/recording.ts';
import { plant } from '../story/plant.ts';
import { Stage } from '../story/stage.ts';
import { wallOffsetMs } from '../world/virtual-clock.ts';
import { VirtualWorld } from '../world/virtual-world.ts';
import type { RecipeStory } from './family.ts';
import { families, type FamilyName, familyNames } from './families.ts';
import { History } from './history.ts';
import { recipeFaults } from './recipe-faults.ts';
import { RecipeProcess } from './recipe-process.ts';
import { Seat } from './seat.ts';

/**
 * From the end of all faults: elections, sessions that have yet to expire, and the turns of all
 * processes.
 */
const turnsMs = 60_000;
const turnsWanted = 2;
/** Enough for an event to reach every process without faults. */
const earsMs = 500;
/** Enough for programs to end, and for what they leave to disappear. */
const endMs = 30_000;
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

/** Runs a seed to its end, and judges it. */
export async function runRecipeSeed(seed: number, { family, onEvent }: RecipeRunOptions = {}): Promise<RecipeOutcome> {
  const name = family ?? familyNames[seed % familyNames.length]!;
  const random = new SeededRandom(seed);
  const story = families[name].draw(random);
  const run = new RecipeRun(seed, random, story, newPlan(random));
  run.world.onEvent = onEvent;
  await run.run();
  const { world, stage } = run;
  const { recording } = world;
  const judged = story.judge({ history: new History(recording), recording });
  const findings = [...recording.faults.map((fault) => `story: ${fault}`), ...judged];
  return { seed, family: name, world, recording, findings, marks: stage.marks };
}

class RecipeRun {
  readonly world: VirtualWorld;
  readonly stage: Stage;
  readonly #random: SeededRandom;
  readonly #story: RecipeStory;
  readonly #plan: RecipePlan;
  readonly #seats: Seat[] = [];
  readonly #operator: RecipeProcess;
  /** The number of interventions in progress. */
  #handsOn = 0;

  constructor(seed: number, random: SeededRandom, story: RecipeStory, plan: RecipePlan) {
    this.#random = random;
    this.#story = story;
    this.#plan = plan;
    const { servers, ensemble, core, options } = plan;
    this.world = new VirtualWorld(seed, { servers, ...(ensemble !== undefined && { ensemble }), core, options });
    this.stage = new Stage(this.world, random);
    const operator = { name: 'operator', address: '10.8.0.1', number: -1, timeoutMs: operatorTimeoutMs, requestTimeoutMs: undefined };
    this.#operator = new RecipeProcess(this.stage, new SeededRandom(random.uint32()), operator);
  }

  async run(): Promise<void> {
    const { world, stage } = this;
    await this.#begin();
    this.#planFault();
    if (this.#story.meddle !== undefined) this.#planMeddling();
    await world.run(this.#plan.safetyMs);
    stage.heal();
    if ((await this.#handsOff()) && (await this.#everyoneHasTurns())) await this.#end();
    await world.readLogs();
  }

  async #begin(): Promise<void> {
    const { world, stage } = this;
    const story = this.#story;
    const { processes, restMsMax, beginning, wallClocksAgree } = story;
    if (beginning !== undefined) {
      for (const server of world.servers) await plant(world, server, { zxid: beginning.length, wallMs: plantedMs, znodes: beginning });
    }
    if (wallClocksAgree === true) for (const server of world.servers) server.setWallClock(wallOffsetMs);
    for (const server of world.servers) stage.boot(server);
    if (story.prepare !== undefined) await this.#byOperator((zk) => story.prepare!(zk));
    for (let number = 0; number < processes; number++) {
      const timeoutMs = this.#plan.timeoutsMs[number % this.#plan.timeoutsMs.length]!;
      const turn = (process: RecipeProcess, zk: Client) => story.turn(process, zk);
      const { requestTimeoutMs } = this.#plan;
      const seat = new Seat(stage, new SeededRandom(this.#random.uint32()), { number, timeoutMs, requestTimeoutMs, restMsMax, turn });
      this.#seats.push(seat);
      stage.actors.push(seat);
    }
  }

  /** Repeats until it succeeds. */
  async #byOperator<Result>(work: (zk: Client) => Promise<Result>): Promise<Result> {
    const operator = this.#operator;
    const trying = async () => {
      for (;;) {
        try {
          return await work(await operator.session());
        } catch {
          await operator.pause(100);
        }
      }
    };
    return await this.world.until(trying(), endMs);
  }

  #planFault(): void {
    const { faultIntervalMs } = this.#plan;
    const faults = this.#plan.faults.filter((name) => name !== 'wallClock' || this.#story.wallClocksAgree !== true);
    if (faults.length === 0) return;
    this.stage.after(1 + this.#random.below(faultIntervalMs * 2), 'fault', undefined, () => {
      if (this.stage.isHealed) return;
      const name = faults[this.#random.below(faults.length)]!;
      this.stage.note(`fault ${name}`);
      recipeFaults[name].strike(this.stage, this.#random);
      this.#planFault();
    });
  }

  #planMeddling(): void {
    this.stage.after(1 + this.#random.below(this.#plan.meddlingIntervalMs * 2), 'meddle', undefined, () => {
      if (this.stage.isHealed) return;
      void this.#meddle();
      this.#planMeddling();
    });
  }

  async #meddle(): Promise<void> {
    const operator = this.#operator;
    this.#handsOn++;
    await operator.once(async (zk) => await this.#story.meddle!(operator, zk));
    this.#handsOn--;
  }

  /**
   * Waits until the operator's interventions are complete and every process has learned of them:
   * what it deletes later would be missing when programs end.
   */
  async #handsOff(): Promise<boolean> {
    const { world, stage } = this;
    const isOff = await world.runUntil(() => this.#handsOn === 0, turnsMs);
    if (isOff) await world.run(earsMs);
    else stage.complain(`the operator has not finished within ${turnsMs} ms after the last fault`);
    return isOff;
  }

  /**
   * After the healing the ensemble must be complete and every process must succeed, within bounds.
   */
  async #everyoneHasTurns(): Promise<boolean> {
    const { world, stage } = this;
    const before = this.#seats.map(({ turns }) => turns);
    const isServed = (seat: Seat, at: number) => seat.turns - before[at]! >= turnsWanted;
    if (await world.runUntil(() => stage.isWhole && this.#seats.every(isServed), turnsMs)) return true;
    const waiting = this.#seats.filter((seat, at) => !isServed(seat, at)).map(({ name }) => name);
    const roles = world.servers.map(({ name, role }) => `${name} is ${role ?? 'down'}`);
    stage.complain(`no turn for ${waiting.join(', ')} within ${turnsMs} ms after the last fault; ${roles.join(', ')}`);
    return false;
  }

  async #end(): Promise<void> {
    const { world, stage } = this;
    for (const seat of this.#seats) seat.stop();
    this.#operator.stop();
    if (!(await world.runUntil(() => this.#seats.every(({ isDone }) => isDone), endMs))) {
      const names = this.#seats.filter(({ isDone }) => !isDone).map(({ name }) => name);
      stage.complain(`${names.join(', ')} did not end within ${endMs} ms`);
      return;
    }
    // Sessions of crashed processes expire, and what could not be deleted at once is deleted by
    // now.
    await world.run(Math.max(...this.#plan.timeoutsMs) * 2);
    const story = this.#story;
    if (story.left !== undefined) {
      const names = await this.#byOperator((zk) => story.left!(zk));
      if (names.length > 0) stage.complain(`not deleted at the end: ${names.join(', ')}`);
    }
    for (const { process } of [...this.#seats, { process: this.#operator }]) {
      const closing = process.client?.close();
      if (closing !== undefined) await world.until(closing, endMs);
    }
  }
}

const plantedMs = 1_699_999_999_000;
