/**
 * A few production servers in an ensemble, from `Peer` down to every byte between them, where nothing happens by itself: at each state there is a
 * list of what can happen next, and whoever explores chooses. A state cannot be copied; it is come to again by the same choices.
 *
 * Each server has a clock of its own that moves only when it is chosen to: no rule of the protocol may rely on how long anything takes.
 * Streams keep their order, each in each direction. Of notifications the newest takes the place of one that has not left. A disk answers
 * its log in order and its epoch files in order, and neither waits for the other.
 */
import {
  epochOf,
  type Millis,
  type Notification,
  PacketCutter,
  PacketType,
  PacketView,
  Reader,
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
  type ChannelId,
  type CnxnId,
  coreDefaults,
  type EpochName,
  type Now,
  Peer,
  type PeerOptions,
  type PeerOut,
  silentObserver,
} from '@tskeeper/core';
import {
  CommittedLog,
  committedLogDefaults,
  type Fingerprint,
  MajorityQuorum,
  Replica,
  replicaOptions,
  SnapshotLoader,
} from '@tskeeper/core/internal';
import { type Choice, choice, choiceText, type Chosen, chosen, operandEnd } from './choice.ts';
import { Invariants, type NamedTxn, type ServerView, Violation } from './invariants.ts';

/** How much of what may happen. */
export interface Scope {
  readonly servers: number;
  /** Txns that clients ask for. */
  readonly txns: number;
  readonly crashes: number;
  /** Pairs that are cut, one after the other or at once. */
  readonly cuts: number;
  /** How often time passes for a server. */
  readonly wakes: number;
  /** Whether each notification of an election is a choice; if not, `elect` exchanges them all at once. */
  readonly notifications: boolean;
  /** commitLogCount: how many txns a server keeps in memory for learners. With few, logs and snapshots are sent. */
  readonly committedLog: number;
  /** Whether a leader reads its log for a learner. */
  readonly readsLog: boolean;
}

export const scopeDefaults: Scope = {
  servers: 3,
  txns: 2,
  crashes: 2,
  cuts: 1,
  wakes: 3,
  notifications: false,
  committedLog: 500,
  readsLog: true,
};

const tickTimeMs = 100;
const initLimitTicks = 10;
/** Longer than anyone waits for anything but the end of a session. */
const sleepMs = 2 * initLimitTicks * tickTimeMs;
/** Sessions outlive every run. */
const sessionTimeoutMs = 1_000_000_000;
const wallMs = 1_700_000_000_000;
/** Session ids are made of seconds: no two writes are to have the same. */
const wallPerWriteMs = 1000;
const packetBytesMax = 10_000_000;
/** More than any election among three servers takes that comes to an end at all. */
const electionRoundsMax = 20;
/** Reasons for which no stream is ever closed between servers that go by the protocol. */
const illegal = /means nothing|does not understand|is next|was next|the leader has sent 0x/;

interface StoredTxn extends NamedTxn {
  readonly bytes: Buffer;
}

interface Snapshot {
  readonly zxid: Zxid;
  readonly bytes: Buffer;
  /** What it stands for. */
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
interface End {
  readonly server: SmallServer;
  readonly channel: ChannelId;
  readonly cutter: PacketCutter;
  readonly writer: Writer;
  /** What has been sent to it and has not arrived, a packet each. */
  readonly inbox: Buffer[];
  /** The server at the other end. */
  readonly from: Sid;
  /** Undefined once that end is closed; then nothing comes behind what is in the inbox. */
  other: End | undefined;
  /** The epoch that has been proposed over it. */
  epochHeard: number;
}

interface Client {
  readonly writer: Writer;
  isAnswered: boolean;
}

/** Names a session, and with it the txn that opened it. */
function sessionName(high: number, low: number): string {
  return `${high}:${low}`;
}

class SmallServer implements PeerOut {
  readonly sid: Sid;
  readonly world: SmallWorld;
  peer: Peer | undefined;
  #committedLog: CommittedLog | undefined;
  clockMs: Millis = 1000;
  // What its disk holds.
  log: StoredTxn[] = [];
  snapshot: Snapshot | undefined;
  acceptedEpoch = 0;
  currentEpoch = 0;
  // What its disk has been asked for.
  logQueue: LogRequest[] = [];
  fileQueue: FileRequest[] = [];
  dialing: Sid | undefined;
  /** It has said that it looks for a leader, and has followed nobody since. */
  saidLooking = false;
  readonly ends = new Map<ChannelId, End>();
  readonly #closed: ChannelId[] = [];
  readonly clients = new Map<CnxnId, Client>();
  readonly #view = new PacketView();

  constructor(world: SmallWorld, sid: Sid) {
    this.world = world;
    this.sid = sid;
  }

  get now(): Now {
    return { elapsedMs: this.clockMs, wallMs: wallMs + this.world.writes * wallPerWriteMs };
  }

  get durable(): readonly StoredTxn[] {
    return this.snapshot === undefined ? this.log : [...this.snapshot.txns, ...this.log];
  }

  /** With what is on its way to the disk. */
  get logged(): readonly StoredTxn[] {
    if (this.logQueue.length === 0) return this.durable;
    let txns = [...this.durable];
    for (const request of this.logQueue) {
      if (request.kind === 'append') txns.push(request.txn);
      else if (request.kind === 'truncate') txns = txns.filter(({ zxid }) => zxid <= request.zxid);
      else if (request.kind === 'install') txns = [...request.snapshot.txns];
    }
    return txns;
  }

  get isLooking(): boolean {
    return this.saidLooking && this.peer?.role === 'looking';
  }

  view(): ServerView {
    const { peer, sid, durable, logged, acceptedEpoch, currentEpoch } = this;
    const role = peer === undefined || peer.role === 'looking' ? undefined : peer.role;
    const serves = peer?.server !== undefined;
    const appliedZxid = peer?.replica.lastZxid ?? 0;
    const [state, remembered] = serves ? [this.#state(), this.#remembered()] : [];
    const { epoch } = peer ?? {};
    return { sid, role, serves, epoch, durable, logged, appliedZxid, state, remembered, acceptedEpoch, currentEpoch };
  }

  #remembered(): Zxid[] {
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
    return names.sort();
  }

  // ---- a life

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
      role: 'participant',
    };
    const config = { verifier, text: 'version=0', version: 0 };
    this.#turn(() => {
      this.peer = new Peer(options, config, recovered, this.#view, this, chance, silentObserver, this.now);
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

  /** Ends at once. The disk has done so much of what it was asked for, and nobody was told. */
  crash(logRequests: number, fileRequests: number): void {
    for (const request of this.logQueue.slice(0, logRequests)) this.#store(request);
    for (const { name, epoch } of this.fileQueue.slice(0, fileRequests)) this.#storeEpoch(name, epoch);
    this.logQueue = [];
    this.fileQueue = [];
    this.peer = undefined;
    this.saidLooking = false;
    this.dialing = undefined;
    for (const end of this.ends.values()) if (end.other !== undefined) end.other.other = undefined;
    this.ends.clear();
    this.clients.clear();
    this.#closed.length = 0;
  }

  /** One input; what it leads to leaves at its end. */
  #turn(input: (peer: Peer) => void): void {
    input(this.peer!);
    this.#flush();
    for (let channel = this.#closed.shift(); channel !== undefined; channel = this.#closed.shift()) {
      this.peer!.channelGone(channel, this.now);
      this.#flush();
    }
    this.#deliverReplies();
  }

  // ---- inputs

  notified(from: Sid, notification: Notification): void {
    this.#turn((peer) => {
      peer.reachable(from);
      peer.notified(from, notification, this.now);
    });
  }

  unreachable(sid: Sid): void {
    this.#turn((peer) => peer.unreachable(sid, this.now));
  }

  dialFailed(): void {
    this.#turn((peer) => peer.dialFailed(this.now));
  }

  accepted(channel: ChannelId): void {
    this.#turn((peer) => peer.accepted(channel, this.now));
  }

  dialled(channel: ChannelId): void {
    this.#turn((peer) => peer.dialled(channel, this.now));
  }

  /** The next packet arrives, or the news that none will. */
  receive(end: End): void {
    const bytes = end.inbox.shift();
    if (bytes === undefined) {
      this.ends.delete(end.channel);
      this.#turn((peer) => peer.channelGone(end.channel, this.now));
      return;
    }
    const { cutter, channel } = end;
    this.#turn((peer) => {
      cutter.feed(bytes, 0, bytes.length, {
        packet: (packet) => {
          if (packet.type === PacketType.LEADERINFO) end.epochHeard = epochOf(packet.zxid);
          peer.packet(channel, packet, this.now);
          if (peer.isLoading(channel)) cutter.beginRaw();
          return true;
        },
        raw: (chunk, start, stop) => {
          const taken = start + peer.snapshotBytes(channel, chunk.subarray(start, stop), this.now);
          if (!peer.isLoading(channel)) cutter.endRaw();
          return taken;
        },
      });
    });
  }

  /** The disk has done the oldest thing that it was asked of the log. */
  logDone(): void {
    const request = this.logQueue.shift()!;
    this.#store(request);
    switch (request.kind) {
      case 'append':
        this.#turn((peer) => peer.appended(request.txn.zxid, this.now));
        return;
      case 'truncate':
        this.#turn((peer) => peer.truncated(this.#replay(), this.#lastZxid, this.now));
        return;
      case 'install':
        this.#turn((peer) => peer.installed(request.snapshot.zxid, this.now));
        return;
      case 'read': {
        const from = Math.max(
          0,
          this.log.findLastIndex(({ zxid }) => zxid <= request.from),
        );
        this.#turn((peer) => peer.logRead(request.channel, this.log.slice(from), true));
        return;
      }
      default:
        request satisfies never;
    }
  }

  #store(request: LogRequest): void {
    if (request.kind === 'append') {
      this.log.push(request.txn);
    } else if (request.kind === 'truncate') {
      this.log = this.log.filter(({ zxid }) => zxid <= request.zxid);
    } else if (request.kind === 'install') {
      this.snapshot = request.snapshot;
      this.log = [];
    }
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
    this.#turn((peer) => peer.wake(this.now));
  }

  sleep(): void {
    this.clockMs += sleepMs;
    this.#turn((peer) => peer.wake(this.now));
  }

  /** A client connects and asks for a session. */
  write(cnxn: CnxnId): void {
    const request = new Writer(64);
    writeConnectRequest(request, {
      protocolVersion: 0,
      lastZxidSeen: 0,
      timeOut: sessionTimeoutMs,
      sessionId: 0n,
      passwd: Buffer.alloc(16),
      readOnly: false,
    });
    this.clients.set(cnxn, { writer: new Writer(64), isAnswered: false });
    this.#turn((peer) => {
      peer.connect(cnxn, clientContext, this.now);
      peer.frame(cnxn, new Reader(Buffer.from(request.written())), this.now);
    });
  }

  // ---- PeerOut

  notify(to: Sid, notification: Notification): void {
    if (notification.state === 'looking') this.saidLooking = true;
    this.world.notify(this.sid, to, notification);
  }

  dialLeader(sid: Sid): void {
    this.saidLooking = false;
    this.dialing = sid;
  }

  newEnd(from: Sid): End {
    let channel = 0;
    while (this.ends.has(channel)) channel++;
    const cutter = new PacketCutter(packetBytesMax, this.#view);
    const end: End = { server: this, channel, cutter, writer: new Writer(64), inbox: [], from, other: undefined, epochHeard: 0 };
    this.ends.set(channel, end);
    return end;
  }

  packets(channel: ChannelId): Writer {
    return this.ends.get(channel)?.writer ?? new Writer(64);
  }

  closeChannel(channel: ChannelId, reason: string): void {
    const end = this.ends.get(channel);
    if (end === undefined) return;
    if (illegal.test(reason)) throw new Violation('Legality', `${this.sid} closes a stream: ${reason}`);
    this.#send(end);
    if (end.other !== undefined) end.other.other = undefined;
    this.ends.delete(channel);
    this.#closed.push(channel);
  }

  channelIsFull(): boolean {
    return false;
  }

  append(zxid: Zxid, bytes: Buffer, start: number, end: number): void {
    this.#checkNotRewriting();
    const copy = Buffer.from(bytes.subarray(start, end));
    const { header } = readTxn(new Reader(Buffer.from(copy)));
    const txn: StoredTxn = { zxid, bytes: copy, name: sessionName(header.clientHigh, header.clientLow) };
    if (this.peer!.role === 'leading') this.world.invariants.proposed(this.peer!.epoch!, txn, this.logged);
    this.logQueue.push({ kind: 'append', txn });
  }

  saveEpoch(name: EpochName, epoch: number): void {
    if (name === 'currentEpoch') this.world.invariants.epochBegun(epoch, this.view());
    this.fileQueue.push({ name, epoch });
  }

  truncate(zxid: Zxid): void {
    this.#checkNotRewriting();
    this.logQueue.push({ kind: 'truncate', zxid });
  }

  /** As `Storage`, which takes nothing else while it cuts the log or puts a snapshot in its place. */
  #checkNotRewriting(): void {
    if (this.logQueue.some(({ kind }) => kind === 'truncate' || kind === 'install')) throw new Error('the folder is being rewritten');
  }

  logBytesMax(): number | undefined {
    return this.world.scope.readsLog ? Infinity : undefined;
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
    const names = new Set(this.#state());
    const txns = this.world.everProposed().filter(({ name }) => names.has(name));
    this.logQueue.push({ kind: 'install', snapshot: { zxid, bytes: Buffer.from(bytes.written()), txns } });
  }

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
    for (const end of this.ends.values()) this.#send(end);
  }

  /** Packet by packet; a snapshot belongs to the packet before it. */
  #send(end: End): void {
    const { writer, other } = end;
    if (writer.offset === 0) return;
    const bytes = Buffer.from(writer.written());
    writer.clear();
    const splitter = new PacketCutter(packetBytesMax);
    splitter.feed(bytes, 0, bytes.length, {
      packet: (packet) => {
        this.#sent(end, packet);
        const isSnapshot = packet.type === PacketType.SNAP;
        // What follows over the stream by then is read out of the same bytes.
        other?.inbox.push(bytes.subarray(packet.start, isSnapshot ? bytes.length : packet.end));
        if (isSnapshot) splitter.beginRaw();
        return true;
      },
      raw: (_chunk, _start, stop) => stop,
    });
  }

  #sent(end: End, { type, zxid }: PacketView): void {
    const { invariants } = this.world;
    if (type === PacketType.ACK) invariants.acknowledged(zxid, this.view());
    else if (type === PacketType.LEADERINFO) invariants.epochProposed(epochOf(zxid), this.view());
    else if (type === PacketType.ACKEPOCH) invariants.epochAccepted(end.epochHeard, this.view());
  }

  #deliverReplies(): void {
    for (const [cnxn, client] of this.clients) {
      if (client.writer.offset > 0) {
        const reader = new Reader(Buffer.from(client.writer.written()));
        reader.int32();
        const { timeOut, sessionId } = readConnectResponse(reader);
        if (timeOut > 0) this.world.invariants.told(sessionName(sessionHigh(sessionId), sessionLow(sessionId)));
        client.isAnswered = true;
      }
      if (!client.isAnswered) continue;
      // It has what it came for, and hangs up; or the server has.
      this.clients.delete(cnxn);
      this.peer!.disconnected(cnxn, this.now);
      this.#flush();
    }
  }

  // ---- state

  fingerprint(to: Fingerprint): void {
    for (const number of [this.acceptedEpoch, this.currentEpoch, this.dialing ?? -1, this.saidLooking ? 1 : 0]) to.number(number);
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
    to.number(this.ends.size);
    for (const channel of [...this.ends.keys()].sort((a, b) => a - b)) {
      const { from, other, inbox, epochHeard } = this.ends.get(channel)!;
      for (const number of [channel, from, other === undefined ? 0 : 1, other?.channel ?? -1, epochHeard, inbox.length]) to.number(number);
      for (const bytes of inbox) to.text(bytes.toString('latin1'));
    }
    for (const cnxn of this.clients.keys()) to.number(cnxn);
    this.peer?.fingerprint(to, this.now);
  }
}

const chance = { uint32: () => 7 };
const treeOptions = replicaOptions(coreDefaults, chance);
const core = {
  ...coreDefaults,
  tickTimeMs,
  minSessionTimeoutMs: sessionTimeoutMs,
  maxSessionTimeoutMs: sessionTimeoutMs,
  containerCheckIntervalMs: 0,
};
const clientContext = { remoteAddress: '127.0.0.1', remotePort: 1, localPort: 2181, secure: false, peerCertificate: undefined };

export class SmallWorld {
  readonly scope: Scope;
  readonly verifier: MajorityQuorum;
  readonly invariants: Invariants;
  readonly servers: readonly SmallServer[];
  /** By sender and receiver. */
  readonly #notifications = new Map<number, Notification>();
  /** Masks of pairs. */
  readonly #cuts = new Set<number>();
  writes = 0;
  #crashes = 0;
  #cutsMade = 0;
  #wakes = 0;
  /** Exchanges of notifications that have helped nobody. */
  #vainElections = 0;
  readonly #proposed = new Map<Zxid, StoredTxn>();

  constructor(scope: Scope) {
    if (scope.servers < 1 || scope.servers > 3) throw new Error('the explorer knows one to three servers: a mask of them has four bits');
    this.scope = scope;
    const sids = Array.from({ length: scope.servers }, (_, at) => at + 1);
    this.verifier = new MajorityQuorum(sids);
    this.invariants = new Invariants(Math.floor(scope.servers / 2) + 1);
    this.servers = sids.map((sid) => new SmallServer(this, sid));
    for (const server of this.servers) server.start();
  }

  /** Every txn that is in a log, by zxid. */
  everProposed(): StoredTxn[] {
    for (const { logged } of this.servers) for (const txn of logged) this.#proposed.set(txn.zxid, txn);
    return [...this.#proposed.values()].sort((a, b) => a.zxid - b.zxid);
  }

  notify(from: Sid, to: Sid, notification: Notification): void {
    this.#notifications.set(from * operandEnd + to, notification);
  }

  // ---- choices

  /** What can happen next. Which of them comes first is a matter of taste, and always the same. */
  choices(): Choice[] {
    const found: Choice[] = [];
    const { scope, servers } = this;
    for (const server of servers) if (server.peer !== undefined) this.#choicesOf(server, found);
    if (scope.notifications) {
      for (const key of [...this.#notifications.keys()].sort((a, b) => a - b)) {
        const [from, to] = [Math.floor(key / operandEnd), key % operandEnd];
        if (!this.#isCut(from, to)) found.push(choice('notify', from, to));
      }
    } else {
      for (let mask = 1; mask < 1 << servers.length; mask++) if (this.#mayElect(mask)) found.push(choice('elect', mask));
    }
    for (const { sid, peer } of servers) if (peer === undefined) found.push(choice('start', sid));
    for (const mask of this.#cuts) found.push(this.#pairChoice('heal', mask));
    if (this.writes < scope.txns) {
      for (const { sid, peer } of servers) if (peer?.server !== undefined) found.push(choice('write', sid));
    }
    if (this.#crashes < scope.crashes) {
      for (const { sid, peer, logQueue, fileQueue } of servers) {
        if (peer === undefined) continue;
        // What is only read leaves nothing behind.
        const stored = logQueue.filter(({ kind }) => kind !== 'read').length;
        for (let log = 0; log <= stored; log++) {
          for (let file = 0; file <= fileQueue.length; file++) found.push(choice('crash', sid, log, file));
        }
      }
    }
    if (this.#cutsMade < scope.cuts) {
      for (let a = 1; a < servers.length; a++) {
        for (let b = a + 1; b <= servers.length; b++) if (!this.#isCut(a, b)) found.push(choice('cut', a, b));
      }
    }
    return found;
  }

  #choicesOf(server: SmallServer, found: Choice[]): void {
    const { sid, ends, logQueue, fileQueue, dialing, clockMs } = server;
    const peer = server.peer!;
    for (const { channel, inbox, other, from } of ends.values()) {
      if (this.#isCut(from, sid)) continue;
      if (inbox.length > 0 || other === undefined) found.push(choice('packet', sid, channel));
      if (inbox.length > 0 && other === undefined) found.push(choice('break', sid, channel));
    }
    if (logQueue.length > 0) found.push(choice('log', sid));
    if (fileQueue.length > 0) found.push(choice('file', sid));
    if (dialing !== undefined) found.push(choice('dial', sid));
    const deadline = peer.deadline();
    if (deadline === undefined) return;
    // What is to be done at once takes no time.
    if (deadline <= clockMs) {
      found.push(choice('wake', sid));
      return;
    }
    if (this.#wakes >= this.scope.wakes) return;
    if (peer.role === 'leading') found.push(choice('sleep', sid));
    else if (peer.role === 'learning') found.push(choice('wake', sid));
    else if (!server.isLooking) found.push(choice('wake', sid), choice('sleep', sid));
    else if (this.scope.notifications) found.push(choice('wake', sid));
  }

  #pairChoice(kind: 'cut' | 'heal', mask: number): Choice {
    const [a, b] = [1, 2, 3].filter((sid) => (mask & (1 << (sid - 1))) !== 0);
    return choice(kind, a!, b);
  }

  #pairMask(a: Sid, b: Sid): number {
    return (1 << (a - 1)) | (1 << (b - 1));
  }

  #isCut(a: Sid, b: Sid): boolean {
    return this.#cuts.has(this.#pairMask(a, b));
  }

  #members(mask: number): SmallServer[] {
    return this.servers.filter(({ sid }) => (mask & (1 << (sid - 1))) !== 0);
  }

  /** A quorum whose members reach each other, one of whom looks for a leader. */
  #mayElect(mask: number): boolean {
    const members = this.#members(mask);
    if (!this.verifier.containsQuorum(new Set(members.map(({ sid }) => sid)))) return false;
    if (members.some(({ peer }) => peer === undefined) || !members.some(({ isLooking }) => isLooking)) return false;
    // Whoever has settled may not be able to help the others, who would ask again for ever.
    if (this.#vainElections >= this.scope.wakes && !members.every(({ isLooking }) => isLooking)) return false;
    for (const cut of this.#cuts) if ((cut & mask) === cut) return false;
    return true;
  }

  // ---- what happens

  /** Makes a choice, which must be one of `choices`. Throws a `Violation`. */
  make(code: Choice): void {
    try {
      this.#carryOut(chosen(code));
      this.#check();
    } catch (error) {
      if (error instanceof Violation) throw error;
      throw new Violation('Legality', `${choiceText(code)}: ${error instanceof Error ? error.stack : String(error)}`);
    }
  }

  #check(): void {
    this.invariants.check(this.servers.map((server) => server.view()));
  }

  #carryOut({ kind, a, b, c }: Chosen): void {
    const server = this.servers[a - 1]!;
    switch (kind) {
      case 'notify':
        return this.#deliver(a, b);
      case 'packet':
        return server.receive(server.ends.get(b)!);
      case 'break': {
        const end = server.ends.get(b)!;
        end.inbox.length = 0;
        return server.receive(end);
      }
      case 'dial':
        return this.#dial(server);
      case 'log':
        return server.logDone();
      case 'file':
        return server.fileDone();
      case 'wake':
        if (server.peer!.deadline()! > server.clockMs) this.#wakes++;
        return server.wake();
      case 'sleep':
        this.#wakes++;
        return server.sleep();
      case 'write':
        return server.write(++this.writes);
      case 'crash':
        return this.#crash(server, b, c);
      case 'start':
        return server.start();
      case 'cut':
        this.#cutsMade++;
        this.#cuts.add(this.#pairMask(a, b));
        return;
      case 'heal':
        this.#cuts.delete(this.#pairMask(a, b));
        return;
      case 'elect':
        return this.#elect(a);
      default:
        kind satisfies never;
    }
  }

  #deliver(from: Sid, to: Sid): void {
    const key = from * operandEnd + to;
    const notification = this.#notifications.get(key)!;
    this.#notifications.delete(key);
    const [sender, receiver] = [this.servers[from - 1]!, this.servers[to - 1]!];
    if (receiver.peer !== undefined) receiver.notified(from, notification);
    else if (sender.peer !== undefined) sender.unreachable(to);
  }

  #dial(server: SmallServer): void {
    const target = this.servers[server.dialing! - 1]!;
    server.dialing = undefined;
    if (target.peer === undefined || this.#isCut(server.sid, target.sid)) {
      server.dialFailed();
      return;
    }
    const here = server.newEnd(target.sid);
    const there = target.newEnd(server.sid);
    here.other = there;
    there.other = here;
    target.accepted(there.channel);
    server.dialled(here.channel);
  }

  #crash(server: SmallServer, log: number, file: number): void {
    this.#crashes++;
    server.crash(log, file);
    for (const { sid } of this.servers) {
      // What it was going to say is gone with it. What it was told stays on the way where that is a choice of its own.
      this.#notifications.delete(server.sid * operandEnd + sid);
      if (!this.scope.notifications) this.#notifications.delete(sid * operandEnd + server.sid);
    }
  }

  /** Everyone hears what the others say, and time passes when nobody says anything, until nobody looks any more. */
  #elect(mask: number): void {
    const members = this.#members(mask);
    const lookedBefore = members.filter(({ isLooking }) => isLooking).length;
    for (let round = 0; round < electionRoundsMax && members.some(({ isLooking }) => isLooking); round++) {
      let wasSaid = false;
      for (const from of members) {
        for (const to of members) {
          if (!this.#notifications.has(from.sid * operandEnd + to.sid)) continue;
          wasSaid = true;
          this.#deliver(from.sid, to.sid);
        }
      }
      if (wasSaid) continue;
      for (const member of members) if (member.isLooking && member.peer!.deadline() !== undefined) member.wake();
    }
    if (members.filter(({ isLooking }) => isLooking).length === lookedBefore) this.#vainElections++;
  }

  // ---- state

  fingerprint(to: Fingerprint): void {
    for (const number of [this.writes, this.#crashes, this.#cutsMade, this.#wakes, this.#vainElections]) to.number(number);
    for (const mask of [...this.#cuts].sort((a, b) => a - b)) to.number(mask);
    for (const key of [...this.#notifications.keys()].sort((a, b) => a - b)) {
      const { state, leader, zxid, electionEpoch, peerEpoch } = this.#notifications.get(key)!;
      to.number(key);
      to.text(state);
      for (const number of [leader, zxid, electionEpoch, peerEpoch]) to.number(number);
    }
    for (const server of this.servers) server.fingerprint(to);
    this.invariants.fingerprint(to);
  }

  describe(): string {
    return this.servers
      .map((server) => {
        const { sid, role, serves, epoch, durable, logged, acceptedEpoch, currentEpoch } = server.view();
        const life = server.peer === undefined ? 'down' : `${role ?? 'looking'}${serves ? `, serves in epoch ${epoch}` : ''}`;
        return `server ${sid}: ${life}; log ${logged.map(({ zxid }) => `0x${zxid.toString(16)}`).join(' ')}, ${durable.length} durable; epochs ${acceptedEpoch} ${currentEpoch}`;
      })
      .join('\n');
  }
}
