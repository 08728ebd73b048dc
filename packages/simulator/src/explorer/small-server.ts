/**
 * A production server of a small world: a `Peer`, and around it what a process has: streams, a disk
 * that carries out one request when told to, a clock that moves when told to, and clients that send
 * one request each.
 */
import {
  counterOf,
  epochOf,
  type Millis,
  type Notification,
  PacketDecoder,
  PacketType,
  PacketView,
  Reader,
  readAckEpoch,
  readConnectResponse,
  readTxn,
  sessionHigh,
  sessionLow,
  type Sid,
  writeConnectRequest,
  Writer,
  type Zxid,
} from '@tskeeper/protocol';
import {
  type ChannelCloseReason,
  type ChannelId,
  type CnxnId,
  coreDefaults,
  type EpochName,
  type Now,
  type Observer,
  Peer,
  type PeerClients,
  type PeerOptions,
  type ElectionLinks,
  type PeerStorage,
  type QuorumLinks,
  silentObserver,
} from '@tskeeper/core';
import {
  CommittedLog,
  committedLogDefaults,
  type Fingerprint,
  type QuorumVerifier,
  Replica,
  replicaOptions,
  SnapshotLoader,
} from '@tskeeper/core/internal';
import { type Invariants, type NamedTxn, type ServerView, Violation } from './invariants.ts';
import type { MarkName } from './marks.ts';
import type { clientRequests, SmallClient } from './small-client.ts';
import { errorName, sessionName } from './txn-names.ts';
import type { Scope } from './scope.ts';

const tickTimeMs = 100;
const initLimitTicks = 10;
/** Longer than any wait except for the end of a session. */
const longPauseMs = 2 * initLimitTicks * tickTimeMs;
/** Sessions outlive every run. */
const sessionTimeoutMs = 1_000_000_000;
/** Cnxn ids of the persistent client begin here. Others are numbered by their writes. */
const smallClientCnxnBase = 100;
const wallMs = 1_700_000_000_000;
/** Session ids are derived from seconds; each write must get its own. */
const wallPerWriteMs = 1000;
const packetBytesMax = 10_000_000;
/** There is one configuration. */
export const configText = 'version=0';

/** What a server knows of its world. */
export interface SmallServerEnvironment {
  readonly scope: Scope;
  readonly verifier: QuorumVerifier;
  readonly invariants: Invariants;
  /** Number of txns that clients have requested. */
  readonly writes: number;
  isObserver(sid: Sid): boolean;
  /** The persistent client, at whichever server it is. */
  readonly client: SmallClient;
  notify(from: Sid, to: Sid, notification: Notification): void;
  /** A leader has sent a txn to its log, after the txn `before`. */
  proposed(txn: StoredTxn, before: StoredTxn | undefined): void;
  /** The txns that lead to this state at that zxid. */
  historyOf(zxid: Zxid, state: readonly string[]): StoredTxn[];
  hit(mark: MarkName): void;
  /** Whether another server is up that this one receives nothing from. */
  hasUnreachablePeer(sid: Sid): boolean;
  /** A leader has proposed an epoch. */
  epochProposed(sid: Sid, epoch: number): void;
}

/** The content of a disk. */
export interface DiskState {
  readonly log: readonly StoredTxn[];
  readonly snapshot: Snapshot | undefined;
  readonly acceptedEpoch: number;
  readonly currentEpoch: number;
}

export interface StoredTxn extends NamedTxn {
  readonly bytes: Buffer;
}

export interface Snapshot {
  readonly zxid: Zxid;
  readonly bytes: Buffer;
  /** The txns that it covers. */
  readonly txns: readonly StoredTxn[];
}

type LogRequest =
  | { readonly kind: 'append'; readonly txn: StoredTxn }
  | { readonly kind: 'truncate'; readonly zxid: Zxid }
  | { readonly kind: 'install'; readonly snapshot: Snapshot }
  | { readonly kind: 'read'; readonly channel: ChannelId; readonly from: Zxid };

interface FileRequest {
  readonly name: EpochName;
  readonly epoch: number;
}

/** One end of a stream. */
export interface StreamEnd {
  readonly server: SmallServer;
  readonly channel: ChannelId;
  readonly cutter: PacketDecoder;
  readonly writer: Writer;
  /** Packets that were sent to it and have not arrived. */
  readonly inbox: Buffer[];
  /** The server at the other end. */
  readonly from: Sid;
  /** Undefined once that end is closed; then nothing follows what is in the inbox. */
  remoteEnd: StreamEnd | undefined;
  /** The epoch that was proposed over it. */
  proposedEpoch: number;
  /** The last packet over it that begins or ends a synchronisation; only for marks. */
  lastSyncPacket: 'nothing' | 'DIFF' | 'TRUNC' | 'SNAP' | 'NEWLEADER' | 'ACK' | 'UPTODATE';
}

interface Client {
  readonly writer: Writer;
  isAnswered: boolean;
  /** Whether the client keeps its connection. */
  readonly isSmallClient: boolean;
}

/** The name of a txn. The persistent client writes unique texts. */
function nameOf(bytes: Buffer): string {
  const { header, txn } = readTxn(new Reader(Buffer.from(bytes)));
  if (txn.kind === 'setData') return Buffer.from(txn.data ?? []).toString();
  const session = sessionName(header.clientHigh, header.clientLow);
  return txn.kind === 'createSession' ? session : errorName(session, header.cxid);
}

export class SmallServer implements PeerClients, ElectionLinks, QuorumLinks, PeerStorage {
  readonly sid: Sid;
  readonly world: SmallServerEnvironment;
  peer: Peer | undefined;
  #committedLog: CommittedLog | undefined;
  clockMs: Millis = 1000;
  // The content of its disk.
  log: StoredTxn[] = [];
  snapshot: Snapshot | undefined;
  acceptedEpoch = 0;
  currentEpoch = 0;
  // Requests to its disk.
  logQueue: LogRequest[] = [];
  fileQueue: FileRequest[] = [];
  dialing: Sid | undefined;
  /** Whether it has not finished an election since it lost its last leader. */
  #isWithoutLeader = false;
  /**
   * Whether it has announced that it looks for a leader, and has neither followed nor led since.
   */
  announcedLooking = false;
  /** Whether it has followed or led, and does not serve. */
  #hasTriedRole = false;
  /** Whether it has followed or led since it last served, without coming to serve. */
  hasFailedAttempt = false;
  /** The server that it voted for last, while it looks. */
  #votesFor: Sid | undefined;
  readonly streamEnds = new Map<ChannelId, StreamEnd>();
  readonly #closed: ChannelId[] = [];
  readonly clients = new Map<CnxnId, Client>();
  /**
   * The servers with which it has a connection for notifications: one that connects anew is
   * `reachable` again.
   */
  readonly #connected = new Set<Sid>();
  /** The servers that it knows to refuse connections; only for marks. */
  readonly refusingPeers = new Set<Sid>();
  #isReadingLog = false;
  readonly #observer: Observer = {
    ...silentObserver,
    roleEnded: (reason) => {
      if (reason === 'later epoch accepted') this.world.hit('leader yields to a later epoch');
    },
    roleChanged: (role) => {
      if (role === 'looking') this.#isWithoutLeader = true;
    },
    elected: () => {
      this.#isWithoutLeader = false;
    },
  };
  readonly #view = new PacketView();

  constructor(world: SmallServerEnvironment, sid: Sid, disk: DiskState | undefined) {
    this.world = world;
    this.sid = sid;
    if (disk === undefined) return;
    this.log = [...disk.log];
    this.snapshot = disk.snapshot;
    this.acceptedEpoch = disk.acceptedEpoch;
    this.currentEpoch = disk.currentEpoch;
  }

  get disk(): DiskState {
    const { log, snapshot, acceptedEpoch, currentEpoch } = this;
    return { log: [...log], snapshot, acceptedEpoch, currentEpoch };
  }

  get now(): Now {
    return { elapsedMs: this.clockMs, wallMs: wallMs + this.world.writes * wallPerWriteMs };
  }

  get durable(): readonly StoredTxn[] {
    return this.snapshot === undefined ? this.log : [...this.snapshot.txns, ...this.log];
  }

  /** Including what is being written. */
  get logged(): readonly StoredTxn[] {
    if (this.logQueue.length === 0) return this.durable;
    let txns = [...this.durable];
    for (const request of this.logQueue) {
      if (request.kind === 'append') txns.push(request.txn);
      else if (request.kind === 'truncate' && this.#canTruncateTo(request.zxid)) txns = txns.filter(({ zxid }) => zxid <= request.zxid);
      else if (request.kind === 'install') txns = [...request.snapshot.txns];
    }
    return txns;
  }

  /**
   * Whether it takes part in elections, even if it is silent for a while. Before that its disk must
   * have answered every request.
   */
  get isLooking(): boolean {
    if (this.peer === undefined || !this.#isWithoutLeader) return false;
    return this.fileQueue.length === 0 && this.logQueue.every(({ kind }) => kind === 'read');
  }

  view(): ServerView {
    const { peer, sid, durable, logged, acceptedEpoch, currentEpoch } = this;
    const role = peer === undefined || peer.role === 'looking' ? undefined : peer.role;
    const serves = peer?.server !== undefined;
    const appliedZxid = peer?.replica.lastZxid ?? 0;
    const [state, committedLogZxids] = serves ? [this.#state(), this.#committedLogZxids()] : [];
    const { epoch } = peer ?? {};
    return { sid, role, serves, epoch, durable, logged, appliedZxid, state, committedLogZxids, acceptedEpoch, currentEpoch };
  }

  #committedLogZxids(): Zxid[] {
    const committedLog = this.#committedLog!;
    const { oldest } = committedLog;
    if (oldest === undefined) return [];
    const zxids = [oldest];
    committedLog.forEachAbove(oldest, (zxid) => zxids.push(zxid) > 0);
    return zxids;
  }

  #state(): string[] {
    const { sessions } = this.peer!.replica;
    const names: string[] = [];
    sessions.forEach((slot) => names.push(sessionName(sessions.high(slot), sessions.low(slot))));
    const data = this.peer!.replica.tree.dataOf(this.peer!.replica.tree.find('/'));
    if (data !== null && data.length > 0) names.push(data.toString());
    return names.sort();
  }

  // ---- life cycle

  start(): void {
    const { scope, verifier } = this.world;
    const committedLog = (this.#committedLog = new CommittedLog({ ...committedLogDefaults, countMax: scope.committedLog }));
    for (const { zxid, bytes } of this.log) committedLog.restore(zxid, bytes);
    const { sid, acceptedEpoch, currentEpoch } = this;
    const recovered = {
      replica: this.#replay(),
      lastZxid: this.#lastZxid,
      acceptedEpoch,
      currentEpoch,
      committedLog,
      snapshotZxid: this.snapshot?.zxid ?? 0,
    };
    const options: PeerOptions = {
      core: { ...core, serverId: sid },
      zab: { sid, tickTimeMs, initLimitTicks, syncLimitTicks: initLimitTicks, forceSnapshotSync: false, counterMax: 0xffff_0000 },
      role: this.world.isObserver(sid) ? 'observer' : 'participant',
    };
    const config = { verifier, text: configText, version: 0 };
    const io = { clients: this, election: this, quorum: this, storage: this };
    this.#turn(() => {
      const parts = { options, config, start: recovered, packetView: this.#view, io, random: fixedRandom, observer: this.#observer };
      this.peer = new Peer(parts, this.now);
    });
  }

  get #lastZxid(): Zxid {
    return this.log.at(-1)?.zxid ?? this.snapshot?.zxid ?? 0;
  }

  #replay(): Replica {
    let replica = new Replica(treeOptions);
    if (this.snapshot !== undefined) {
      const { bytes, zxid } = this.snapshot;
      const loader = new SnapshotLoader(treeOptions, { itemBytesMax: Infinity });
      loader.feed(bytes);
      replica = new Replica(treeOptions, { snapshot: loader.finish(), zxid });
    }
    for (const { bytes } of this.log) {
      const { header, txn, digest } = readTxn(new Reader(Buffer.from(bytes)));
      replica.apply(header, txn, digest);
    }
    return replica;
  }

  /** Ends at once. The disk has carried out this many of its requests, without having answered. */
  crash(logRequests: number, fileRequests: number): void {
    const isLeading = this.peer?.role === 'leading';
    for (const { lastSyncPacket } of this.streamEnds.values()) {
      if (lastSyncPacket === 'NEWLEADER') this.world.hit(isLeading ? 'leader crashes before UPTODATE' : 'learner crashes before its ACK');
    }
    for (const request of this.logQueue.slice(0, logRequests)) this.#store(request);
    for (const { name, epoch } of this.fileQueue.slice(0, fileRequests)) this.#storeEpoch(name, epoch);
    this.logQueue = [];
    this.fileQueue = [];
    this.peer = undefined;
    this.announcedLooking = this.#hasTriedRole = this.hasFailedAttempt = false;
    this.dialing = undefined;
    for (const end of this.streamEnds.values()) if (end.remoteEnd !== undefined) end.remoteEnd.remoteEnd = undefined;
    this.streamEnds.clear();
    if (this.world.client.connectedTo === this.sid) this.world.client.disconnected();
    this.clients.clear();
    this.refusingPeers.clear();
    this.#connected.clear();
    this.#closed.length = 0;
  }

  /** Processes one input; its output is sent at the end. */
  #turn(input: (peer: Peer) => void): void {
    input(this.peer!);
    this.#flush();
    for (let channel = this.#closed.shift(); channel !== undefined; channel = this.#closed.shift()) {
      this.peer!.channelGone(channel, this.now);
      this.#flush();
    }
    this.#deliverReplies();
    // A server whose role ended looks again, and announces it, once its disk has answered every
    // request.
    const { role, server } = this.peer!;
    if (role !== 'looking') this.announcedLooking = false;
    if (role === 'leading') this.#hasTriedRole = true;
    if (server !== undefined) this.#hasTriedRole = this.hasFailedAttempt = false;
  }

  // ---- inputs

  notified(from: Sid, notification: Notification): void {
    const wasLooking = this.isLooking;
    this.refusingPeers.delete(from);
    this.#turn((peer) => {
      if (!this.#connected.has(from)) peer.reachable(from);
      this.#connected.add(from);
      peer.notified(from, notification, this.now);
    });
    if (wasLooking && notification.state === 'looking') this.#markEarlySettle();
  }

  unreachable(sid: Sid): void {
    const wasLooking = this.isLooking;
    this.refusingPeers.add(sid);
    this.#connected.delete(sid);
    this.#turn((peer) => peer.unreachable(sid, this.now));
    if (wasLooking) this.#markEarlySettle();
  }

  #markEarlySettle(): void {
    if (this.isLooking) return;
    this.world.hit(this.refusingPeers.size > 0 ? 'election finalized early without an unreachable server' : 'election finalized early');
  }

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
      this.#closeEnd(end);
      this.#turn((peer) => peer.channelGone(end.channel, this.now));
      return;
    }
    const { cutter, channel } = end;
    this.#turn((peer) => {
      cutter.feed(bytes, 0, bytes.length, {
        packet: (packet) => {
          if (packet.type === PacketType.LEADERINFO) end.proposedEpoch = epochOf(packet.zxid);
          this.#noteSyncPacket(end, packet.type);
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

  /** The disk has carried out the oldest request to the log. */
  logDone(): void {
    const request = this.logQueue.shift()!;
    this.#store(request);
    switch (request.kind) {
      case 'append':
        this.#turn((peer) => peer.appended(request.txn.zxid, this.now));
        return;
      case 'truncate':
        this.#turn((peer) => {
          if (this.#canTruncateTo(request.zxid)) {
            peer.truncated(this.#replay(), this.#lastZxid, this.now);
          } else {
            this.world.hit('TRUNC impossible');
            peer.truncationRefused(this.now);
          }
        });
        return;
      case 'install':
        this.#turn((peer) => peer.installed(request.snapshot.zxid, this.now));
        return;
      case 'read': {
        const from = Math.max(
          0,
          this.log.findLastIndex(({ zxid }) => zxid <= request.from),
        );
        this.#isReadingLog = true;
        this.#turn((peer) => peer.logRead(request.channel, this.log.slice(from), true));
        this.#isReadingLog = false;
        return;
      }
      default:
        request satisfies never;
    }
  }

  #store(request: LogRequest): void {
    if (request.kind === 'append') {
      this.log.push(request.txn);
    } else if (request.kind === 'truncate' && this.#canTruncateTo(request.zxid)) {
      this.log = this.log.filter(({ zxid }) => zxid <= request.zxid);
    } else if (request.kind === 'install') {
      this.snapshot = request.snapshot;
      this.log = [];
    }
  }

  /**
   * Whether the log can be truncated to this zxid: the txns that a snapshot covers cannot be
   * removed.
   */
  #canTruncateTo(zxid: Zxid): boolean {
    return zxid >= (this.snapshot?.zxid ?? 0);
  }

  fileDone(): void {
    const { name, epoch } = this.fileQueue.shift()!;
    this.#storeEpoch(name, epoch);
    this.#turn((peer) => peer.epochSaved(name, epoch, this.now));
  }

  #storeEpoch(name: EpochName, epoch: number): void {
    this[name] = epoch;
    if (name === 'currentEpoch') this.world.invariants.epochWritten(this.view());
  }

  wake(): void {
    this.clockMs = Math.max(this.clockMs, this.peer!.deadline()!);
    const wasLooking = this.isLooking;
    const votedFor = this.#votesFor;
    this.#votesFor = undefined;
    this.#turn((peer) => peer.wake(this.now));
    // It has changed a vote that too few share, as far as it knows: notifications may still be in
    // transit.
    if (wasLooking && this.isLooking && this.#votesFor !== votedFor) this.hasFailedAttempt = true;
    this.#votesFor ??= votedFor;
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
    this.clients.set(cnxn, { writer: new Writer(64), isAnswered: false, isSmallClient: false });
    this.#turn((peer) => {
      peer.front.connect(cnxn, clientContext, this.now);
      peer.front.frame(cnxn, new Reader(Buffer.from(request.written())), this.now);
    });
  }

  /** The persistent client connects, for the n-th time. */
  clientConnects(number: number): void {
    const cnxn = smallClientCnxnBase + number;
    const frame = this.world.client.connect(this.sid, sessionTimeoutMs);
    this.clients.set(cnxn, { writer: new Writer(64), isAnswered: false, isSmallClient: true });
    this.#turn((peer) => {
      peer.front.connect(cnxn, clientContext, this.now);
      peer.front.frame(cnxn, new Reader(frame), this.now);
    });
  }

  clientRequests(what: (typeof clientRequests)[number]): void {
    const [cnxn] = [...this.clients].find(([, { isSmallClient }]) => isSmallClient)!;
    const frames = this.world.client.request(what, this.world.writes);
    this.#turn((peer) => {
      for (const frame of frames) peer.front.frame(cnxn, new Reader(frame), this.now);
    });
  }

  clientDisconnects(): void {
    for (const [cnxn, { isSmallClient }] of this.clients) {
      if (!isSmallClient) continue;
      this.clients.delete(cnxn);
      this.#turn((peer) => peer.front.disconnected(cnxn, this.now));
    }
  }

  // ---- the outputs of the peer

  notify(to: Sid, notification: Notification): void {
    const { state, leader, zxid } = notification;
    if (state === 'looking') {
      this.announcedLooking = true;
      this.#votesFor = leader;
      this.hasFailedAttempt ||= this.#hasTriedRole;
      if (leader === this.sid) this.world.invariants.voted(zxid, this.view());
    }
    this.world.notify(this.sid, to, notification);
  }

  dialLeader(sid: Sid): void {
    this.announcedLooking = false;
    this.#hasTriedRole = true;
    this.dialing = sid;
  }

  cancelDial(): void {
    this.dialing = undefined;
  }

  /**
   * A new connection makes the server `reachable` with the next notification that arrives over it.
   */
  reconnect(sid: Sid): void {
    this.#connected.delete(sid);
  }

  /** The other server has ended. */
  peerDisconnected(sid: Sid): void {
    this.#connected.delete(sid);
  }

  openStreamEnd(from: Sid): StreamEnd {
    let channel = 0;
    while (this.streamEnds.has(channel)) channel++;
    const cutter = new PacketDecoder(packetBytesMax, this.#view);
    const end: StreamEnd = {
      server: this,
      channel,
      cutter,
      writer: new Writer(64),
      inbox: [],
      from,
      remoteEnd: undefined,
      proposedEpoch: 0,
      lastSyncPacket: 'nothing',
    };
    this.streamEnds.set(channel, end);
    return end;
  }

  packets(channel: ChannelId): Writer {
    return this.streamEnds.get(channel)?.writer ?? new Writer(64);
  }

  writeShared(channel: ChannelId, bytes: Buffer, start: number): void {
    this.packets(channel).raw(bytes, start, bytes.length);
  }

  closeChannel(channel: ChannelId, reason: ChannelCloseReason, text: string): void {
    const end = this.streamEnds.get(channel);
    if (end === undefined) return;
    // Servers that follow the protocol never close a stream for this reason.
    if (reason === 'protocol error') throw new Violation('NoProtocolError', `${this.sid} closes a stream: ${text}`);
    if (reason === 'learner has a later history') this.world.hit('learner ahead of its leader');
    this.#send(end);
    if (end.remoteEnd !== undefined) end.remoteEnd.remoteEnd = undefined;
    this.#closeEnd(end);
    this.#closed.push(channel);
  }

  #closeEnd(end: StreamEnd): void {
    const { lastSyncPacket, channel } = end;
    // Nothing after the packet that closed the stream is read.
    end.cutter.close();
    this.streamEnds.delete(channel);
    const isSyncing =
      lastSyncPacket === 'DIFF' || lastSyncPacket === 'TRUNC' || lastSyncPacket === 'SNAP' || lastSyncPacket === 'NEWLEADER';
    if (!isSyncing || this.peer?.role !== 'learning') return;
    this.world.hit('leader lost while syncing');
    if (this.logQueue.some(({ kind }) => kind === 'truncate')) this.world.hit('leader lost while truncating');
  }

  channelIsFull(): boolean {
    return false;
  }

  append(zxid: Zxid, bytes: Buffer, start: number, end: number): void {
    this.#checkNotRewriting();
    const copy = Buffer.from(bytes.subarray(start, end));
    const txn: StoredTxn = { zxid, bytes: copy, name: nameOf(copy) };
    if (this.peer!.role === 'leading') {
      const { logged } = this;
      this.world.invariants.proposed(this.peer!.epoch!, txn, logged);
      this.world.proposed(txn, logged.at(-1));
    }
    this.logQueue.push({ kind: 'append', txn });
  }

  resumeLogRead(): void {}

  stopLogRead(): void {}

  saveEpoch(name: EpochName, epoch: number): void {
    if (name === 'currentEpoch') this.world.invariants.epochBegun(epoch, this.view());
    this.fileQueue.push({ name, epoch });
  }

  truncate(zxid: Zxid): void {
    this.#checkNotRewriting();
    this.logQueue.push({ kind: 'truncate', zxid });
  }

  /**
   * Like `Storage`, which accepts no other request while it truncates the log or installs a
   * snapshot.
   */
  #checkNotRewriting(): void {
    if (this.logQueue.some(({ kind }) => kind === 'truncate' || kind === 'install')) throw new Error('the folder is being rewritten');
  }

  logBytesMax(): number | undefined {
    return this.world.scope.syncsFromLog ? Infinity : undefined;
  }

  readLog(channel: ChannelId, from: Zxid): void {
    this.logQueue = this.logQueue.filter((request) => request.kind !== 'read' || request.channel !== channel);
    this.logQueue.push({ kind: 'read', channel, from });
  }

  installSnapshot(zxid: Zxid): void {
    this.#checkNotRewriting();
    const bytes = new Writer(1024);
    const source = this.peer!.replica.snapshotStream();
    while (!source.next(bytes, 1 << 20));
    const txns = this.world.historyOf(zxid, this.#state());
    this.logQueue.push({ kind: 'install', snapshot: { zxid, bytes: Buffer.from(bytes.written()), txns } });
  }

  attach(): void {}

  isFull(): boolean {
    return false;
  }

  reply(cnxn: CnxnId): Writer {
    return this.clients.get(cnxn)?.writer ?? new Writer(64);
  }

  close(cnxn: CnxnId): void {
    const client = this.clients.get(cnxn);
    if (client !== undefined) client.isAnswered = true;
  }

  // ---- output

  #flush(): void {
    for (const end of this.streamEnds.values()) this.#send(end);
  }

  /** Sends packet by packet; a snapshot belongs to the packet before it. */
  #send(end: StreamEnd): void {
    const { writer, remoteEnd } = end;
    if (writer.offset === 0) return;
    const bytes = Buffer.from(writer.written());
    writer.clear();
    const splitter = new PacketDecoder(packetBytesMax);
    splitter.feed(bytes, 0, bytes.length, {
      packet: (packet) => {
        this.#sent(end, packet);
        const isSnapshot = packet.type === PacketType.SNAP;
        // Bytes that follow the snapshot in the stream are part of the same piece.
        remoteEnd?.inbox.push(bytes.subarray(packet.start, isSnapshot ? bytes.length : packet.end));
        if (isSnapshot) splitter.beginRaw();
        return true;
      },
      raw: (_chunk, _start, stop) => stop,
    });
  }

  #sent(end: StreamEnd, { type, zxid, data }: PacketView): void {
    const { invariants } = this.world;
    if (type === PacketType.ACK) {
      invariants.acknowledged(zxid, this.view());
      if (counterOf(zxid) === 0) end.lastSyncPacket = 'ACK';
      else if (this.world.verifier.weight(this.sid) === 0) this.world.hit('ACK of weight 0');
    } else if (type === PacketType.LEADERINFO) {
      invariants.epochProposed(epochOf(zxid), this.view());
      this.world.epochProposed(this.sid, epochOf(zxid));
    } else if (type === PacketType.ACKEPOCH) {
      invariants.epochAccepted(end.proposedEpoch, this.view());
      if (readAckEpoch(data) === -1) this.world.hit('epoch accepted before');
    } else if (type === PacketType.INFORM) {
      this.world.hit('INFORM');
    } else if (type === PacketType.PROPOSAL && end.lastSyncPacket === 'DIFF') {
      this.world.hit(this.#isReadingLog ? 'DIFF from the log' : 'DIFF from memory');
    } else if (type === PacketType.PROPOSAL && end.lastSyncPacket === 'TRUNC') {
      this.world.hit('txns behind TRUNC');
    } else if (type === PacketType.TRUNC || type === PacketType.SNAP) {
      this.world.hit(type === PacketType.TRUNC ? 'TRUNC' : 'SNAP');
    }
    this.#noteSyncPacket(end, type);
  }

  #noteSyncPacket(end: StreamEnd, type: number): void {
    if (type === PacketType.DIFF) end.lastSyncPacket = 'DIFF';
    else if (type === PacketType.TRUNC) end.lastSyncPacket = 'TRUNC';
    else if (type === PacketType.SNAP) end.lastSyncPacket = 'SNAP';
    else if (type === PacketType.NEWLEADER) end.lastSyncPacket = 'NEWLEADER';
    else if (type === PacketType.UPTODATE) end.lastSyncPacket = 'UPTODATE';
  }

  #deliverReplies(): void {
    for (const [cnxn, client] of this.clients) {
      if (client.isSmallClient) {
        const bytes = Buffer.from(client.writer.written());
        client.writer.clear();
        this.world.client.received(bytes);
        if (client.isAnswered) this.world.client.disconnected();
      } else if (client.writer.offset > 0) {
        const reader = new Reader(Buffer.from(client.writer.written()));
        reader.int32();
        const { timeOut, sessionId } = readConnectResponse(reader);
        if (timeOut > 0) this.world.invariants.clientAcknowledged(sessionName(sessionHigh(sessionId), sessionLow(sessionId)));
        client.isAnswered = true;
      }
      if (!client.isAnswered) continue;
      // The client has its reply and disconnects, or the server has closed the connection.
      this.clients.delete(cnxn);
      this.peer!.front.disconnected(cnxn, this.now);
      this.#flush();
    }
  }

  // ---- state

  fingerprint(to: Fingerprint): void {
    for (const number of [this.acceptedEpoch, this.currentEpoch, this.dialing ?? -1]) to.number(number);
    for (const flag of [this.announcedLooking, this.#hasTriedRole, this.hasFailedAttempt]) to.number(flag ? 1 : 0);
    to.number(this.snapshot?.zxid ?? -1);
    to.number(this.log.length);
    for (const { zxid, name } of this.log) {
      to.number(zxid);
      to.text(name);
    }
    to.number(this.logQueue.length);
    for (const request of this.logQueue) {
      to.text(request.kind);
      if (request.kind === 'append') to.number(request.txn.zxid);
      else if (request.kind === 'install') to.number(request.snapshot.zxid);
      else if (request.kind === 'truncate') to.number(request.zxid);
      else to.number(request.channel * 2 ** 40 + request.from);
    }
    to.number(this.fileQueue.length);
    for (const { name, epoch } of this.fileQueue) {
      to.text(name);
      to.number(epoch);
    }
    to.number(this.streamEnds.size);
    for (const channel of [...this.streamEnds.keys()].sort((a, b) => a - b)) {
      const { from, remoteEnd, inbox, proposedEpoch } = this.streamEnds.get(channel)!;
      for (const number of [channel, from, remoteEnd === undefined ? 0 : 1, remoteEnd?.channel ?? -1, proposedEpoch, inbox.length])
        to.number(number);
      for (const bytes of inbox) to.text(bytes.toString('latin1'));
    }
    for (const sid of [...this.#connected].sort((a, b) => a - b)) to.number(sid);
    for (const cnxn of this.clients.keys()) to.number(cnxn);
    this.peer?.fingerprint(to, this.now);
  }
}

const fixedRandom = { uint32: () => 7 };
const treeOptions = replicaOptions(coreDefaults, fixedRandom);
const core = {
  ...coreDefaults,
  tickTimeMs,
  minSessionTimeoutMs: sessionTimeoutMs,
  maxSessionTimeoutMs: sessionTimeoutMs,
  containerCheckIntervalMs: 0,
};
const clientContext = { remoteAddress: '127.0.0.1', remotePort: 1, localPort: 2181, secure: false, peerCertificate: undefined };
