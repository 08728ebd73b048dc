/**
 * The environment of a run: servers that are kept running, clients that are kept busy, and the
 * marks noted so far. Faults act through it and know nothing about the rest of the run.
 */
import type { Millis, Zxid } from '@tskeeper/protocol';
import { type DiskCall, type DiskFault, VirtualDisk, SeededRandom, StorageRefused } from '@tskeeper/runtime';
import type { Actor } from '../clients/actor.ts';
import { MemoryHog, type MemoryHogOptions } from '../clients/memory-hog.ts';
import { HalfOpenClient } from '../clients/half-open-client.ts';
import { RawClient, type SessionDump } from '../clients/raw-client.ts';
import { lastLogged, lastServed } from '../record/committed-history.ts';
import type { Recording } from '../record/recording.ts';
import { isQuorum } from '../record/quorum-rule.ts';
import type { ServerHost } from '../world/server-host.ts';
import type { ServerProcess } from '../world/server-process.ts';
import type { TimerOwner } from '../world/virtual-clock.ts';
import type { VirtualWorld } from '../world/virtual-world.ts';
import type { Pipe, VirtualCnxn } from '@tskeeper/runtime/internal';
import { drawCrashChoice } from '../faults/crash-choice.ts';
import { HostilePeer } from '../peers/hostile-peer.ts';
import { snappy } from '../world/snappy.ts';
import { recoverReplica } from './snapshot-states.ts';

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

/** What a slow link passes on at once. */
const pieceBytes = 4096;

/** A stage of the memory guard lasts at least a second, and a server checks every 100 ms. */
const memoryNoticedMs = 1200;

export class Run {
  readonly world: VirtualWorld;
  readonly actors: Actor[] = [];
  /** How often each fault struck and each noted event happened. */
  readonly marks = new Map<string, number>();
  readonly #random: SeededRandom;
  readonly #slowUntilMs = new Map<ServerHost, Millis>();
  /** The longest fsync of a server's disk without faults; 1 ms, as for other calls, if absent. */
  readonly syncMsMax = new Map<ServerHost, Millis>();
  /** The disk errors that excuse a process for ending. */
  readonly #injectedErrors = new Map<ServerProcess, string[]>();
  /** Servers whose disk is full. */
  readonly #fullDisks = new Set<ServerHost>();
  readonly #scheduledBoots = new Set<ServerHost>();
  readonly #impostors: RawClient[] = [];
  /** By then every server has noticed that it has memory again. */
  #memoryRecoveredMs: Millis = 0;
  #pinnedClients = 0;
  #sessionSharers = 0;
  #halfOpenClients = 0;
  readonly #hostilePeers: HostilePeer[] = [];
  /** Servers that lost their disks and may not have everything again. */
  readonly #wiped = new Set<ServerHost>();
  /** Called when everything is healed. */
  readonly #onHealed: (() => void)[] = [];
  /** Servers that stay down for now. */
  readonly #leftDown = new Set<ServerHost>();
  /** Transfer rates of links and disks until the healing. */
  rates = { linkBytesPerMs: Infinity, diskBytesPerMs: Infinity };
  /** Bytes that may be in transit between two servers, if limited. */
  serverWindowBytes = Infinity;
  /** Number of addresses that make servers hold memory for them. */
  memoryHogs = 0;
  /** No more faults may strike. */
  isHealed = false;

  constructor(world: VirtualWorld, random: SeededRandom) {
    this.world = world;
    this.#random = random;
    for (const server of world.servers) {
      server.diskDelayMs = ({ operation, bytes = 0 }) => {
        if (this.nowMs < (this.#slowUntilMs.get(server) ?? 0)) return this.drawMs(300);
        const ms = this.drawMs(operation === 'sync' ? (this.syncMsMax.get(server) ?? 1) : 1);
        return this.isHealed ? ms : ms + bytes / this.rates.diskBytesPerMs;
      };
      server.onFailure = () => this.#onFailure(server);
    }
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
    else if (!this.#isInjected(process, error.message) || (error instanceof StorageRefused && !refusesToRead.test(error.message)))
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
    if (!this.isHealed && !server.options.dbAutocreate && this.canWipe(server) && this.#random.below(2) === 0) {
      this.hitMark('a damaged folder was emptied');
      this.wipe(server);
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
    if (!this.#fullDisks.has(server)) server.disk.fault = undefined;
    if (this.#scheduledBoots.has(server)) return;
    this.#scheduledBoots.add(server);
    this.schedule(ms, 'boot', undefined, () => {
      this.#scheduledBoots.delete(server);
      if (server.process === undefined && !this.#leftDown.has(server)) this.boot(server);
    });
  }

  /**
   * From now on calls of this server's disk fail as `fault` says. A process that ends for one of
   * these errors, and reports it, is excused.
   */
  failDisk(server: ServerHost, fault: (call: DiskCall) => DiskFault | undefined): void {
    server.disk.fault = (call) => {
      const found = fault(call);
      if (found === undefined || server.process === undefined) return found;
      const { operation, path } = call;
      const isLate = found.late === true && (operation === 'write' || operation === 'extend');
      const excuses = this.#injectedErrors.get(server.process) ?? [];
      excuses.push(`${isLate ? 'sync' : operation} ${path}: ${found.code}`);
      this.#injectedErrors.set(server.process, excuses);
      return found;
    };
  }

  #isInjected(process: ServerProcess, failure: string): boolean {
    return this.#injectedErrors.get(process)?.some((excuse) => failure.includes(excuse)) === true;
  }

  #onFailure(server: ServerHost): void {
    const { process } = server;
    if (process === undefined) return;
    if (server.isDamaged && process.record.failure.startsWith('StorageRefused')) this.#handleRefusal(server, process.record.failure);
    else if (!this.#isInjected(process, process.record.failure)) this.reportViolation(`${server.name} failed: ${process.record.failure}`);
    this.hitMark('failed while running');
    // The supervisor takes a while to notice; the server must send nothing more in that time.
    this.schedule(this.drawMs(100), 'end', undefined, () => {
      if (server.process !== process) return;
      if (this.#random.below(2) === 0) server.kill();
      else server.losePower(drawCrashChoice(this.#random));
      this.restartAfter(server, this.drawMs(50));
    });
  }

  /** Nothing more can be written for `ms`. A file may still use space it was allocated before. */
  fillDisk(server: ServerHost, ms: Millis): void {
    this.#fullDisks.add(server);
    this.failDisk(server, ({ operation }) =>
      operation === 'write' || operation === 'extend' ? { code: 'ENOSPC', late: true } : undefined,
    );
    this.schedule(ms, 'disk has room', undefined, () => this.#freeDisk(server));
  }

  #freeDisk(server: ServerHost): void {
    if (this.#fullDisks.delete(server)) server.disk.fault = undefined;
  }

  slowDiskUntil(server: ServerHost, untilMs: Millis): void {
    this.#slowUntilMs.set(server, untilMs);
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

  #recordDisturbance(machines: readonly Machine[], ms: Millis): () => void {
    const disturbance = { machines: machines.map(({ name }) => name), fromMs: this.nowMs, toMs: this.nowMs + ms };
    this.world.recording.disturbances.push(disturbance);
    return () => {
      disturbance.toMs = Math.min(disturbance.toMs, this.nowMs);
    };
  }

  // --- Strangers

  /**
   * Adds a client that connects once with a session of another client and a wrong password, or with
   * a zxid from the future. It gets no further than the handshake.
   */
  addImpostor(victim: RawClient, how: 'wrong password' | 'later zxid'): void {
    const number = this.#impostors.length + 1;
    const impostor = new RawClient(this.world, new SeededRandom(this.#random.uint32()), {
      name: `impostor ${number}`,
      address: `10.7.${number >> 8}.${number & 255}`,
      timeoutMs: victim.options.timeoutMs,
    });
    impostor.session = victim.session;
    impostor.password = Buffer.from(victim.password ?? []);
    if (how === 'later zxid') impostor.lastZxidSeen = victim.lastZxidSeen + 2 ** 40;
    else if (impostor.password.length > 0) impostor.password[0]! ^= 0x55;
    impostor.dialOnce();
    this.#impostors.push(impostor);
    this.hitMark(`impostor ${how}`);
  }

  /**
   * A visitor (`addPinnedClient`) that reads `/` at each `ask`, and closes its session at `leave`.
   */
  addReader(server: ServerHost): { ask(): void; leave(): void } {
    const reader = this.addPinnedClient(server);
    return {
      ask: () => {
        if (reader.send('getData', { path: '/', watch: false }) !== undefined) this.hitMark('read at the end of a pause');
      },
      leave: () => {
        reader.send('closeSession', undefined);
      },
    };
  }

  /** Adds a client that connects to one server, once, with the longest session timeout. */
  addPinnedClient(server: ServerHost): RawClient {
    const number = ++this.#pinnedClients;
    const { maxSessionTimeoutMs: timeoutMs } = this.world.recording.limits;
    const visitor = new RawClient(this.world, new SeededRandom(this.#random.uint32()), {
      name: `visitor ${number}`,
      address: `10.5.${number >> 8}.${number & 255}`,
      timeoutMs,
      server,
    });
    visitor.dialOnce();
    return visitor;
  }

  /** Adds a second process that uses the session of a client, from a dump. */
  addSessionSharer({ options }: RawClient, dump: SessionDump): RawClient {
    const number = ++this.#sessionSharers;
    const { timeoutMs, credentials } = options;
    const twin = new RawClient(this.world, new SeededRandom(this.#random.uint32()), {
      name: `twin ${number}`,
      address: `10.4.${number >> 8}.${number & 255}`,
      timeoutMs,
      credentials,
      redialMsMax: 15,
    });
    twin.resumeFrom(dump);
    return twin;
  }

  /** Adds an address that makes a server hold memory for it for a while. */
  addMemoryHog(bytesPerCnxn: readonly number[], ms: Millis, how: Pick<MemoryHogOptions, 'requestsPerCnxn' | 'windowBytes'>): void {
    const number = ++this.memoryHogs;
    const name = `hoarder ${number}`;
    const address = `10.6.${number >> 8}.${number & 255}`;
    const memoryHog = new MemoryHog(this.world, { name, address, timeoutMs: 600, server: this.anyServer(), bytesPerCnxn, ...how });
    this.schedule(ms, 'hoarder hangs up', undefined, () => memoryHog.hangUp());
  }

  /** Adds an address that opens connections to a server and sends nothing useful. */
  addHalfOpenClient(bytesPerCnxn: readonly number[], ms: Millis): void {
    const number = ++this.#halfOpenClients;
    const name = `loiterer ${number}`;
    const address = `10.3.${number >> 8}.${number & 255}`;
    const halfOpenClient = new HalfOpenClient(this.world, { name, address, server: this.anyServer(), bytesPerCnxn });
    this.schedule(ms, 'loiterer hangs up', undefined, () => halfOpenClient.hangUp());
  }

  /**
   * Adds a hostile peer with a machine of its own, which will speak to servers as if it were one.
   */
  newHostilePeer(): HostilePeer {
    const peer = new HostilePeer(this.world, this.#hostilePeers.length + 1);
    this.#hostilePeers.push(peer);
    return peer;
  }

  /**
   * Peers that used a server's id leave. Half of the other hostile peers stay: they must do no
   * harm.
   */
  endAttacks(): void {
    const { isImpersonated } = this.world.recording;
    for (const peer of this.#hostilePeers) if (isImpersonated || this.#random.below(2) === 0) peer.leave();
  }

  /**
   * Whether a client is served; or cannot be, because the lies of an impersonator have made it see
   * a txn that no server has which serves: servers turn such a client away, since it would go back
   * in time.
   */
  isServed(actor: Actor): boolean {
    const { recording, servers } = this.world;
    if (isIdle(actor)) return true;
    const serving = servers.filter(({ role }) => role !== undefined && role !== 'looking');
    return recording.isImpersonated && serving.length > 0 && serving.every(({ lastZxid }) => shownZxid(recording, actor) > lastZxid);
  }

  // --- Disks that are lost

  /**
   * Whether the servers that kept their disks, or were sent everything since, and that have
   * everything that was ever committed, still form a quorum without this one: it may be the only
   * one besides the leader that has everything.
   */
  canWipe(server: ServerHost): boolean {
    for (const each of this.#wiped)
      if (each.role === 'leader' || each.role === 'follower' || each.role === 'observer') this.#wiped.delete(each);
    if (this.#fullDisks.has(server)) return false;
    if (!server.isVoter) return true;
    const { recording, servers } = this.world;
    const voters = servers.filter(({ isVoter }) => isVoter);
    const [committed, logged] = [lastServed(recording), lastLogged(recording)];
    const left = voters.filter(
      (each) => each !== server && !this.#wiped.has(each) && (logged.get(each.name) ?? recording.seedState.zxid) >= committed,
    );
    return isQuorum(
      recording.ensemble,
      left.map(({ name }) => name),
    );
  }

  wipe(server: ServerHost): void {
    server.kill();
    server.wipe();
    this.#wiped.add(server);
  }

  // --- Healing

  /**
   * Heals a quorum of the voters and the links from clients to all servers. The other servers stay
   * as they are, cut off, or down.
   */
  healCore(): readonly ServerHost[] {
    this.isHealed = true;
    const voters = this.world.servers.filter(({ isVoter }) => isVoter);
    // Leaves out voters in random order as long as the rest is a quorum, first those that lost
    // their disks: not everything may depend on them.
    let core = voters;
    const order = voters.map((server) => ({ server, turn: this.#random.below(1000) - (this.#wiped.has(server) ? 1000 : 0) }));
    for (const { server } of order.sort((a, b) => a.turn - b.turn)) {
      const rest = core.filter((each) => each !== server);
      const names = rest.map(({ name }) => name);
      if (isQuorum(this.world.recording.ensemble, names)) core = rest;
    }
    const others = this.world.servers.filter((server) => !core.includes(server));
    const isOther = (name: string) => others.some((server) => server.name === name);
    const isServer = (name: string) => this.world.servers.some((server) => server.name === name);
    for (const link of this.world.links) {
      if ((isOther(link.a) && isServer(link.b)) || (isServer(link.a) && isOther(link.b))) continue;
      link.heal();
      link.slow(0);
    }
    this.#healPipes((name) => !isOther(name));
    for (const server of core) this.#healServer(server);
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

  #healServer(server: ServerHost): void {
    this.#slowUntilMs.delete(server);
    this.world.hideName(server.name, false);
    this.#freeMemory(server);
    this.#freeDisk(server);
    server.disk.fault = undefined;
    server.repair();
    if (server.process === undefined) this.restartAfter(server, 1);
  }

  #healPipes(isHealed: (name: string) => boolean): void {
    for (const { dialer, listener, forward, backward } of this.world.wire.cnxns) {
      if (![dialer, listener].every(({ address }) => isHealed(this.world.nameOf(address) ?? ''))) continue;
      for (const pipe of [forward, backward]) {
        const delayMs = 1 + this.world.distanceMs(dialer.address, listener.address);
        Object.assign(pipe.conditions, { delayMs, windowBytes: 65_536, pieceBytes: Infinity, pieceIntervalMs: 0 });
        pipe.heal();
        pipe.conditionsChanged();
      }
    }
  }

  heal(): void {
    this.isHealed = true;
    this.#leftDown.clear();
    for (const mended of this.#onHealed.splice(0)) mended();
    for (const link of this.world.links) {
      link.heal();
      link.slow(0);
    }
    this.#healPipes(() => true);
    for (const server of this.world.servers) this.#healServer(server);
  }
}

/** The client has a session and waits for nothing. */
/** The last txn that a client had seen when it last asked for a session. */
export function shownZxid({ cnxns }: Pick<Recording, 'cnxns'>, { name }: Pick<Actor, 'name'>): Zxid {
  return cnxns.findLast(({ client, handshake }) => client === name && handshake !== undefined)?.handshake?.lastZxidSeen ?? 0;
}

export function isIdle(actor: Actor): boolean {
  return actor.ready && actor.outstandingCount === 0;
}
