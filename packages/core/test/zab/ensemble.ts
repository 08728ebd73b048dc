/**
 * An ensemble of peers in one process: their network, disks and time are a queue of events in an
 * order that a seed determines. Servers crash and restart, and streams break, at any moment; data
 * that was not on disk by then is lost in part.
 *
 * Bytes go from peer to peer as over a socket, so the wire form of every packet is included.
 */
import { membersOf } from '../support/members.ts';
import {
  formatZxid,
  type Millis,
  type Notification,
  openAcl,
  PacketDecoder,
  PacketView,
  parseQuorumConfig,
  type QuorumConfig,
  Reader,
  readTxn,
  type Sid,
  Writer,
  type Zxid,
} from '@tskeeper/protocol';
import {
  coreDefaults,
  type CnxnId,
  type CoreOptions,
  type LocalSessionMode,
  type Now,
  type Observer,
  silentObserver,
} from '../../src/index.ts';
import { Peer } from '../../src/peer.ts';
import type { MembershipListener, PeerClients } from '../../src/peer-io.ts';
import type { ElectionLinks } from '../../src/election/election-links.ts';
import { Configuration } from '../../src/quorum/configuration.ts';
import { Replica, replicaOptions } from '../../src/request/replica.ts';
import { SnapshotLoader } from '../../src/snapshot/snapshot-loader.ts';
import { CommittedLog, committedLogDefaults } from '../../src/zab/committed-log.ts';
import type { EpochName, PeerStorage } from '../../src/zab/peer-storage.ts';
import type { ChannelCloseReason, ChannelId, LeaderPort, QuorumLinks } from '../../src/zab/quorum-links.ts';
import { type Asked, EnsembleClient } from './ensemble-client.ts';

export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = (seed * 2_654_435_761 + 1) >>> 0;
  }

  uint32(): number {
    // xorshift, which is enough to shuffle events.
    let x = this.#state || 1;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#state = x >>> 0;
    return this.#state;
  }

  below(end: number): number {
    return this.uint32() % end;
  }
}

interface Event {
  readonly atMs: Millis;
  readonly order: number;
  readonly run: () => void;
}

export interface LogEntry {
  readonly zxid: Zxid;
  readonly bytes: Buffer;
}

/** The data of a server that survives a crash. */
class Folder {
  readonly log: LogEntry[] = [];
  /** The state before the log. */
  snapshot: { readonly zxid: Zxid; readonly bytes: Buffer } | undefined;
  /** The number of durable entries. */
  durable = 0;
  acceptedEpoch = 0;
  currentEpoch = 0;
  /** The configuration that was activated last; undefined for that of the operator. */
  config: QuorumConfig | undefined;
}

/** One end of a stream between two servers. */
interface End {
  readonly node: Node;
  readonly channel: ChannelId;
  readonly cutter: PacketDecoder;
  readonly writer: Writer;
  other: End;
  /** Keeps messages in order. */
  lastArrivalMs: Millis;
  isOpen: boolean;
  isDeaf: boolean;
}

/** The other end of a client's connection. */
export interface Listener {
  /** One frame, without its length. */
  heard(reader: Reader): void;
  /** The server has closed the connection, or has crashed. */
  closed(): void;
}

export class Node implements PeerClients, ElectionLinks, QuorumLinks, PeerStorage, MembershipListener {
  readonly sid: Sid;
  readonly ensemble: Ensemble;
  readonly folder = new Folder();
  peer: Peer | undefined;
  /** Incremented with each life: results of requests in an earlier one are ignored. */
  life = 0;
  /** Incremented with each dial: only the result of the last is delivered. */
  dials = 0;
  readonly view = new PacketView();
  readonly ends = new Map<ChannelId, End>();
  #nextChannel = 0;
  #nextCnxn = 0;
  readonly clients = new Map<CnxnId, Listener>();
  readonly replies = new Map<CnxnId, Writer>();
  readonly closing: CnxnId[] = [];
  isDown = true;
  readonly #readings = new Map<ChannelId, symbol>();
  wakeMs: Millis = Infinity;
  observer: Observer = silentObserver;

  constructor(ensemble: Ensemble, sid: Sid) {
    this.ensemble = ensemble;
    this.sid = sid;
  }

  // ---- one life

  start(): void {
    this.isDown = false;
    this.life++;
    this.wakeMs = Infinity;
    const { folder, ensemble } = this;
    const committedLog = new CommittedLog({ ...committedLogDefaults, countMax: 3 + ensemble.dice.below(30) });
    for (const { zxid, bytes } of folder.log) committedLog.restore(zxid, bytes);
    const recovered = {
      replica: this.#replay(),
      lastZxid: this.lastLogged,
      acceptedEpoch: folder.acceptedEpoch,
      currentEpoch: folder.currentEpoch,
      committedLog,
      snapshotZxid: folder.snapshot?.zxid ?? 0,
    };
    const zab = {
      sid: this.sid,
      tickTimeMs: 100,
      initLimitTicks: 10,
      syncLimitTicks: 5,
      forceSnapshotSync: false,
      counterMax: ensemble.counterMax,
      leaderPriority: ensemble.priorities.get(this.sid),
    };
    const { reconfigEnabled, localSessions, throttle, configText, readOnlyMode, observerMasterEnabled } = ensemble;
    this.#contacts.clear();
    const times = { tickTimeMs: 100, minSessionTimeoutMs: 200, maxSessionTimeoutMs: 20_000 };
    const core = {
      ...coreDefaults,
      ...times,
      ...throttle,
      serverId: this.sid,
      reconfigEnabled,
      localSessions,
      keeperExtensions: ensemble.keeperServers.has(this.sid),
    };
    const written = parseQuorumConfig(ensemble.configTexts.get(this.sid) ?? configText);
    const observers = ensemble.nodes.map(({ sid }) => sid).filter((sid) => !ensemble.voters.includes(sid));
    const active = folder.config ?? (written.servers.size > 0 ? written : membersOf(ensemble.voters, observers));
    const config = new Configuration({ sid: this.sid, active, reconfigEnabled, hasOracle: ensemble.hasOracle });
    this.changed(active, []);
    const options = { core, zab, readOnlyMode, observerMasterEnabled };
    this.turn(() => {
      const io = { clients: this, election: this, quorum: this, storage: this, members: this };
      const { view: packetView, observer } = this;
      this.peer = new Peer({ options, config, start: recovered, packetView, io, random: ensemble.dice, observer }, this.now);
    });
  }

  get lastLogged(): Zxid {
    return this.folder.log.at(-1)?.zxid ?? this.folder.snapshot?.zxid ?? 0;
  }

  #replay(): Replica {
    const options = replicaOptions(coreDefaults, { uint32: () => 7 });
    const { snapshot: kept } = this.folder;
    let replica = new Replica(options);
    if (kept !== undefined) {
      const loader = new SnapshotLoader(options, { itemBytesMax: Infinity });
      loader.feed(kept.bytes);
      replica = new Replica(options, { snapshot: loader.finish(), zxid: kept.zxid });
    }
    for (const { bytes } of this.folder.log) {
      const { header, txn, digest } = readTxn(new Reader(Buffer.from(bytes)));
      const job = replica.apply(header, txn, digest);
      if (job !== undefined) while (job.next(this.now).done !== true);
    }
    return replica;
  }

  /** Crashes at once. A prefix of the data that was not durable may remain. */
  crash(): void {
    const { folder, ensemble } = this;
    folder.log.length = folder.durable + ensemble.dice.below(folder.log.length - folder.durable + 1);
    folder.durable = folder.log.length;
    this.isDown = true;
    this.peer = undefined;
    for (const end of this.ends.values()) ensemble.breakStream(end);
    this.ends.clear();
    for (const client of this.clients.values()) client.closed();
    this.clients.clear();
    this.replies.clear();
    this.closing.length = 0;
  }

  get now(): Now {
    return { elapsedMs: this.ensemble.nowMs, wallMs: 1_700_000_000_000 + this.ensemble.nowMs };
  }

  /** One input; its outputs are sent at its end. */
  turn(input: (peer: Peer) => void): void {
    if (this.isDown) return;
    input(this.peer!);
    const { ensemble } = this;
    for (const end of this.ends.values()) ensemble.flush(end);
    this.#deliverReplies();
    const due = this.peer!.deadline() ?? Infinity;
    if (due < this.wakeMs) {
      this.wakeMs = due;
      this.#at(Math.max(0, due - ensemble.nowMs), () => {
        this.wakeMs = Infinity;
        this.turn((peer) => peer.wake(this.now));
      });
    }
  }

  /** Schedules work of this life. */
  #at(ms: Millis, run: () => void): void {
    const { life } = this;
    this.ensemble.after(ms, () => {
      if (this.life === life && !this.isDown) run();
    });
  }

  // ---- outputs: election

  /** The servers whose addresses it knows. */
  #known = new Set<Sid>();
  /** Servers that have connected to it in this life. */
  readonly #contacts = new Set<Sid>();

  changed(active: QuorumConfig, others: readonly QuorumConfig[]): void {
    this.#known = new Set([active, ...others].flatMap(({ servers }) => [...servers.keys()]));
  }

  notify(to: Sid, notification: Notification): void {
    if (this.#known.has(to) || this.#contacts.has(to)) this.ensemble.notify(this, to, notification);
  }

  notified(from: Sid, notification: Notification): void {
    this.turn((peer) => {
      this.#contacts.add(from);
      peer.notified(from, notification, this.now);
    });
  }

  // ---- streams

  newEnd(): End {
    const channel = this.#nextChannel++;
    const end = {
      node: this,
      channel,
      cutter: new PacketDecoder(10_000_000, this.view),
      writer: new Writer(64),
      lastArrivalMs: 0,
      isOpen: true,
      isDeaf: false,
    };
    const whole = end as unknown as End;
    this.ends.set(channel, whole);
    return whole;
  }

  dialLeader(sid: Sid, port: LeaderPort = 'quorum'): void {
    this.dials++;
    this.ensemble.dial(this, sid, port);
  }

  cancelDial(): void {
    this.dials++;
  }

  reconnect(sid: Sid): void {
    this.ensemble.reconnect(this, sid);
  }

  packets(channel: ChannelId): Writer {
    return this.ends.get(channel)?.writer ?? new Writer(64);
  }

  writeShared(channel: ChannelId, bytes: Buffer, start: number): void {
    this.packets(channel).raw(bytes, start, bytes.length);
  }

  closeChannel(channel: ChannelId, _reason: ChannelCloseReason, text: string): void {
    const end = this.ends.get(channel);
    if (end === undefined) return;
    this.ensemble.note(`${this.sid} closes ${channel}: ${text}`);
    this.ensemble.flush(end);
    this.ensemble.breakStream(end);
    this.ends.delete(channel);
    this.#at(0, () => this.turn((peer) => peer.channelGone(channel, this.now)));
  }

  // ---- disk

  append(zxid: Zxid, bytes: Buffer, start: number, end: number): void {
    const { folder } = this;
    const last = this.lastLogged;
    if (zxid <= last) throw new Error(`${this.sid} appends ${zxid} after ${last}`);
    folder.log.push({ zxid, bytes: Buffer.from(bytes.subarray(start, end)) });
    const count = folder.log.length;
    this.#at(this.ensemble.diskMs(), () => {
      if (folder.durable >= count) return;
      folder.durable = count;
      this.turn((peer) => peer.appended(zxid, this.now));
    });
  }

  saveConfig(active: QuorumConfig): void {
    this.#at(this.ensemble.diskMs(), () => {
      if (active.version > 0) this.folder.config = active;
      this.turn((peer) => peer.configSaved(this.now));
    });
  }

  saveEpoch(name: EpochName, epoch: number): void {
    this.#at(this.ensemble.diskMs(), () => {
      if (name === 'currentEpoch' && this.folder.durable < this.folder.log.length) {
        // The history of the epoch must be durable, if it was logged when this was requested; newer
        // proposals may be in progress.
        this.ensemble.note('currentEpoch is written while the log is at work');
      }
      this.folder[name] = epoch;
      if (this.folder.acceptedEpoch < this.folder.currentEpoch) throw new Error(`${this.sid}: currentEpoch is later than acceptedEpoch`);
      this.turn((peer) => peer.epochSaved(name, epoch, this.now));
    });
  }

  truncate(zxid: Zxid): void {
    this.ensemble.truncations++;
    this.#at(this.ensemble.diskMs(), () => {
      const { log } = this.folder;
      while ((log.at(-1)?.zxid ?? 0) > zxid) log.pop();
      this.folder.durable = log.length;
      this.turn((peer) => peer.truncated(this.#replay(), this.lastLogged, this.now));
    });
  }

  logBytesMax(): number | undefined {
    return this.ensemble.readsLogs ? Infinity : undefined;
  }

  channelIsFull(): boolean {
    return false;
  }

  /** In pieces, each when the disk is ready; the content of the log at the start. */
  readLog(channel: ChannelId, from: Zxid): void {
    const entries = this.folder.log.slice(0, this.folder.durable);
    let at = entries.findLastIndex(({ zxid }) => zxid <= from);
    at = Math.max(0, at - this.ensemble.dice.below(3));
    const reading = Symbol('reading');
    this.#readings.set(channel, reading);
    this.ensemble.logsRead++;
    const next = (): void => {
      this.#at(this.ensemble.diskMs(), () => {
        if (this.#readings.get(channel) !== reading || !this.ends.has(channel)) return;
        const piece = entries.slice(at, (at += 1 + this.ensemble.dice.below(7)));
        const isEnd = at >= entries.length;
        if (isEnd) this.#readings.delete(channel);
        this.turn((peer) => peer.logRead(channel, piece, isEnd));
        if (!isEnd) next();
      });
    };
    next();
  }

  resumeLogRead(): void {}

  stopLogRead(channel: ChannelId): void {
    this.#readings.delete(channel);
  }

  installSnapshot(zxid: Zxid): void {
    this.ensemble.snapshots++;
    const bytes = new Writer(1024);
    const source = this.peer!.replica.snapshotStream();
    while (!source.next(bytes, 1 << 20));
    this.#at(this.ensemble.diskMs(), () => {
      const { folder } = this;
      folder.snapshot = { zxid, bytes: Buffer.from(bytes.written()) };
      folder.log.length = 0;
      folder.durable = 0;
      this.turn((peer) => peer.installed(zxid, this.now));
    });
  }

  // ---- clients

  /** A client connects. */
  open(client: Listener): CnxnId {
    const cnxn = this.#nextCnxn++;
    this.clients.set(cnxn, client);
    const context = { remoteAddress: '127.0.0.1', remotePort: 1, localPort: 2181, secure: false, peerCertificate: undefined };
    this.turn((peer) => peer.front.connect(cnxn, context, this.now));
    return cnxn;
  }

  /**
   * Sends one frame of a client; it arrives after a delay, and frames of a client arrive in order.
   */
  send(cnxn: CnxnId, writer: Writer): void {
    const bytes = Buffer.from(writer.written());
    this.#at(this.ensemble.clientMs, () => {
      if (this.clients.has(cnxn)) this.turn((peer) => peer.front.frame(cnxn, new Reader(bytes), this.now));
    });
  }

  /** The client's end of a connection is closed. */
  hangUp(cnxn: CnxnId): void {
    this.clients.delete(cnxn);
    this.turn((peer) => peer.front.disconnected(cnxn, this.now));
  }

  reply(cnxn: CnxnId): Writer {
    let writer = this.replies.get(cnxn);
    if (writer === undefined) this.replies.set(cnxn, (writer = new Writer(64)));
    return writer;
  }

  attach(): void {}

  isFull(): boolean {
    return false;
  }

  close(cnxn: CnxnId): void {
    this.closing.push(cnxn);
  }

  #deliverReplies(): void {
    const replies = [...this.replies];
    this.replies.clear();
    for (const [cnxn, writer] of replies) {
      const client = this.clients.get(cnxn);
      const reader = new Reader(Buffer.from(writer.written()));
      if (client === undefined) continue;
      while (reader.remaining > 0) {
        const length = reader.int32();
        client.heard(new Reader(reader.bytes.subarray(reader.offset, reader.offset + length)));
        reader.offset += length;
      }
    }
    for (const cnxn of this.closing.splice(0)) {
      const client = this.clients.get(cnxn);
      this.clients.delete(cnxn);
      client?.closed();
      this.#at(0, () => this.turn((peer) => peer.front.disconnected(cnxn, this.now)));
    }
  }
}

/** A client that creates one znode after the other. */
interface ZnodeWriter {
  readonly client: EnsembleClient;
  readonly name: string;
  count: number;
  asked: Asked | undefined;
  path: string;
}

export class Ensemble {
  readonly dice: Dice;
  readonly nodes: Node[];
  readonly voters: Sid[];
  readonly #writers: ZnodeWriter[];
  /** Delay from a client to its server. */
  readonly clientMs = 0.5;
  /** Znodes whose creation was acknowledged to clients, and their zxid. */
  readonly acknowledged = new Map<string, Zxid>();
  /** The leader of each epoch. */
  readonly leaders = new Map<number, Sid>();
  readonly notes: string[] = [];
  /** For each epoch. */
  counterMax = 0xffff_0000;
  configText = 'version=0';
  /** Of single servers; the others have `configText`. */
  readonly configTexts = new Map<Sid, string>();
  /** The servers with tskeeper.keeperExtensions. */
  readonly keeperServers = new Set<Sid>();
  reconfigEnabled = false;
  /** `tskeeper.leaderPriority` of single servers. */
  readonly priorities = new Map<Sid, number>();
  readOnlyMode = false;
  /** Followers accept observers, and observers learn from them. */
  observerMasterEnabled = false;
  /** An oracle decides whether one of two voters may go on alone. */
  hasOracle = false;
  throttle: Partial<Pick<CoreOptions, 'requestThrottleLimit' | 'requestThrottleDropStale' | 'skipAcl'>> = {};
  localSessions: LocalSessionMode = 'disabled';
  truncations = 0;
  snapshots = 0;
  logsRead = 0;
  readonly readsLogs: boolean;
  readonly diskFactor: number;
  nowMs: Millis = 0;
  #events: Event[] = [];
  #order = 0;
  /** Pairs of servers that cannot reach each other. */
  readonly cuts = new Set<string>();
  /** `1>2`: nothing that 1 sends to 2 over a stream arrives. The other direction works. */
  readonly muted = new Set<string>();
  /** Called for each packet that arrives. */
  arrived: ((from: Sid, to: Sid, type: number) => void) | undefined;
  /**
   * From the first packet on for which this returns true, nothing more arrives over that stream.
   */
  endsBefore: ((from: Sid, to: Sid, type: number) => boolean) | undefined;
  /** Servers whose learner port cannot be reached, while their votes arrive. */
  readonly closedPorts = new Set<Sid>();

  /**
   * @param writers clients that create one znode after the other, through any server that serves.
   */
  constructor(seed: number, voters: number, observers = 0, writers = 3) {
    this.dice = new Dice(seed);
    this.readsLogs = seed % 5 !== 0;
    this.diskFactor = [1, 1, 8][seed % 3]!;
    this.voters = Array.from({ length: voters }, (_, at) => at + 1);
    this.nodes = Array.from({ length: voters + observers }, (_, at) => new Node(this, at + 1));
    this.#writers = Array.from({ length: writers }, (_, at) => ({
      client: new EnsembleClient(),
      name: `c${at}`,
      count: 0,
      asked: undefined,
      path: '',
    }));
    for (const writer of this.#writers) this.#live(writer);
  }

  note(text: string): void {
    if (/out of order|does not accept|the next proposal is|the leader sent 0x/.test(text)) throw new Error(text);
    this.notes.push(`${this.nowMs.toFixed(1)} ${text}`);
    if (this.notes.length > 400) this.notes.shift();
  }

  after(ms: Millis, run: () => void): void {
    this.#events.push({ atMs: this.nowMs + ms, order: this.#order++, run });
  }

  /** Advances time. */
  run(ms: Millis): void {
    const end = this.nowMs + ms;
    for (;;) {
      let next: Event | undefined;
      let at = -1;
      for (const [index, event] of this.#events.entries()) {
        if (next === undefined || event.atMs < next.atMs || (event.atMs === next.atMs && event.order < next.order)) {
          next = event;
          at = index;
        }
      }
      if (next === undefined || next.atMs > end) break;
      this.#events[at] = this.#events.at(-1)!;
      this.#events.pop();
      this.nowMs = Math.max(this.nowMs, next.atMs);
      next.run();
      this.#check();
    }
    this.nowMs = end;
  }

  runUntil(isSo: () => boolean, atMostMs: Millis, stepMs = 10): boolean {
    for (const end = this.nowMs + atMostMs; this.nowMs < end && !isSo();) this.run(stepMs);
    return isSo();
  }

  /** The server that serves as leader, if any. */
  get leader(): Node | undefined {
    return this.nodes.find(({ peer }) => peer?.role === 'leading' && peer.server !== undefined);
  }

  get isWhole(): boolean {
    return this.leader !== undefined && this.nodes.every(({ peer }) => peer?.server !== undefined);
  }

  // ---- network between servers

  delayMs(): Millis {
    return 0.2 + this.dice.below(40) / 20;
  }

  diskMs(): Millis {
    return (0.1 + this.dice.below(60) / 20) * this.diskFactor;
  }

  isCut(a: Sid, b: Sid): boolean {
    return this.cuts.has(`${Math.min(a, b)} ${Math.max(a, b)}`);
  }

  notify(from: Node, to: Sid, notification: Notification): void {
    const { life } = from;
    const target = this.nodes.find(({ sid }) => sid === to);
    this.after(this.delayMs(), () => {
      if (target === undefined || this.isCut(from.sid, to)) return;
      if (target.isDown) {
        if (from.life === life) from.turn((peer) => peer.unreachable(to, from.now));
        return;
      }
      if (from.life === life && !from.isDown) from.turn((peer) => peer.reachable(to));
      target.notified(from.sid, notification);
    });
  }

  reconnect(from: Node, to: Sid): void {
    const { life } = from;
    this.after(this.delayMs(), () => {
      const target = this.nodes.find(({ sid }) => sid === to);
      if (from.life !== life || from.isDown || target === undefined || this.isCut(from.sid, to)) return;
      if (target.isDown) from.turn((peer) => peer.unreachable(to, from.now));
      else from.turn((peer) => peer.reachable(to));
    });
  }

  /** Whether the server listens there now. */
  #listens({ isDown, peer, sid }: Node, port: LeaderPort): boolean {
    if (isDown || this.closedPorts.has(sid)) return false;
    return port === 'quorum' ? peer?.role === 'leading' : peer?.acceptedLearners === 'observers';
  }

  dial(from: Node, to: Sid, port: LeaderPort): void {
    const { life, dials } = from;
    const target = this.nodes.find(({ sid }) => sid === to)!;
    this.after(this.delayMs(), () => {
      if (from.life !== life || from.isDown || from.dials !== dials) return;
      if (!this.#listens(target, port) || this.isCut(from.sid, to)) {
        from.turn((peer) => peer.dialFailed(this.isCut(from.sid, to) ? 'unanswered' : 'refused', from.now));
        return;
      }
      const here = from.newEnd();
      const there = target.newEnd();
      here.other = there;
      there.other = here;
      target.turn((peer) => peer.accepted(there.channel, target.now));
      from.turn((peer) => peer.dialled(here.channel, from.now));
    });
  }

  /** Sends the written output. */
  flush(end: End): void {
    const { writer, other } = end;
    if (writer.offset === 0) return;
    const bytes = Buffer.from(writer.written());
    writer.clear();
    if (!end.isOpen) return;
    end.lastArrivalMs = Math.max(end.lastArrivalMs, this.nowMs + this.delayMs());
    this.after(end.lastArrivalMs - this.nowMs, () => {
      // Lost data is never sent again, and nothing overtakes it.
      other.isDeaf ||= this.isCut(end.node.sid, other.node.sid) || this.muted.has(`${end.node.sid}>${other.node.sid}`);
      if (!other.isOpen || other.isDeaf) return;
      other.node.turn((peer) => {
        const { cutter, channel, node } = other;
        cutter.feed(bytes, 0, bytes.length, {
          packet: (packet) => {
            if (this.endsBefore?.(end.node.sid, node.sid, packet.type) === true) {
              other.isDeaf = true;
              return false;
            }
            this.arrived?.(end.node.sid, node.sid, packet.type);
            peer.packet(channel, packet, node.now);
            if (peer.isReceivingSnapshot(channel)) cutter.beginRaw();
            return true;
          },
          raw: (chunk, start, stop) => {
            const taken = start + peer.feedSnapshot(channel, chunk.subarray(start, stop), node.now);
            if (!peer.isReceivingSnapshot(channel)) cutter.endRaw();
            return taken;
          },
        });
      });
    });
  }

  /** The other side is notified, after everything that was sent. */
  breakStream(end: End): void {
    if (!end.isOpen) return;
    end.isOpen = false;
    this.#tellGone(end.other, Math.max(0, end.lastArrivalMs - this.nowMs));
  }

  #tellGone(end: End, ms: Millis): void {
    const { node, channel } = end;
    const { life } = node;
    this.after(ms + this.delayMs(), () => {
      if (!end.isOpen || node.life !== life) return;
      end.isOpen = false;
      node.ends.delete(channel);
      node.turn((peer) => peer.channelGone(channel, node.now));
    });
  }

  /** Nothing passes between two servers; existing connections notice only the silence. */
  cut(a: Node, b: Node): void {
    if (a !== b) this.cuts.add(`${Math.min(a.sid, b.sid)} ${Math.max(a.sid, b.sid)}`);
  }

  /** Restores cut links; a stream that has lost data is broken. */
  healAll(): void {
    for (const node of this.nodes) {
      for (const end of node.ends.values()) if (this.isCut(node.sid, end.other.node.sid)) this.#tellGone(end, 0);
    }
    this.cuts.clear();
  }

  // ---- clients

  /** Clients send no more requests. */
  isQuiet = false;

  #live(writer: ZnodeWriter): void {
    const { client, name, asked } = writer;
    this.after(5 + this.dice.below(20), () => {
      if (this.isQuiet) return;
      if (asked?.answer?.err === 0) this.acknowledged.set(writer.path, asked.answer.zxid);
      if (client.node === undefined || client.isClosed) {
        // A new session each time: this test does not depend on whether the old one is alive.
        const serving = this.nodes.filter(({ peer, isDown }) => !isDown && peer!.server !== undefined);
        client.session = 0n;
        client.isClosed = true;
        client.asked.length = 0;
        writer.asked = undefined;
        if (serving.length > 0) client.connect(serving[this.dice.below(serving.length)]!);
      } else if (client.isAnswered && (asked === undefined || asked.answer !== undefined)) {
        writer.path = `/${name}-${writer.count++}`;
        writer.asked = client.ask('create', { path: writer.path, data: Buffer.from(name), acl: openAcl, flags: 0 });
      }
      this.#live(writer);
    });
  }

  // ---- invariants

  #check(): void {
    for (const { peer, sid } of this.nodes) {
      if (peer?.role !== 'leading' || peer.server === undefined) continue;
      const epoch = peer.epoch!;
      const known = this.leaders.get(epoch);
      if (known !== undefined && known !== sid) throw new Error(`${known} and ${sid} both lead epoch ${epoch}`);
      this.leaders.set(epoch, sid);
    }
  }

  describe(): string {
    const states = this.nodes.map(
      ({ sid, peer, folder }) =>
        `${sid} ${peer?.role} ${peer?.epoch} ${folder.log.at(-1)?.zxid} ${folder.acceptedEpoch} ${folder.currentEpoch} ${peer?.server !== undefined}`,
    );
    return [...states, ...this.notes.slice(-20)].join('\n');
  }

  /**
   * All servers have the same history, as far as it is in the logs, and the same state; and
   * everything acknowledged is in it.
   */
  compare(): void {
    const known = new Map<Zxid, Buffer>();
    for (const { folder } of this.nodes) {
      for (const { zxid, bytes } of folder.log) {
        const same = known.get(zxid);
        if (same === undefined) known.set(zxid, bytes);
        else if (!bytes.equals(same)) throw new Error(`two txns are called ${formatZxid(zxid)}: ${this.describe()}`);
      }
    }
    const zxids = [...known.keys()].sort((a, b) => a - b);
    for (const { sid, folder } of this.nodes) {
      const first = folder.snapshot?.zxid ?? 0;
      const wanted = zxids.filter((zxid) => zxid > first);
      if (wanted.length !== folder.log.length || wanted.some((zxid, at) => folder.log[at]!.zxid !== zxid)) {
        const missing = wanted.filter((zxid) => !folder.log.some((entry) => entry.zxid === zxid));
        throw new Error(`the log of ${sid} lacks ${missing.map(formatZxid).join(', ')}: ${this.describe()}`);
      }
    }
    const digests = new Set(this.nodes.map(({ peer }) => `${peer!.replica.tree.digestHigh} ${peer!.replica.tree.digestLow}`));
    if (digests.size !== 1) throw new Error(`trees differ: ${[...digests].join(', ')}`);
    const { tree } = this.nodes[0]!.peer!.replica;
    for (const [path, zxid] of this.acknowledged) {
      const node = tree.find(path);
      if (node === 0 || tree.czxidOf(node) !== zxid) throw new Error(`${path} was acknowledged at ${formatZxid(zxid)}, and is lost`);
    }
  }
}
