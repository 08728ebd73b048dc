/**
 * One run of a seed. First clients work while faults strike; then everything is healed, and the
 * system must become quiet and make progress; then the result is verified.
 */
import { AddWatchMode, CreateMode, ErrorCode, type Millis, openAcl } from '@tskeeper/protocol';
import { SeededRandom } from '@tskeeper/runtime';
import type { Actor } from '../clients/actor.ts';
import { RawClient } from '../clients/raw-client.ts';
import { RealClient } from '../clients/real-client.ts';
import { Workload } from '../clients/workload.ts';
import { faults } from '../faults/faults.ts';
import type { Recording } from '../record/recording.ts';
import type { ServerHost } from '../world/server-host.ts';
import { isQuorum } from '../record/quorum-rule.ts';
import { snappy } from '../world/snappy.ts';
import { VirtualWorld } from '../world/virtual-world.ts';
import { Flood } from './flood.ts';
import { plant } from './plant.ts';
import { Proof } from './proof.ts';
import { isIdle, Stage } from './stage.ts';
import { type ClientPlan, drawPlan, kindsOf, type LinksPlan, type Plan } from './swarm.ts';

export interface Outcome {
  readonly seed: number;
  readonly recording: Recording;
  readonly world: VirtualWorld;
  /** How often each fault struck, and what else was noted. */
  readonly marks: ReadonlyMap<string, number>;
  /** The kinds of load and of servers that the seed chose. */
  readonly kinds?: readonly string[];
}

/**
 * Long enough for everything that waits for something, short enough to notice what waits for
 * nothing.
 */
const healingMs = 30_000;
const progressMs = 5000;
/**
 * A client gives a server up after two thirds of its session timeout. With 400 ms, and 100 ms from
 * server to server, only the leader opens a session in that time; the client tries servers at random.
 */
const newSessionMs = 15_000;
/**
 * 45 times syncLimit, so that only an election without end is reported. With partial connectivity
 * 99 of 100 elections take less than 4 times syncLimit, and one in some thousands takes 15 to 23
 * times (docs/internals/election.md).
 */
const coreMs = 45_000;
/** A start with a slow disk, an election if the server led, and the synchronisation. */
const loadedReturnMs = 10_000;
/** Between two bursts of one client in this phase: something is written every few milliseconds. */
const loadedIntervalMs = 6;
const outstandingMax = 12;
/** An election among healthy servers, on links of a few milliseconds and disks of one. */
const newLeaderMs = 2000;
/** Within this time a client has to reconnect and write. */
const firstCommitMs = 2000;
const askAgainMs = 20;
/** Closing sessions and sweeps take room too, for a moment. */
const soloTriesMax = 10;
/** One succession for so many bursts of one client. */
const successionEvery = 6;
/** Between the parts of a succession; a write takes as long. */
const successionMs = 15;

export interface RunOptions {
  readonly onEvent?: ((what: string, elapsedMs: Millis) => void) | undefined;
}

/** Runs a seed to its end. `check` says whether the run passed. */
export async function runSeed(seed: number, { onEvent }: RunOptions = {}): Promise<Outcome> {
  const story = new Story(seed);
  story.world.onEvent = onEvent;
  await story.run();
  return { seed, recording: story.world.recording, world: story.world, marks: story.stage.marks, kinds: story.kinds };
}

class Story {
  readonly world: VirtualWorld;
  readonly stage: Stage;
  readonly #random: SeededRandom;
  readonly #plan: Plan;
  readonly #workload: Workload;
  #faultsEnd = false;
  #workEnds = false;
  #isLoaded = false;
  #crowd: Flood | undefined;

  constructor(seed: number) {
    this.#random = new SeededRandom(seed);
    const plan = (this.#plan = drawPlan(this.#random));
    this.world = new VirtualWorld(seed, {
      servers: plan.servers,
      ...(plan.ensemble !== undefined && { ensemble: plan.ensemble }),
      core: plan.core,
      options: plan.options,
      snappy: plan.usesSnappy ? snappy : undefined,
      knowsMemory: plan.knowsMemory,
    });
    this.stage = new Stage(this.world, this.#random);
    this.stage.windowBytes = plan.ensemble?.windowBytes ?? Infinity;
    if (plan.ensemble?.links !== undefined) this.#layLinks(plan.ensemble.links);
    if (plan.turnMsMax > 0) for (const server of this.world.servers) server.turnMs = () => this.stage.fraction(plan.turnMsMax);
    if (plan.loadedReturn !== undefined) {
      const { slowServer, syncMsMax } = plan.loadedReturn;
      this.stage.syncMsMax.set(this.world.servers[slowServer]!, syncMsMax);
    }
    this.#workload = new Workload(this.#random, plan.habits);
  }

  get kinds(): string[] {
    return kindsOf(this.#plan);
  }

  #layLinks({ percent, distanceMs, early }: LinksPlan): void {
    const { servers } = this.world;
    for (const [at, a] of servers.entries()) {
      for (const b of servers.slice(at + 1)) {
        if (this.#random.below(100) >= percent) continue;
        Object.assign(this.world.link(a.name, b.name), { distanceMs, early });
      }
    }
  }

  async run(): Promise<void> {
    await this.#safetyPhase();
    const isWell = await this.#livenessPhase();
    if (this.world.recording.isImpersonated) await this.#afterImpersonation(isWell);
    else await new Proof(this.stage, this.#random).run(isWell);
  }

  async #safetyPhase(): Promise<void> {
    const { world, stage } = this;
    const { beginning, clients, safetyMs } = this.#plan;
    if (beginning !== undefined) for (const server of world.servers) await plant(world, server, beginning);
    for (const server of world.servers) {
      // An operator marks a new folder in this way.
      if (!server.options.dbAutocreate) server.disk.plant(`${server.options.dataDir}/initialize`, Buffer.alloc(0));
      stage.boot(server);
    }
    for (const [index, client] of clients.entries()) {
      const actor = this.#newActor(`client-${index + 1}`, `10.9.${index & 1}.${index + 1}`, client);
      stage.actors.push(actor);
      this.#work(actor);
    }
    if (this.#plan.faults.length > 0) this.#planFault();
    if (this.#plan.habits.succeeds) this.#planSuccession();
    const { flood } = this.#plan;
    if (flood !== undefined) {
      stage.rates = { linkBytesPerMs: flood.linkBytesPerMs, diskBytesPerMs: flood.diskBytesPerMs };
      const crowd = new Flood(stage, this.#random, flood);
      this.#crowd = crowd;
      stage.after(flood.atMs, 'flood', undefined, () => crowd.begin());
    }
    if (this.#plan.ensemble?.oracleFavours !== undefined) this.#oracleTurns();
    await world.run(safetyMs);
  }

  /** The oracle alternately lets its server continue alone and does not, until faults end. */
  #oracleTurns(): void {
    const { world, stage } = this;
    world.oracleSpeaks = this.#faultsEnd || !world.oracleSpeaks;
    if (!this.#faultsEnd) stage.after(200 + stage.fraction(1500), 'oracle', undefined, () => this.#oracleTurns());
  }

  #newActor(name: string, address: string, { kind, timeoutMs, credentials, restoresWatches }: ClientPlan): Actor {
    const random = new SeededRandom(this.#random.uint32());
    if (kind === 'real') return new RealClient(this.world, random, { name, address, timeoutMs, credentials });
    return new RawClient(this.world, random, { name, address, timeoutMs, credentials, restoresWatches });
  }

  /** After the healing every client must be served and complete requests within bounds. */
  async #livenessPhase(): Promise<boolean> {
    const { world, stage } = this;
    this.#faultsEnd = true;
    world.oracleSpeaks = true;
    stage.endAttacks();
    if (this.#plan.loadedReturn === undefined) this.#workEnds = true;
    else await this.#loadedReturn();
    if (stage.isEnsemble && this.#random.below(2) === 0) await this.#coreAlone();
    stage.heal();
    const rests = () => stage.isWhole && stage.actors.every((actor) => stage.isServed(actor));
    if (!(await world.runUntil(rests, healingMs))) {
      stage.complain(`not quiet ${healingMs} ms after the last fault: ${this.#whoWaits()}`);
      return false;
    }
    if (await this.#progress(rests, progressMs)) {
      await this.#everyoneWrites(rests);
      return (await this.#oneComesBack(rests)) && (await this.#oneLeaves(rests)) && (await this.#failOver(rests));
    }
    stage.complain(`a write has no reply within ${progressMs} ms after everything was healed`);
    return false;
  }

  /** A client reconnects and restores its watches, for the same reason as in `#oneLeaves`. */
  async #oneComesBack(rests: () => boolean): Promise<boolean> {
    const { world, stage } = this;
    const client = stage.actors.find((actor) => actor instanceof RawClient && actor.ready && actor.options.restoresWatches === true);
    if (!(client instanceof RawClient)) return true;
    client.comeBack();
    if (await world.runUntil(rests, progressMs)) return true;
    stage.complain(`${client.name} closed its connection and is not served again ${progressMs} ms later: ${this.#whoWaits()}`);
    return false;
  }

  /**
   * A client creates an ephemeral sequential znode and closes its session, so that nearly every
   * seed has both to judge.
   */
  async #oneLeaves(rests: () => boolean): Promise<boolean> {
    const { world, stage } = this;
    const leaver = stage.actors.find((actor) => actor instanceof RawClient && actor.ready);
    if (leaver === undefined) return true;
    const record = { path: '/leaves-', data: null, acl: openAcl, flags: CreateMode.ephemeralSequential };
    leaver.ask({ name: 'create2', record });
    leaver.ask({ name: 'closeSession', record: undefined });
    if (await world.runUntil(rests, newSessionMs)) return true;
    stage.complain(`${leaver.name} closed its session and has no new one ${newSessionMs} ms later: ${this.#whoWaits()}`);
    return false;
  }

  /**
   * The only fault is that the leader is gone: soon there must be another, and soon it must commit
   * something.
   */
  async #failOver(rests: () => boolean): Promise<boolean> {
    const { world, stage } = this;
    const { leader } = stage;
    if (leader === undefined || this.#random.below(3) > 0) return true;
    const others = world.servers.filter((server) => server !== leader);
    const names = others.map(({ name }) => name);
    if (!isQuorum(world.recording.ensemble, names)) return true;
    leader.kill();
    const killedMs = stage.nowMs;
    if (!(await world.runUntil(() => stage.leader !== undefined, newLeaderMs))) {
      stage.complain(`no new leader ${newLeaderMs} ms after ${leader.name} was killed, without any other fault: ${this.#whoWaits()}`);
      return false;
    }
    const firstMs = stage.nowMs;
    const isCommitted = () =>
      world.recording.peers.some(({ kind, atMs, server }) => kind === 'applied' && atMs >= firstMs && server === stage.leader?.name);
    for (const actor of stage.actors)
      actor.ask({ name: 'setData', record: { path: '/', data: Buffer.from(`${actor.name} again`), version: -1 } });
    this.#askAgain(firstMs + firstCommitMs, isCommitted);
    if (!(await world.runUntil(isCommitted, firstCommitMs))) {
      stage.complain(
        `${stage.leader?.name} committed nothing within ${firstCommitMs} ms after it began to lead, ${firstMs - killedMs} ms after a kill`,
      );
    }
    stage.note('fail-over');
    stage.boot(leader);
    if (await world.runUntil(rests, healingMs)) return true;
    stage.complain(`not quiet ${healingMs} ms after the leader was killed: ${this.#whoWaits()}`);
    return false;
  }

  /** Every client that has reconnected to the new leader writes something. */
  #askAgain(untilMs: Millis, isEnough: () => boolean): void {
    const { stage } = this;
    stage.after(askAgainMs, 'ask again', undefined, () => {
      if (stage.nowMs > untilMs || isEnough()) return;
      for (const actor of stage.actors) {
        if (isIdle(actor)) actor.ask({ name: 'setData', record: { path: '/', data: Buffer.from(actor.name), version: -1 } });
      }
      this.#askAgain(untilMs, isEnough);
    });
  }

  /**
   * An impersonator may write anything, so its history cannot be judged; but all servers must start
   * from it and serve.
   */
  async #afterImpersonation(isWell: boolean): Promise<void> {
    const { world, stage } = this;
    if (isWell) {
      for (const server of world.servers) server.kill();
      for (const server of world.servers) stage.boot(server);
      const rests = () => stage.isWhole && stage.actors.every((actor) => stage.isServed(actor));
      if (!(await world.runUntil(rests, healingMs))) {
        stage.complain(`not quiet ${healingMs} ms after all servers were restarted after an impersonation: ${this.#whoWaits()}`);
      }
    }
    world.recording.endedMs = world.clock.elapsedMs;
  }

  /**
   * A server restarts while clients write, as in a rolling restart, and must not need them to stop.
   */
  async #loadedReturn(): Promise<void> {
    const { world, stage } = this;
    const server = world.servers[this.#plan.loadedReturn!.slowServer]!;
    stage.heal();
    if (!(await world.runUntil(() => stage.isWhole, healingMs)))
      stage.complain(`not every server serves ${healingMs} ms after the last fault, under load`);
    this.#isLoaded = true;
    server.kill();
    stage.boot(server);
    if (!(await world.runUntil(() => stage.isWhole, loadedReturnMs))) {
      stage.complain(`${server.name} does not serve ${loadedReturnMs} ms after it was restarted, under load`);
    }
    stage.note('back under load');
    this.#workEnds = true;
  }

  /**
   * A quorum is healthy and connected; the others may stay as they are, also cut in one direction.
   * The quorum must suffice.
   */
  async #coreAlone(): Promise<void> {
    const { world, stage } = this;
    const core = stage.healCore();
    const isIn = ({ role, isPaused }: ServerHost) => !isPaused && (role === 'leader' || role === 'follower');
    // A server that cannot reach a quorum of the leader's followers stays out, as in ZooKeeper. So
    // some servers of the core may be out if others are in.
    const others = world.servers.filter((server) => !core.includes(server));
    const coreIsIn = () => core.every(isIn) || (core.some(isIn) && others.some(isIn));
    const rests = () => coreIsIn() && stage.actors.every((actor) => stage.isServed(actor));
    const names = core.map(({ name }) => name).join(', ');
    if (!(await world.runUntil(rests, coreMs))) {
      stage.complain(`not quiet ${coreMs} ms after a quorum (${names}) was healed: ${this.#whoWaits()}`);
    } else if (!(await this.#progress(rests, coreMs))) {
      // Roles are what servers believe: an election may still be necessary.
      stage.complain(`a write has no reply within ${coreMs} ms, though a quorum (${names}) is healthy`);
    }
    stage.note('a quorum alone');
  }

  /** Every client writes, and receives events of what the others write. */
  async #progress(rests: () => boolean, atMostMs: Millis): Promise<boolean> {
    const { world, stage } = this;
    for (const actor of stage.actors) {
      actor.ask({ name: 'sync', record: { path: '/' } });
      actor.ask({ name: 'getData', record: { path: '/', watch: true } });
      actor.ask({ name: 'addWatch', record: { path: '/', mode: AddWatchMode.persistent } });
      actor.ask({ name: 'setData', record: { path: '/', data: Buffer.from(actor.name), version: -1 } });
    }
    return await world.runUntil(rests, atMostMs);
  }

  /**
   * A client whose write was turned away because others wrote at the same moment must find room
   * when it is alone.
   */
  async #everyoneWrites(rests: () => boolean): Promise<void> {
    const { world, stage } = this;
    await world.runUntil(() => this.#crowd?.isQuiet !== false, progressMs);
    for (const actor of stage.actors) {
      const isTurnedAway = () => {
        const requests = world.recording.cnxns.filter(({ client }) => client === actor.name).flatMap((cnxn) => cnxn.requests);
        return requests.findLast(({ name }) => name === 'setData')?.reply?.err === ErrorCode.ThrottledOp;
      };
      for (let tries = 0; tries < soloTriesMax && isTurnedAway(); tries++) {
        actor.ask({ name: 'setData', record: { path: '/', data: Buffer.from(actor.name), version: -1 } });
        await world.runUntil(rests, progressMs);
      }
      if (isTurnedAway()) stage.complain(`${actor.name} is still turned away for lack of room, though nothing is in progress`);
    }
  }

  #whoWaits(): string {
    const waiting = this.stage.actors.filter((actor) => !this.stage.isServed(actor)).map(({ name }) => name);
    const roles = this.world.servers.map(({ name, role }) => `${name} is ${role ?? 'down'}`);
    return [...waiting, ...roles].join(', ');
  }

  #work(actor: Actor): void {
    const intervalMs = this.#isLoaded ? loadedIntervalMs : this.#plan.workIntervalMs;
    this.stage.after(1 + this.#random.below(intervalMs * 2), 'work', undefined, () => {
      if (this.#workEnds) return;
      if (actor.takesCalls && actor.outstandingCount < outstandingMax) this.#workload.burst(actor);
      this.#work(actor);
    });
  }

  #planSuccession(): void {
    const { stage } = this;
    stage.after(1 + this.#random.below(this.#plan.workIntervalMs * successionEvery * 2), 'succession', undefined, () => {
      if (this.#workEnds) return;
      const [first, second] = [stage.anyActor(), stage.anyActor()];
      const later = (then: () => void) => stage.after(stage.fraction(successionMs), 'succession', undefined, then);
      if (first !== second && first.ready && second.ready) {
        this.#workload.succession(first, second, later);
        stage.note('a session took over from another');
      }
      this.#planSuccession();
    });
  }

  #planFault(): void {
    const { faults: names, faultIntervalMs } = this.#plan;
    this.stage.after(1 + this.#random.below(faultIntervalMs * 2), 'fault', undefined, () => {
      if (this.#faultsEnd) return;
      const name = names[this.#random.below(names.length)]!;
      this.stage.note(`fault ${name}`);
      faults[name].strike(this.stage, this.#random);
      this.#planFault();
    });
  }
}
