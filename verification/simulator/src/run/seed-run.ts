/**
 * One run of a seed. First clients work while faults strike; then everything is healed, and the
 * system must become quiet and make progress; then the result is verified.
 */
import { AddWatchMode, CreateMode, ErrorCode, type Millis, openAcl } from '@tskeeper/protocol';
import { SeededRandom } from '@tskeeper/runtime';
import type { Actor } from '../clients/actor.ts';
import { RawClient } from '../clients/raw-client.ts';
import { LibraryClient } from '../clients/library-client.ts';
import { Reconfigurer } from '../clients/reconfigurer.ts';
import { Workload } from '../clients/workload.ts';
import { type FaultName, faults } from '../faults/faults.ts';
import { announcedConfig, oldConfigFiles } from '../faults/reconfig-faults.ts';
import type { Recording } from '../record/recording.ts';
import type { ServerHost } from '../world/server-host.ts';
import { snappy } from '../world/snappy.ts';
import { VirtualWorld } from '../world/virtual-world.ts';
import { Flood } from './flood.ts';
import { lastPageOf } from './last-page.ts';
import { lastLogged } from '../record/committed-history.ts';
import { withoutFavourite } from '../record/quorum-rule.ts';
import { writeSeedState } from './seed-state.ts';
import { configsInForce, isQuorumOfAll } from './configs-in-force.ts';
import { planOf } from './reconfig-plan.ts';
import { FinalChecks } from './final-checks.ts';
import { isIdle, Run } from './run.ts';
import { type ClientPlan, kindsOf, type LinksPlan, type SeedPlan } from './swarm.ts';

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
 * server to server, only the leader opens a session in that time; the client tries servers at
 * random.
 */
const newSessionMs = 15_000;
/**
 * 45 times syncLimit, so that only an election without end is reported. With partial connectivity
 * 99 of 100 elections take less than 4 times syncLimit, and one in some thousands takes 15 to 23
 * times (docs/internals/election.md).
 */
const coreLivenessMs = 45_000;
/** A start with a slow disk, an election if the server led, and the synchronisation. */
const restartUnderLoadMs = 10_000;
/** Between two bursts of one client in this phase: something is written every few milliseconds. */
const loadIntervalMs = 6;
const outstandingMax = 12;
/** An election among healthy servers, on links of a few milliseconds and disks of one. */
const newLeaderMs = 2000;
/** Within this time a client has to reconnect and write. */
const firstCommitMs = 2000;
const retryWriteMs = 20;
/** Closing sessions and sweeps take room too, for a moment. */
const soloTriesMax = 10;
/** Early enough for read-only mode to begin and to end before the healing. */
const quorumLostMsMax = 2000;
/** How often a change of the membership is asked for, while everything is healthy. */
const reconfigTriesMax = 10;
/** Refusals that a moment later may not be there. */
const passingRefusals: ReadonlySet<number> = new Set([ErrorCode.NewConfigNoQuorum, ErrorCode.ReconfigInProgress, ErrorCode.ThrottledOp]);
/** One succession for so many bursts of one client. */
const handOverEvery = 6;
/** Between the parts of a succession; a write takes as long. */
const handOverMs = 15;

export interface RunOptions {
  readonly onEvent?: ((what: string, elapsedMs: Millis) => void) | undefined;
}

/** Runs a seed to its end. `check` says whether the run passed. */
export async function runSeed(seed: number, { onEvent }: RunOptions = {}): Promise<Outcome> {
  const run = new SeedRun(seed);
  run.world.onEvent = onEvent;
  await run.execute();
  return { seed, recording: run.world.recording, world: run.world, marks: run.run.marks, kinds: run.kinds };
}

class SeedRun {
  readonly world: VirtualWorld;
  readonly run: Run;
  readonly #random: SeededRandom;
  readonly #plan: SeedPlan;
  readonly #workload: Workload;
  #faultsEnded = false;
  #workloadEnded = false;
  #isUnderLoad = false;
  #flood: Flood | undefined;
  #reconfigurer: Reconfigurer | undefined;

  constructor(seed: number) {
    this.#random = new SeededRandom(seed);
    const plan = (this.#plan = planOf(seed, this.#random));
    this.world = new VirtualWorld(seed, {
      servers: plan.servers,
      ...(plan.ensemble !== undefined && { ensemble: plan.ensemble }),
      core: plan.core,
      options: plan.options,
      snappy: plan.usesSnappy ? snappy : undefined,
      knowsMemory: plan.knowsMemory,
      movesClientPorts: plan.reconfig?.movesClientPorts === true,
    });
    this.run = new Run(this.world, this.#random);
    this.run.serverWindowBytes = plan.ensemble?.windowBytes ?? Infinity;
    if (plan.ensemble?.links !== undefined) this.#applyLinksPlan(plan.ensemble.links);
    if (plan.turnMsMax > 0) for (const server of this.world.servers) server.turnMs = () => this.run.drawMs(plan.turnMsMax);
    if (plan.restartUnderLoad !== undefined) {
      const { slowServer, syncMsMax } = plan.restartUnderLoad;
      this.run.disks.syncMsMax.set(this.world.servers[slowServer]!, syncMsMax);
    }
    this.#workload = new Workload(this.#random, plan.workload, () => lastPageOf(this.world.recording));
  }

  get kinds(): string[] {
    return kindsOf(this.#plan);
  }

  #applyLinksPlan({ percent, distanceMs, earlyAccept }: LinksPlan): void {
    const { servers } = this.world;
    for (const [at, a] of servers.entries()) {
      for (const b of servers.slice(at + 1)) {
        if (this.#random.below(100) >= percent) continue;
        const link = this.world.link(a.name, b.name);
        link.distanceMs = distanceMs;
        this.world.recording.linkDistanceMs = distanceMs;
        link.earlyAccept = earlyAccept;
      }
    }
  }

  async execute(): Promise<void> {
    await this.#safetyPhase();
    const isWell = await this.#livenessPhase();
    if (this.world.recording.isImpersonated) await this.#afterImpersonation(isWell);
    else await new FinalChecks(this.run, this.#random).run(isWell);
  }

  async #safetyPhase(): Promise<void> {
    const { world, run } = this;
    const { seedState, clients, safetyMs } = this.#plan;
    if (seedState !== undefined) for (const server of world.servers) await writeSeedState(world, server, seedState);
    for (const server of world.servers) {
      // An operator marks a new folder in this way.
      if (!server.options.dbAutocreate) server.disk.putFile(`${server.options.dataDir}/initialize`, Buffer.alloc(0));
      run.boot(server);
    }
    for (const [index, client] of clients.entries()) {
      const actor = this.#newActor(`client-${index + 1}`, `10.9.${index & 1}.${index + 1}`, client);
      run.actors.push(actor);
      this.#scheduleWork(actor);
    }
    if (this.#plan.reconfig !== undefined) this.#addReconfigurer();
    if (this.#plan.faults.length > 0) this.#scheduleFault();
    // Among all faults it would be too rare for the mode that needs it.
    if (this.#plan.ensemble?.options.readOnlyMode === true) {
      run.schedule(this.#random.below(quorumLostMsMax), 'fault', undefined, () => this.#strike('quorumLost'));
    }
    if (this.#plan.workload.handsOverEphemerals) this.#scheduleHandOver();
    const { flood } = this.#plan;
    if (flood !== undefined) {
      run.rates = { linkBytesPerMs: flood.linkBytesPerMs, diskBytesPerMs: flood.diskBytesPerMs };
      const crowd = new Flood(run, this.#random, flood);
      this.#flood = crowd;
      run.schedule(flood.atMs, 'flood', undefined, () => crowd.begin());
    }
    if (this.#plan.ensemble?.oracleSid !== undefined) this.#toggleOracle();
    await world.run(safetyMs);
  }

  /** The oracle alternately lets its server continue alone and does not, until faults end. */
  #toggleOracle(): void {
    const { world, run } = this;
    world.oracleAllows = this.#faultsEnded || !world.oracleAllows;
    if (!this.#faultsEnded) run.schedule(200 + run.drawMs(1500), 'oracle', undefined, () => this.#toggleOracle());
  }

  #newActor(name: string, address: string, plan: ClientPlan): Actor {
    const { kind, timeoutMs, credentials, sasl, restoresWatches, acceptsReadOnly, keepsLocalSession } = plan;
    const random = new SeededRandom(this.#random.uint32());
    if (kind === 'library')
      return new LibraryClient(this.world, random, {
        name,
        address,
        timeoutMs,
        credentials,
        sasl,
        acceptsReadOnly,
        followsConfig: this.#plan.reconfig?.clientsFollow === true,
      });
    return new RawClient(this.world, random, {
      name,
      address,
      timeoutMs,
      credentials,
      sasl,
      restoresWatches,
      acceptsReadOnly,
      keepsLocalSession,
    });
  }

  /** After the healing every client must be served and complete requests within bounds. */
  async #livenessPhase(): Promise<boolean> {
    const { world, run } = this;
    this.#faultsEnded = true;
    world.oracleAllows = true;
    run.strangers.endAttacks();
    if (this.#plan.restartUnderLoad === undefined) this.#workloadEnded = true;
    else await this.#restartUnderLoad();
    if (run.isEnsemble && this.#random.below(2) === 0) await this.#coreLiveness();
    run.heal();
    const rests = () => run.allServing && run.actors.every((actor) => run.isServed(actor));
    if (this.#plan.reconfig !== undefined) {
      // A pending change may be completed only now, and move all servers that a client or a server knows.
      const allServe = await world.runUntil(() => run.allServing, healingMs);
      run.updateServerLists();
      run.findLostServers();
      if (!allServe) run.writeLostConfig();
    }
    if (!(await this.#comesToRest(rests))) {
      run.reportViolation(`not quiet ${healingMs} ms after the last fault: ${this.#waitingText()}`);
      return false;
    }
    if (await this.#progress(rests, progressMs)) {
      await this.#retryThrottledWrites(rests);
      if (!(await this.#finalReconfigs(rests))) return false;
      return (await this.#oneReconnects(rests)) && (await this.#oneClosesSession(rests)) && (await this.#failOver(rests));
    }
    run.reportViolation(`a write has no reply within ${progressMs} ms after everything was healed`);
    return false;
  }

  /**
   * Clients with many requests may need long where few are processed at a time, over a distance: that is
   * allowed as long as there are fewer each time.
   */
  async #comesToRest(rests: () => boolean): Promise<boolean> {
    const { world, run } = this;
    const outstanding = () => run.actors.reduce((sum, { outstandingCount }) => sum + outstandingCount, 0);
    for (let before = outstanding(); !(await world.runUntil(rests, healingMs));) {
      const left = outstanding();
      if (!run.allServing || left >= before) return false;
      before = left;
    }
    return true;
  }

  /**
   * A client reconnects and restores its watches, for the same reason as in `#oneClosesSession`.
   */
  async #oneReconnects(rests: () => boolean): Promise<boolean> {
    const { world, run } = this;
    const client = run.actors.find((actor) => actor instanceof RawClient && actor.ready && actor.options.restoresWatches === true);
    if (!(client instanceof RawClient)) return true;
    client.reconnectToSameServer();
    if (await world.runUntil(rests, progressMs)) return true;
    run.reportViolation(`${client.name} closed its connection and is not served again ${progressMs} ms later: ${this.#waitingText()}`);
    return false;
  }

  /**
   * A client creates an ephemeral sequential znode and closes its session, so that nearly every
   * seed has both to check.
   */
  async #oneClosesSession(rests: () => boolean): Promise<boolean> {
    const { world, run } = this;
    const leaver = run.actors.find((actor) => actor instanceof RawClient && actor.ready);
    if (leaver === undefined) return true;
    const record = { path: '/leaves-', data: null, acl: openAcl, flags: CreateMode.ephemeralSequential };
    leaver.submit({ name: 'create2', record });
    leaver.submit({ name: 'closeSession', record: undefined });
    if (await world.runUntil(rests, newSessionMs)) return true;
    run.reportViolation(`${leaver.name} closed its session and has no new one ${newSessionMs} ms later: ${this.#waitingText()}`);
    return false;
  }

  /**
   * The only fault is that the leader is gone: soon there must be another, and soon it must commit
   * something.
   */
  async #failOver(rests: () => boolean): Promise<boolean> {
    const { world, run } = this;
    const { leader } = run;
    if (leader === undefined || this.#random.below(3) > 0) return true;
    const others = world.servers.filter((server) => server !== leader);
    const names = others.map(({ name }) => name);
    if (!isQuorumOfAll(configsInForce(world), names)) return true;
    leader.kill();
    const killedMs = run.nowMs;
    if (!(await world.runUntil(() => run.leader !== undefined, newLeaderMs))) {
      run.reportViolation(
        `no new leader ${newLeaderMs} ms after ${leader.name} was killed, without any other fault: ${this.#waitingText()}`,
      );
      return false;
    }
    const firstMs = run.nowMs;
    const isCommitted = () =>
      world.recording.peerEvents.some(({ kind, atMs, server }) => kind === 'applied' && atMs >= firstMs && server === run.leader?.name);
    for (const actor of run.actors)
      actor.submit({ name: 'setData', record: { path: '/', data: Buffer.from(`${actor.name} again`), version: -1 } });
    this.#retryWrites(firstMs + firstCommitMs, isCommitted);
    if (!(await world.runUntil(isCommitted, firstCommitMs))) {
      run.reportViolation(
        `${run.leader?.name} committed nothing within ${firstCommitMs} ms after it began to lead, ${firstMs - killedMs} ms after a kill`,
      );
    }
    run.hitMark('fail-over');
    run.boot(leader);
    if (await world.runUntil(rests, healingMs)) return true;
    run.reportViolation(`not quiet ${healingMs} ms after the leader was killed: ${this.#waitingText()}`);
    return false;
  }

  /** Every client that has reconnected to the new leader writes something. */
  #retryWrites(untilMs: Millis, isEnough: () => boolean): void {
    const { run } = this;
    run.schedule(retryWriteMs, 'ask again', undefined, () => {
      if (run.nowMs > untilMs || isEnough()) return;
      for (const actor of run.actors) {
        if (isIdle(actor)) actor.submit({ name: 'setData', record: { path: '/', data: Buffer.from(actor.name), version: -1 } });
      }
      this.#retryWrites(untilMs, isEnough);
    });
  }

  /**
   * An impersonator may write anything, so its history cannot be checked; but all servers must
   * start from it and serve.
   */
  async #afterImpersonation(isWell: boolean): Promise<void> {
    const { world, run } = this;
    if (isWell) {
      for (const server of world.servers) server.kill();
      for (const server of world.servers) run.boot(server);
      const rests = () => run.allServing && run.actors.every((actor) => run.isServed(actor));
      if (!(await world.runUntil(rests, healingMs))) {
        run.reportViolation(`not quiet ${healingMs} ms after all servers were restarted after an impersonation: ${this.#waitingText()}`);
      }
    }
    world.recording.endedMs = world.clock.elapsedMs;
  }

  /**
   * A server restarts while clients write, as in a rolling restart, and must not need them to stop.
   */
  async #restartUnderLoad(): Promise<void> {
    const { world, run } = this;
    const server = world.servers[this.#plan.restartUnderLoad!.slowServer]!;
    run.heal();
    if (!(await world.runUntil(() => run.allServing, healingMs)))
      run.reportViolation(`not every server serves ${healingMs} ms after the last fault, under load`);
    this.#isUnderLoad = true;
    server.kill();
    run.boot(server);
    if (!(await world.runUntil(() => run.allServing, restartUnderLoadMs))) {
      run.reportViolation(`${server.name} does not serve ${restartUnderLoadMs} ms after it was restarted, under load`);
    }
    run.hitMark('restart under load');
    this.#workloadEnded = true;
  }

  /**
   * A quorum is healthy and connected; the others may stay as they are, also cut in one direction.
   * The quorum must suffice.
   */
  async #coreLiveness(): Promise<void> {
    const { world, run } = this;
    const core = run.healCore();
    const isIn = ({ role, isPaused }: ServerHost) => !isPaused && (role === 'leader' || role === 'follower' || role === 'observer');
    // A server that cannot reach a quorum of the leader's followers stays out, as in ZooKeeper. So
    // some servers of the core may be out if others are in.
    const others = world.servers.filter((server) => !core.includes(server));
    const coreIsIn = () => core.every(isIn) || (core.some(isIn) && others.some(isIn));
    const rests = () => coreIsIn() && run.actors.every((actor) => run.isServed(actor));
    const names = core.map(({ name }) => name).join(', ');
    // A change of the membership that waited meanwhile may need other servers: then it waits for them.
    const suffices = () => {
      const servers = core.map(({ name }) => name);
      const configs = configsInForce(world);
      if (run.outdatedAmong(core).length > 0) return false;
      if (isQuorumOfAll(configs.map(withoutFavourite), servers)) return true;
      return configs.length === 1 && isQuorumOfAll(configs, servers) && this.#favouriteHasMost(core);
    };
    let isQuiet = await world.runUntil(rests, coreLivenessMs);
    if (!isQuiet && this.#plan.reconfig?.clientsFollow === true) {
      // A client may have connected to a server that was cut off before it could send the present configuration.
      run.updateServerLists();
      isQuiet = await world.runUntil(rests, coreLivenessMs);
    }
    if (!isQuiet) {
      if (suffices()) run.reportViolation(`not quiet ${coreLivenessMs} ms after a quorum (${names}) was healed: ${this.#waitingText()}`);
    } else if (!(await this.#progress(rests, coreLivenessMs)) && suffices()) {
      // Roles are what servers believe: an election may still be necessary.
      run.reportViolation(`a write has no reply within ${coreLivenessMs} ms, though a quorum (${names}) is healthy`);
    }
    run.hitMark('core alone');
  }

  /**
   * Whether the favoured voter of an oracle may be elected: no other server has later txns. While a
   * change of the membership is pending that is not expected: a server that the permission does not
   * concern may be the better candidate of the old configuration, and waits for the other voter.
   */
  #favouriteHasMost(core: readonly ServerHost[]): boolean {
    const logged = lastLogged(this.world.recording);
    const zxidOf = ({ name }: ServerHost) => logged.get(name) ?? 0;
    return core.some((server) => server.sid === this.#plan.ensemble?.oracleSid && core.every((other) => zxidOf(other) <= zxidOf(server)));
  }

  #addReconfigurer(): void {
    const { movesClientPorts } = this.#plan.reconfig!;
    const deadAddress = this.#plan.ensemble?.deadAddress;
    const oracleSid = this.#plan.ensemble?.oracleSid;
    const options = { name: 'operator', address: '10.9.2.1', timeoutMs: 1500, movesClientPorts, deadAddress, oracleSid };
    this.#reconfigurer = new Reconfigurer(this.world, new SeededRandom(this.#random.uint32()), options);
    this.run.actors.push(this.#reconfigurer.client);
    this.#scheduleReconfig();
  }

  #scheduleReconfig(): void {
    const { intervalMs } = this.#plan.reconfig!;
    this.run.schedule(1 + this.#random.below(intervalMs * 2), 'reconfig', undefined, () => {
      if (this.#faultsEnded) return;
      this.#reconfigOrFault();
      this.#scheduleReconfig();
    });
  }

  #reconfigOrFault(): void {
    const reconfigurer = this.#reconfigurer!;
    switch (this.#random.below(14)) {
      case 0:
        oldConfigFiles.inject(this.run, this.#random);
        return;
      case 1:
        announcedConfig.inject(this.run, this.#random);
        return;
      case 2: {
        // A client that may not.
        const actor = this.run.anyActor();
        if (actor instanceof RawClient) reconfigurer.askThrough(actor);
        return;
      }
      default:
        // A leader may not know yet that a disk is lost, and propose what needs that server. Without its disk
        // the server cannot complete it once the leader has ended.
        if (!this.run.disks.isOneWiped) reconfigurer.ask();
    }
  }

  /** With all servers in step, a change of the membership is carried out, whatever it is. */
  async #finalReconfigs(rests: () => boolean): Promise<boolean> {
    const { world, run } = this;
    if (this.#reconfigurer === undefined) return true;
    for (let left = this.#random.below(3); left > 0; left--) {
      let tries = reconfigTriesMax;
      const ask = () => this.#reconfigurer!.askForVoters(1 + this.#random.below(world.servers.length));
      for (let asked = ask(); ; asked = ask()) {
        await world.runUntil(rests, healingMs);
        const err = asked?.reply?.err;
        if (err === ErrorCode.Ok) break;
        // A server may have lost its leader just before, and a connection may end with its epoch.
        if (--tries > 0 && (err === undefined || passingRefusals.has(err))) continue;
        run.reportViolation(
          `the membership cannot be changed although all servers serve: ${err === undefined ? 'no reply' : `error ${err}`}`,
        );
        return false;
      }
      run.hitMark('the membership was changed at the end');
      run.updateServerLists();
      if (await world.runUntil(rests, healingMs)) continue;
      run.reportViolation(`not quiet ${healingMs} ms after a reconfiguration without any fault: ${this.#waitingText()}`);
      return false;
    }
    return true;
  }

  /** Every client writes, and receives events of what the others write. */
  async #progress(rests: () => boolean, atMostMs: Millis): Promise<boolean> {
    const { world, run } = this;
    for (const actor of run.actors) {
      actor.submit({ name: 'sync', record: { path: '/' } });
      actor.submit({ name: 'getData', record: { path: '/', watch: true } });
      actor.submit({ name: 'addWatch', record: { path: '/', mode: AddWatchMode.persistent } });
      actor.submit({ name: 'setData', record: { path: '/', data: Buffer.from(actor.name), version: -1 } });
    }
    return await world.runUntil(rests, atMostMs);
  }

  /**
   * A client whose write was turned away because others wrote at the same moment must find room
   * when it is alone.
   */
  async #retryThrottledWrites(rests: () => boolean): Promise<void> {
    const { world, run } = this;
    await world.runUntil(() => this.#flood?.isQuiet !== false, progressMs);
    for (const actor of run.actors) {
      const isTurnedAway = () => {
        const requests = world.recording.cnxns.filter(({ client }) => client === actor.name).flatMap((cnxn) => cnxn.requests);
        return requests.findLast(({ name }) => name === 'setData')?.reply?.err === ErrorCode.ThrottledOp;
      };
      for (let tries = 0; tries < soloTriesMax && isTurnedAway(); tries++) {
        actor.submit({ name: 'setData', record: { path: '/', data: Buffer.from(actor.name), version: -1 } });
        await world.runUntil(rests, progressMs);
      }
      if (isTurnedAway()) run.reportViolation(`${actor.name} is still turned away for lack of room, though nothing is in progress`);
    }
  }

  #waitingText(): string {
    const waiting = this.run.actors.filter((actor) => !this.run.isServed(actor)).map(({ name }) => name);
    const roles = this.world.servers.map(({ name, role }) => `${name} is ${role ?? 'down'}`);
    return [...waiting, ...roles].join(', ');
  }

  #scheduleWork(actor: Actor): void {
    const intervalMs = this.#isUnderLoad ? loadIntervalMs : this.#plan.workIntervalMs;
    this.run.schedule(1 + this.#random.below(intervalMs * 2), 'work', undefined, () => {
      if (this.#workloadEnded) return;
      if (actor.acceptsRequests && actor.outstandingCount < outstandingMax) this.#workload.burst(actor);
      this.#scheduleWork(actor);
    });
  }

  #scheduleHandOver(): void {
    const { run } = this;
    run.schedule(1 + this.#random.below(this.#plan.workIntervalMs * handOverEvery * 2), 'succession', undefined, () => {
      if (this.#workloadEnded) return;
      const [first, second] = [run.anyActor(), run.anyActor()];
      const later = (then: () => void) => run.schedule(run.drawMs(handOverMs), 'succession', undefined, then);
      if (first !== second && first.ready && second.ready) {
        this.#workload.handOverEphemeral(first, second, later);
        run.hitMark('a session was handed over');
      }
      this.#scheduleHandOver();
    });
  }

  #scheduleFault(): void {
    const { faults: names, faultIntervalMs } = this.#plan;
    this.run.schedule(1 + this.#random.below(faultIntervalMs * 2), 'fault', undefined, () => {
      if (this.#faultsEnded) return;
      this.#strike(names[this.#random.below(names.length)]!);
      this.#scheduleFault();
    });
  }

  #strike(name: FaultName): void {
    this.run.hitMark(`fault ${name}`);
    faults[name].inject(this.run, this.#random);
  }
}
