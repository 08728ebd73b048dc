/**
 * The environment of a run: servers that are kept running, clients that are kept busy, and the
 * marks noted so far. Faults act through it and know nothing about the rest of the run.
 */
import type { Millis, Zxid } from '@tskeeper/protocol';
import { VirtualDisk, type SeededRandom, StorageRefused } from '@tskeeper/runtime';
import type { Actor } from '../clients/actor.ts';
import { LibraryClient } from '../clients/library-client.ts';
import type { Recording } from '../record/recording.ts';
import { peerPortKind } from '../world/peer-ports.ts';
import type { ServerHost } from '../world/server-host.ts';
import type { ServerProcess } from '../world/server-process.ts';
import type { TimerOwner } from '../world/virtual-clock.ts';
import type { VirtualWorld } from '../world/virtual-world.ts';
import type { Pipe, VirtualCnxn } from '@tskeeper/runtime/internal';
import { drawCrashChoice } from '../faults/crash-choice.ts';
import { snappy } from '../world/snappy.ts';
import { recoverReplica } from './snapshot-states.ts';
import { configsInForce, isQuorumOfAll, lastActivated } from './configs-in-force.ts';
import { configsForLost, outdatedServers } from './lost-servers.ts';
import type { RunContext } from './run-context.ts';
import { ServerDisks } from './server-disks.ts';
import { Strangers } from './strangers.ts';

/** A machine. */
interface Machine {
  readonly name: string;
}

/** What a server holds after a start. */
interface FolderSummary {
  readonly lastZxid: Zxid;
  readonly znodes: number;
  readonly ephemerals: number;
}

/** The disk refused to read the only snapshot; the next start may succeed. */
const refusesToRead = /cannot be loaded \(.*: (?:EIO|ENOSPC)\)/;

/** The operator restarts the server, which keeps a log from then on. */
const needsLog = /makes this server a participant, or is about to, and it runs without a log/;

/** What a slow link passes on at once. */
const pieceBytes = 4096;

/** A stage of the memory guard lasts at least a second, and a server checks every 100 ms. */
const memoryNoticedMs = 1200;

export class Run implements RunContext {
  readonly world: VirtualWorld;
  readonly actors: Actor[] = [];
  readonly strangers: Strangers;
  readonly disks: ServerDisks;
  /** How often each fault struck and each noted event happened. */
  readonly marks = new Map<string, number>();
  readonly #random: SeededRandom;
  readonly #scheduledBoots = new Set<ServerHost>();
  /** By then every server has noticed that it has memory again. */
  #memoryRecoveredMs: Millis = 0;
  /** Called when everything is healed. */
  readonly #onHealed: (() => void)[] = [];
  /** Servers that stay down for now. */
  readonly #leftDown = new Set<ServerHost>();
  /** Transfer rates of links and disks until the healing. */
  rates = { linkBytesPerMs: Infinity, diskBytesPerMs: Infinity };
  /** Bytes that may be in transit between two servers, if limited. */
  serverWindowBytes = Infinity;
  /** No more faults may strike. */
  isHealed = false;

  constructor(world: VirtualWorld, random: SeededRandom) {
    this.world = world;
    this.#random = random;
    this.strangers = new Strangers(this, random);
    this.disks = new ServerDisks(this);
    for (const server of world.servers) server.onFailure = () => this.#onFailure(server);
    world.wire.conditionsOf = (from, to) => {
      const delayMs = this.drawMs(3) + world.extraDelayMs(from, to);
      const { linkBytesPerMs } = this.rates;
      const isBetweenServers = world.serverAt(from) !== undefined && world.serverAt(to) !== undefined;
      if (this.serverWindowBytes !== Infinity && isBetweenServers) return { delayMs, windowBytes: this.serverWindowBytes };
      if (linkBytesPerMs === Infinity || this.isHealed) return { delayMs };
      return { delayMs, pieceBytes, pieceIntervalMs: pieceBytes / linkBytesPerMs };
    };
    world.wire.onProxyClose = (_from, _to, why) => this.hitMark(why === 'refused' ? 'early accept closed' : 'early accept silent');
  }

  get nowMs(): Millis {
    return this.world.clock.elapsedMs;
  }

  /** A random time below `max`. */
  drawMs(max: Millis): Millis {
    return this.#random.below(max * 64) / 64;
  }

  hitMark(mark: string): void {
    this.marks.set(mark, (this.marks.get(mark) ?? 0) + 1);
    this.world.recording.annotations.push({ atMs: this.world.clock.elapsedMs, text: mark });
  }

  reportViolation(text: string): void {
    this.world.recording.violations.push(text);
  }

  schedule(ms: Millis, what: string, owner: TimerOwner | undefined, run: () => void): void {
    this.world.clock.at(this.nowMs + ms, what, owner, run);
  }

  anyServer(): ServerHost {
    return this.world.servers[this.#random.below(this.world.servers.length)]!;
  }

  anyActor(): Actor {
    return this.actors[this.#random.below(this.actors.length)]!;
  }

  /** The server that considers itself the leader. */
  get leader(): ServerHost | undefined {
    return this.world.servers.find(({ role }) => role === 'leader');
  }

  /** Every server serves and is not paused; those of an ensemble have one leader. */
  get allServing(): boolean {
    const { servers } = this.world;
    if (this.nowMs < this.#memoryRecoveredMs) return false;
    if (!servers.every(({ process, isPaused }) => process?.isServing === true && !isPaused)) return false;
    if (!this.isEnsemble) return true;
    const leads = servers.filter(({ role }) => role === 'leader').length;
    return leads === 1 && servers.every(({ role }) => role === 'leader' || role === 'follower' || role === 'observer');
  }

  get isEnsemble(): boolean {
    return this.world.recording.ensemble.size > 0;
  }

  // --- Servers are kept running

  boot(server: ServerHost): void {
    const wanted = server.isDamaged ? this.#undamagedSummary(server) : undefined;
    const process = server.boot();
    void this.#awaitStart(server, process, wanted);
  }

  async #awaitStart(server: ServerHost, process: ServerProcess, wanted: Promise<FolderSummary> | undefined): Promise<void> {
    const error = await process.started;
    if (server.process !== process) return;
    if (error === undefined) {
      if (wanted !== undefined) this.#compare(server, await wanted);
      return;
    }
    if (wanted !== undefined && error instanceof StorageRefused) this.#handleRefusal(server, error.message);
    else if (!this.disks.isInjected(process, error.message) || (error instanceof StorageRefused && !refusesToRead.test(error.message)))
      this.reportViolation(`${server.name} does not start: ${error.message}`);
    this.hitMark('failed at start');
    server.kill();
    this.restartAfter(server, 10);
  }

  /** What a start would lead to without the damage. */
  async #undamagedSummary(server: ServerHost): Promise<FolderSummary> {
    const { core, snapshotFolder, logFolder } = server;
    const disk = new VirtualDisk();
    for (const folder of [snapshotFolder, logFolder]) await disk.ensureFolder(folder);
    for (const [path, bytes] of server.undamagedFiles()) disk.putFile(path, bytes);
    const replica = await recoverReplica(disk, { snapshotFolder, logFolder, core, clock: this.world.clock, snappy });
    replica.removeOrphanedEphemerals();
    return { lastZxid: replica.lastZxid, znodes: replica.tree.nodeCount, ephemerals: replica.tree.ephemeralCount };
  }

  /**
   * A server that starts on a damaged folder must have everything: with less it must neither serve
   * nor vote.
   */
  #compare(server: ServerHost, wanted: FolderSummary): void {
    const { inspect } = server.process!.runtime!;
    const found: FolderSummary = { lastZxid: inspect.lastZxid(), znodes: inspect.nodeCount(), ephemerals: inspect.ephemeralCount() };
    this.hitMark('bit rot harmless');
    for (const what of ['lastZxid', 'znodes', 'ephemerals'] as const) {
      if (found[what] === wanted[what]) continue;
      this.reportViolation(`${server.name} starts on a damaged folder with ${what} ${found[what]}, expected ${wanted[what]}`);
    }
  }

  /**
   * The server must say why it cannot start from its disk and what helps. The operator then
   * restores the folder or empties it.
   */
  #handleRefusal(server: ServerHost, message: string): void {
    this.hitMark('bit rot detected');
    if (!/\/version-2/.test(message) || !/; (restore|bring|delete|empty|move)/.test(message)) {
      this.reportViolation(`${server.name} names neither the damaged file nor the remedy: ${message}`);
    }
    // Once a quorum is healed the other servers may stay down, and could not send this server its
    // data.
    if (!this.isHealed && !server.options.dbAutocreate && this.disks.canWipe(server) && this.#random.below(2) === 0) {
      this.hitMark('a damaged folder was emptied');
      this.disks.wipe(server);
      this.restartAfter(server, 10);
    } else {
      this.hitMark('a damaged folder was restored');
      server.repair();
    }
  }

  /**
   * Starts an ended server again after `ms`. Unless its disk is full, the disk works again by then.
   */
  restartAfter(server: ServerHost, ms: Millis): void {
    this.disks.maybeEndFault(server);
    if (this.#scheduledBoots.has(server)) return;
    this.#scheduledBoots.add(server);
    this.schedule(ms, 'boot', undefined, () => {
      this.#scheduledBoots.delete(server);
      if (server.process === undefined && !this.#leftDown.has(server)) this.boot(server);
    });
  }

  #onFailure(server: ServerHost): void {
    const { process } = server;
    if (process === undefined) return;
    if (server.isDamaged && process.record.failure.startsWith('StorageRefused')) this.#handleRefusal(server, process.record.failure);
    else if (needsLog.test(process.record.failure)) this.hitMark('a server without a log got a vote');
    else if (!this.disks.isInjected(process, process.record.failure))
      this.reportViolation(`${server.name} failed: ${process.record.failure}`);
    this.hitMark('failed while running');
    // The supervisor takes a while to notice; the server must send nothing more in that time.
    this.schedule(this.drawMs(100), 'end', undefined, () => {
      if (server.process !== process) return;
      if (this.#random.below(2) === 0) server.kill();
      else server.losePower(drawCrashChoice(this.#random));
      this.restartAfter(server, this.drawMs(50));
    });
  }

  // --- Memory

  applyMemoryPressure(server: ServerHost, share: number, ms: Millis): void {
    server.memoryShare = () => share;
    this.world.recording.memoryPressuredServers.add(server.name);
    this.schedule(ms, 'memory freed', undefined, () => this.#freeMemory(server));
  }

  #freeMemory(server: ServerHost): void {
    if (server.memoryShare() > 0) this.#memoryRecoveredMs = this.nowMs + memoryNoticedMs;
    server.memoryShare = () => 0;
  }

  // --- Links between servers

  /**
   * Cuts the links between `these` and `those` for `ms`; with `one way` only from `these` to
   * `those`.
   */
  cutLinks(these: readonly Machine[], those: readonly Machine[], ms: Millis, how: 'both ways' | 'one way' = 'both ways'): void {
    const links = these.flatMap((a) => those.filter((b) => b !== a).map((b) => this.world.link(a.name, b.name)));
    for (const link of links) {
      if (how === 'one way') link.cutOneWay('forward');
      else link.cut();
    }
    const mended = this.#recordDisturbance([...these, ...those], ms);
    this.schedule(ms, 'link well', undefined, () => {
      if (!this.isHealed) for (const link of links) link.heal();
      mended();
    });
  }

  /** Slows the link between two machines for a while. */
  slowLink(a: Machine, b: Machine, delayMs: Millis, ms: Millis): void {
    const link = this.world.link(a.name, b.name);
    link.slow(delayMs);
    // Packets then in transit still take this long, and packets sent later arrive after them.
    this.#recordDisturbance([a, b], ms + delayMs);
    this.schedule(ms, 'link fast', undefined, () => {
      if (!this.isHealed) link.slow(0);
    });
  }

  /** Nothing passes through this pipe for a while. */
  holdPipe(pipe: Pipe, ms: Millis): void {
    pipe.cut();
    const machines = [pipe.from, pipe.to].map(({ stack }) => ({ name: this.world.nameOf(stack.address) ?? '' }));
    const mended = this.#recordDisturbance(machines, ms);
    this.schedule(ms, 'pipe well', undefined, () => {
      pipe.heal();
      mended();
    });
  }

  /** The name of the server does not resolve for a while. */
  hideName(server: ServerHost, ms: Millis): void {
    this.world.hideName(server.name, true);
    this.schedule(ms, 'name found', undefined, () => this.world.hideName(server.name, false));
  }

  cnxnsBetweenServers(): VirtualCnxn[] {
    const isServer = ({ address }: { readonly address: string }) => this.world.serverAt(address) !== undefined;
    return [...this.world.wire.cnxns].filter(({ dialer, listener }) => isServer(dialer) && isServer(listener));
  }

  /** The server from which this one learns; undefined if it learns from none. */
  masterOf({ address }: ServerHost): ServerHost | undefined {
    const found = this.cnxnsBetweenServers().find(
      ({ dialer, listener }) => dialer.address === address && peerPortKind(listener.port) === 'quorum',
    );
    return found === undefined ? undefined : this.world.serverAt(found.listener.address);
  }

  #recordDisturbance(machines: readonly Machine[], ms: Millis): () => void {
    const disturbance = { machines: machines.map(({ name }) => name), fromMs: this.nowMs, toMs: this.nowMs + ms };
    this.world.recording.disturbances.push(disturbance);
    return () => {
      disturbance.toMs = Math.min(disturbance.toMs, this.nowMs);
    };
  }

  // --- Clients

  /**
   * Whether a client is served; or cannot be, because the lies of an impersonator have made it see
   * a txn that no server has which serves: servers turn such a client away, since it would go back
   * in time.
   */
  isServed(actor: Actor): boolean {
    const { recording, servers } = this.world;
    if (isIdle(actor)) return true;
    const serving = servers.filter(({ role }) => role !== undefined && role !== 'looking' && role !== 'read-only');
    return recording.isImpersonated && serving.length > 0 && serving.every(({ lastZxid }) => shownZxid(recording, actor) > lastZxid);
  }

  // --- Healing

  /**
   * Heals a quorum of the voters, in every configuration that counts at some server, and the links from clients to all servers. The other servers stay
   * as they are, cut off, or down.
   */
  healCore(): readonly ServerHost[] {
    this.isHealed = true;
    this.updateServerLists();
    const configs = configsInForce(this.world);
    const voters = this.world.servers.filter(({ name }) => configs.some((members) => members.get(name)?.isVoter === true));
    // Leaves out voters in random order as long as the rest is a quorum, first those that lost
    // their disks: not everything may depend on them.
    let core = voters;
    const order = voters.map((server) => ({ server, turn: this.#random.below(1000) - (this.disks.isWiped(server) ? 1000 : 0) }));
    for (const { server } of order.sort((a, b) => a.turn - b.turn)) {
      const rest = core.filter((each) => each !== server);
      const names = rest.map(({ name }) => name);
      if (isQuorumOfAll(configs, names)) core = rest;
    }
    const others = this.world.servers.filter((server) => !core.includes(server));
    const isOther = (name: string) => others.some((server) => server.name === name);
    const isServer = (name: string) => this.world.servers.some((server) => server.name === name);
    // A client may be served by a server that is not in the core.
    const staysFaulty = (a: string, b: string) => (isOther(a) && isServer(b)) || (isServer(a) && isOther(b));
    for (const link of this.world.links) {
      if (staysFaulty(link.a, link.b)) continue;
      link.heal();
      link.slow(0);
    }
    this.#healPipes((a, b) => !staysFaulty(a, b));
    this.#healServers(core);
    for (const server of others) this.#leaveFaulty(server, core);
    return core;
  }

  #leaveFaulty(server: ServerHost, core: readonly ServerHost[]): void {
    this.#onHealed.push(this.#recordDisturbance([server], Infinity));
    switch (this.#random.below(5)) {
      case 0:
        this.#leftDown.add(server);
        server.kill();
        return;
      case 1:
        for (const each of core) this.world.link(each.name, server.name).cutOneWay('forward');
        return;
      case 2:
        for (const each of core) this.world.link(each.name, server.name).cutOneWay('backward');
        return;
      case 3:
        for (const each of core) this.world.link(each.name, server.name).cut();
        return;
      default:
    }
  }

  #healServers(servers: readonly ServerHost[]): void {
    // Before any is written: a written one has version 0, and would count for less than an old one.
    const configs = configsForLost(servers, this.world.servers);
    for (const server of servers) this.#healServer(server, configs.get(server));
  }

  /** An operator writes the present configuration for servers that cannot find any voter that they know. */
  findLostServers(): void {
    const { servers } = this.world;
    for (const [server, config] of configsForLost(servers, servers)) this.#healServer(server, config);
  }

  /** Those of `servers` that cannot learn the present configuration from the others, since too few have kept its files. */
  outdatedAmong(servers: readonly ServerHost[]): readonly ServerHost[] {
    const { recording } = this.world;
    const present = lastActivated(recording);
    return present === undefined ? [] : outdatedServers(servers, present, recording.limits.oracleSid);
  }

  /** An operator writes the present configuration for them. */
  writeLostConfig(): void {
    const present = lastActivated(this.world.recording)!;
    for (const server of this.outdatedAmong(this.world.servers)) this.#healServer(server, present);
  }

  #healServer(server: ServerHost, config: string | undefined): void {
    if (config !== undefined) {
      this.hitMark('an operator wrote the present configuration');
      server.kill();
      server.writeConfig(config);
    }
    this.world.hideName(server.name, false);
    this.#freeMemory(server);
    this.disks.heal(server);
    server.repair();
    if (server.process === undefined) this.restartAfter(server, 1);
  }

  #healPipes(isHealed: (dialer: string, listener: string) => boolean): void {
    const { world } = this;
    for (const { dialer, listener, forward, backward } of world.wire.cnxns) {
      if (!isHealed(world.nameOf(dialer.address) ?? '', world.nameOf(listener.address) ?? '')) continue;
      for (const pipe of [forward, backward]) {
        const delayMs = 1 + this.world.distanceMs(dialer.address, listener.address);
        Object.assign(pipe.conditions, { delayMs, windowBytes: 65_536, pieceBytes: Infinity, pieceIntervalMs: 0 });
        pipe.heal();
        pipe.conditionsChanged();
      }
    }
  }

  /** Programs whose clients have lost all servers know where servers are. */
  updateServerLists(): void {
    for (const actor of this.actors) if (actor instanceof LibraryClient) actor.updateServerList();
  }

  heal(): void {
    this.isHealed = true;
    this.updateServerLists();
    this.#leftDown.clear();
    for (const mended of this.#onHealed.splice(0)) mended();
    for (const link of this.world.links) {
      link.heal();
      link.slow(0);
    }
    this.#healPipes(() => true);
    this.#healServers(this.world.servers);
  }
}

/** The last txn that a client had seen when it last asked for a session. */
export function shownZxid({ cnxns }: Pick<Recording, 'cnxns'>, { name }: Pick<Actor, 'name'>): Zxid {
  return cnxns.findLast(({ client, handshake }) => client === name && handshake !== undefined)?.handshake?.lastZxidSeen ?? 0;
}

/** The client has a session and waits for nothing. */
export function isIdle(actor: Actor): boolean {
  return actor.ready && actor.outstandingCount === 0;
}
