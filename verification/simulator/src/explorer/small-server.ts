/**
 * A production server of a small world: a `Peer`, and around it what a process has: streams, a disk
 * that performs one request when the explorer chooses so, a clock that the explorer advances, and
 * clients that send one request each.
 *
 * The parts take the outputs of the peer: `SmallStorage` what it writes, `SmallStreams` its
 * packets, `SmallElection` its notifications, `SmallCnxns` its replies. This file has the inputs.
 * An input that lets the peer work is a turn; at its end all output is sent.
 */
import {
  counterOf,
  type Millis,
  type Notification,
  type QuorumConfig,
  Reader,
  type Sid,
  systemPath,
  writeConnectRequest,
  Writer,
  type Zxid,
} from '@tskeeper/protocol';
import { type ChannelId, type CnxnId, type Now, Peer, type PeerOptions } from '@tskeeper/core';
import { CommittedLog, committedLogDefaults, Configuration, type Fingerprint } from '@tskeeper/core/internal';
import { type ServerView, versionName } from './invariants.ts';
import type { ServerState, SmallServerEnvironment, UsedConfigs } from './server-environment.ts';
import {
  clientContext,
  core,
  fixedRandom,
  initialWallMs,
  initLimitTicks,
  longPauseMs,
  sessionTimeoutMs,
  tickTimeMs,
  wallPerWriteMs,
} from './server-settings.ts';
import type { clientRequests } from './small-client.ts';
import { SmallCnxns } from './small-cnxns.ts';
import { type CrashDepth, type DiskState, SmallDisk } from './small-disk.ts';
import { SmallElection } from './small-election.ts';
import { requestedMembers } from './small-ensemble.ts';
import { SmallStorage } from './small-storage.ts';
import { SmallStreams, type StreamEnd } from './small-streams.ts';
import { isReconfig, membersOf, membersText, sessionName } from './txn-names.ts';

/** Cnxn ids of the persistent client begin here. Others are numbered by their writes. */
const smallClientCnxnBase = 100;
/** Those of the operator begin here. */
const operatorCnxnBase = 200;

export class SmallServer implements ServerState {
  readonly sid: Sid;
  readonly world: SmallServerEnvironment;
  peer: Peer | undefined;
  readonly disk: SmallDisk;
  readonly election: SmallElection;
  readonly streams: SmallStreams;
  readonly #storage: SmallStorage;
  readonly #cnxns: SmallCnxns;
  #committedLog: CommittedLog | undefined;
  clockMs: Millis = 1000;
  /** What it uses, or has used before it crashed. */
  #configs: UsedConfigs;

  constructor(world: SmallServerEnvironment, sid: Sid, disk: DiskState | undefined) {
    this.world = world;
    this.sid = sid;
    this.disk = new SmallDisk(disk, world.initialFile(sid));
    this.#configs = { active: this.disk.configs.state.active, lastSeen: this.disk.configs.lastSeen };
    this.election = new SmallElection(this);
    this.streams = new SmallStreams(this, this.disk, this.election);
    this.#storage = new SmallStorage(this, this.disk);
    this.#cnxns = new SmallCnxns(world);
  }

  get now(): Now {
    return { elapsedMs: this.clockMs, wallMs: initialWallMs + this.world.writes * wallPerWriteMs };
  }

  /**
   * Whether it takes part in elections, even if it is silent for a while. Before that its disk must
   * have answered every request.
   */
  get isLooking(): boolean {
    return this.peer !== undefined && this.election.isWithoutLeader && this.disk.isWritten;
  }

  view(): ServerView {
    const { peer, sid } = this;
    const { durable, logged, acceptedEpoch, currentEpoch } = this.disk;
    const role = peer === undefined || peer.role === 'looking' ? undefined : peer.role;
    const serves = peer?.server !== undefined;
    const appliedZxid = peer?.replica.lastZxid ?? 0;
    const [state, committedLogZxids] = serves ? [this.stateInMemory(), this.#committedLogZxids()] : [];
    const { epoch } = peer ?? {};
    const { version: configVersion } = this.#configs.active;
    const epochs = { acceptedEpoch, currentEpoch };
    return { sid, role, serves, epoch, durable, logged, appliedZxid, state, committedLogZxids, configVersion, ...epochs };
  }

  #committedLogZxids(): Zxid[] {
    const committedLog = this.#committedLog!;
    const { oldest } = committedLog;
    if (oldest === undefined) return [];
    const zxids = [oldest];
    committedLog.forEachAbove(oldest, (zxid) => zxids.push(zxid) > 0);
    return zxids;
  }

  stateInMemory(): string[] {
    const { sessions, tree } = this.peer!.replica;
    const names: string[] = [];
    sessions.forEach((slot) => names.push(sessionName(sessions.high(slot), sessions.low(slot))));
    const data = tree.dataOf(tree.find('/'));
    if (data !== null && data.length > 0) names.push(data.toString());
    if (this.world.isReconfigurable) names.push(...this.#configInMemory());
    return names.sort();
  }

  /** The configuration in the tree, if a txn has written it. */
  #configInMemory(): string[] {
    const { tree } = this.peer!.replica;
    const version = Number.parseInt(/^version=(.*)$/m.exec(tree.dataOf(tree.find(systemPath.config))!.toString())![1]!, 16);
    return counterOf(version) === 0 ? [] : [versionName(version)];
  }

  // ---- configurations

  configChanged(configs: UsedConfigs): void {
    const { world } = this;
    if (this.#configs.lastSeen !== undefined && configs.lastSeen === undefined && configs.active.version === this.#configs.active.version)
      world.hit('pending configuration taken back');
    if (configs.active.version > this.#configs.active.version && this.peer?.role === 'looking')
      world.hit('configuration learned in an election');
    this.#configs = configs;
  }

  get isVoter(): boolean {
    return this.#configs.active.servers.get(this.sid)?.role === 'participant';
  }

  get configs(): UsedConfigs {
    return this.#configs;
  }

  /** The members of every configuration that this server counts by, or will if it starts. */
  knownMembers(): string[] {
    const { active, lastSeen } = this.#configs;
    const logged = this.disk.logged.filter(({ zxid, name }) => isReconfig(name) && zxid > active.version);
    return [membersText(active), ...(lastSeen === undefined ? [] : [membersText(lastSeen)]), ...logged.map(({ name }) => membersOf(name)!)];
  }

  // ---- life cycle

  start(): void {
    const { scope, isReconfigurable } = this.world;
    const { sid, disk, streams, election } = this;
    this.#addOwnLine();
    const { active } = disk.configs.state;
    const { lastSeen } = disk.configs;
    this.#configs = { active, lastSeen };
    if (lastSeen !== undefined) this.world.hit('pending configuration at a start');
    if (active.version > 0 && membersText(active) !== this.world.membersInForce) this.world.hit('old configuration at a start');
    const { acceptedEpoch, currentEpoch, lastZxid } = disk;
    const committedLog = (this.#committedLog = new CommittedLog({ ...committedLogDefaults, countMax: scope.committedLog }));
    for (const { zxid, bytes } of disk.log) committedLog.restore(zxid, bytes);
    const snapshotZxid = disk.snapshot?.zxid ?? 0;
    const recovered = { replica: disk.replay(), lastZxid, acceptedEpoch, currentEpoch, committedLog, snapshotZxid };
    const options: PeerOptions = {
      core: { ...core, serverId: sid, reconfigEnabled: isReconfigurable, skipAcl: isReconfigurable },
      zab: { sid, tickTimeMs, initLimitTicks, syncLimitTicks: initLimitTicks, forceSnapshotSync: false, counterMax: 0xffff_0000 },
    };
    const config = new Configuration({ sid, active, lastSeen, reconfigEnabled: isReconfigurable });
    const io = { clients: this.#cnxns, election, quorum: streams, storage: this.#storage };
    this.#turn(() => {
      const { observer } = election;
      const parts = { options, config, start: recovered, packetView: streams.view, io, random: fixedRandom, observer };
      this.peer = new Peer(parts, this.now);
    });
  }

  /**
   * No server starts with files that do not name it. The operator of one that was removed writes its
   * line beside the servers that it knew last, as for a server that is to join.
   */
  #addOwnLine(): void {
    const { configs } = this.disk;
    const { active } = configs.state;
    if (active.servers.has(this.sid)) return;
    this.world.hit('server outside the configuration starts');
    const own = this.world.initialFile(this.sid).servers.get(this.sid)!;
    configs.replace({ ...active, version: 0, servers: new Map([...active.servers, [this.sid, own]]) });
  }

  /** Ends at once. The disk has carried out this many of its requests, without having answered. */
  crash({ log, epochs, configs }: CrashDepth): void {
    const { disk, streams, world } = this;
    const isLeading = this.peer?.role === 'leading';
    for (const { lastSyncPacket } of streams.ends.values()) {
      if (lastSyncPacket === 'NEWLEADER') world.hit(isLeading ? 'leader crashes before UPTODATE' : 'learner crashes before its ACK');
    }
    for (const request of disk.logQueue.slice(0, log)) disk.store(request);
    for (const request of disk.fileQueue.slice(0, epochs)) this.#storage.storeEpoch(request);
    disk.configs.crash(configs);
    disk.dropRequests();
    this.#configs = { active: disk.configs.state.active, lastSeen: disk.configs.lastSeen };
    this.peer = undefined;
    this.election.crash();
    streams.crash();
    if (world.client.connectedTo === this.sid) world.client.disconnected();
    this.#cnxns.clear();
  }

  /** Processes one input; its output is sent at the end. */
  #turn(input: (peer: Peer) => void): void {
    const { streams } = this;
    input(this.peer!);
    streams.flush();
    for (let channel = streams.takeClosed(); channel !== undefined; channel = streams.takeClosed()) {
      this.peer!.channelGone(channel, this.now);
      streams.flush();
    }
    for (const cnxn of this.#cnxns.deliverReplies()) {
      this.peer!.front.disconnected(cnxn, this.now);
      streams.flush();
    }
    this.election.afterTurn(this.peer!);
  }

  // ---- elections

  notified(from: Sid, notification: Notification): void {
    const { connected, refusingPeers } = this.election;
    const wasLooking = this.isLooking;
    refusingPeers.delete(from);
    this.#turn((peer) => {
      if (!connected.has(from)) peer.reachable(from);
      connected.add(from);
      peer.notified(from, notification, this.now);
    });
    if (wasLooking && notification.state === 'looking') this.#markEarlySettle();
  }

  unreachable(sid: Sid): void {
    const wasLooking = this.isLooking;
    this.election.refusedBy(sid);
    this.#turn((peer) => peer.unreachable(sid, this.now));
    if (wasLooking) this.#markEarlySettle();
  }

  #markEarlySettle(): void {
    if (this.isLooking) return;
    this.world.hit(
      this.election.refusingPeers.size > 0 ? 'election finalized early without an unreachable server' : 'election finalized early',
    );
  }

  // ---- streams

  dialFailed(outcome: 'refused' | 'unanswered'): void {
    this.#turn((peer) => peer.dialFailed(outcome, this.now));
  }

  accepted(channel: ChannelId): void {
    this.#turn((peer) => peer.accepted(channel, this.now));
  }

  dialled(channel: ChannelId): void {
    this.#turn((peer) => peer.dialled(channel, this.now));
  }

  /** The next packet arrives, or the news that the stream is closed. */
  receive(end: StreamEnd): void {
    const bytes = end.inbox.shift();
    if (bytes === undefined) {
      this.streams.close(end);
      this.#turn((peer) => peer.channelGone(end.channel, this.now));
      return;
    }
    const { cutter, channel } = end;
    this.#turn((peer) => {
      cutter.feed(bytes, 0, bytes.length, {
        packet: (packet) => {
          this.streams.received(end, packet);
          peer.packet(channel, packet, this.now);
          if (peer.isReceivingSnapshot(channel)) cutter.beginRaw();
          return true;
        },
        raw: (chunk, start, stop) => {
          const taken = start + peer.feedSnapshot(channel, chunk.subarray(start, stop), this.now);
          if (!peer.isReceivingSnapshot(channel)) cutter.endRaw();
          return taken;
        },
      });
    });
  }

  // ---- the disk

  /** The disk has carried out the oldest request to the log. */
  logDone(): void {
    const { disk, streams } = this;
    const request = disk.storeNext();
    switch (request.kind) {
      case 'append':
        this.#turn((peer) => peer.appended(request.txn.zxid, this.now));
        return;
      case 'truncate':
        this.#turn((peer) => {
          if (disk.canTruncateTo(request.zxid)) {
            peer.truncated(disk.replay(), disk.lastZxid, this.now);
          } else {
            this.world.hit('TRUNC impossible');
            peer.truncationRefused(this.now);
          }
        });
        return;
      case 'install':
        this.#turn((peer) => peer.installed(request.snapshot.zxid, this.now));
        return;
      case 'read':
        streams.isReadingLog = true;
        this.#turn((peer) => peer.logRead(request.channel, disk.logFrom(request.from), true));
        streams.isReadingLog = false;
        return;
      default:
        request satisfies never;
    }
  }

  /** The disk has carried out the oldest request to the epoch files. */
  fileDone(): void {
    const request = this.disk.fileQueue.shift()!;
    this.#storage.storeEpoch(request);
    this.#turn((peer) => peer.epochSaved(request.name, request.epoch, this.now));
  }

  /** The disk has carried out the oldest request to the files of the configuration. */
  configDone(): void {
    this.disk.storeNextConfig();
    this.#turn((peer) => peer.configSaved(this.now));
  }

  // ---- time

  wake(): void {
    const { election } = this;
    this.clockMs = Math.max(this.clockMs, this.peer!.deadline()!);
    const wasLooking = this.isLooking;
    const votedFor = election.takeVote();
    this.#turn((peer) => peer.wake(this.now));
    election.afterWake(votedFor, wasLooking && this.isLooking);
    if (wasLooking && !this.isLooking && this.world.hasUnreachablePeer(this.sid)) this.world.hit('finalize wait for a silent server');
  }

  /** Time passes for it, as for every other server. */
  advanceClock(ms: Millis): void {
    this.clockMs += ms;
    const deadline = this.peer?.deadline();
    if (deadline !== undefined && deadline <= this.clockMs) this.wake();
  }

  pauseLong(): void {
    this.clockMs += longPauseMs;
    this.#turn((peer) => peer.wake(this.now));
  }

  // ---- clients

  /** A client connects and requests a session. */
  openSession(cnxn: CnxnId): void {
    const request = new Writer(64);
    writeConnectRequest(request, {
      protocolVersion: 0,
      lastZxidSeen: 0,
      timeOut: sessionTimeoutMs,
      sessionId: 0n,
      passwd: Buffer.alloc(16),
      readOnly: false,
    });
    this.#cnxns.open(cnxn, false);
    this.#connect(cnxn, Buffer.from(request.written()));
  }

  /** The persistent client connects, for the n-th time. */
  clientConnects(number: number): void {
    const cnxn = smallClientCnxnBase + number;
    const frame = this.world.client.connect(this.sid, sessionTimeoutMs);
    this.#cnxns.open(cnxn, true);
    this.#connect(cnxn, frame);
  }

  #connect(cnxn: CnxnId, frame: Buffer): void {
    this.#turn((peer) => {
      peer.front.connect(cnxn, clientContext, this.now);
      peer.front.frame(cnxn, new Reader(frame), this.now);
    });
  }

  /** The operator connects, and asks for this configuration. */
  reconfigure(config: QuorumConfig): void {
    const { operator } = this.world;
    const { connect, reconfig, cnxn } = operator.request(membersText(config), requestedMembers(config), sessionTimeoutMs);
    const id = operatorCnxnBase + operator.requests;
    cnxn.isForwarded = this.peer!.role === 'learning';
    this.#cnxns.open(id, false, cnxn);
    this.#turn((peer) => {
      peer.front.connect(id, clientContext, this.now);
      for (const frame of [connect, reconfig]) peer.front.frame(id, new Reader(frame), this.now);
    });
  }

  /** An operator asks this server, which leads, to give the lead to another. */
  transferLeadership(target: Sid): void {
    this.#turn((peer) => {
      const outcome = peer.transferLeadership(target, this.now);
      if (typeof outcome === 'string') this.world.hit('transfer refused');
    });
  }

  clientRequests(what: (typeof clientRequests)[number]): void {
    const [cnxn] = this.#cnxns.ofSmallClient();
    const frames = this.world.client.request(what, this.world.writes);
    this.#turn((peer) => {
      for (const frame of frames) peer.front.frame(cnxn!, new Reader(frame), this.now);
    });
  }

  clientDisconnects(): void {
    for (const cnxn of this.#cnxns.ofSmallClient()) {
      this.#cnxns.drop(cnxn);
      this.#turn((peer) => peer.front.disconnected(cnxn, this.now));
    }
  }

  // ---- state

  fingerprint(to: Fingerprint): void {
    this.disk.fingerprint(to);
    this.election.fingerprint(to);
    this.streams.fingerprint(to);
    this.#cnxns.fingerprint(to);
    this.peer?.fingerprint(to, this.now);
  }
}
