/**
 * The side of a follower or an observer in Zab: discovery, synchronisation and broadcast.
 *
 * A learner must not forget what it has promised, so each promise waits for the disk: the new epoch
 * is saved before it is accepted; the history from the leader is in the log, or in a snapshot,
 * before currentEpoch is saved; and only then is NEWLEADER acknowledged, and each later proposal
 * after it. In this order, a crash at any point leaves a server that claims less than it has, never
 * more (ZOOKEEPER-3911, 4643, 4646, 4685).
 *
 * When the leader is lost, the learner is over. No txn in its log is given up: it is applied, and
 * counts in the election.
 */
import {
  beginQuorumPacket,
  counterOf,
  endQuorumPacket,
  epochOf,
  formatZxid,
  makeZxid,
  type Millis,
  PacketType,
  type PacketView,
  packetTypeName,
  OpCode,
  readRevalidateReply,
  readTxn,
  Reader,
  type Sid,
  type Txn,
  writeAckEpoch,
  writeEmptyPacket,
  writeLearnerInfo,
  writeRevalidateRequest,
  writeTouchedSession,
  Writer,
  type Zxid,
} from '@tskeeper/protocol';
import type { Identities } from '../auth/identities.ts';
import { Fifo } from '../fifo.ts';
import { age, type Fingerprint, fingerprintBytes } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import type { LeaderForwarder, LeaderLink, LeaderTxn } from '../request/leader-forwarder.ts';
import type { Server } from '../server.ts';
import type { SessionRef } from '../session/session-ref.ts';
import type { ConnectFailure } from './leader-connector.ts';
import { RequestQueue } from './request-queue.ts';
import { LocalTxnFilter } from './txn-origin.ts';
import type { RoleEndReason } from './role-end.ts';
import type { ZabOptions } from './zab-options.ts';
import type { DurableState, EpochName } from './peer-storage.ts';
import type { ChannelId, QuorumLinks } from './quorum-links.ts';

/** The state with which a learner starts. */
export interface LearnerStart {
  readonly role: 'follower' | 'observer';
  readonly acceptedEpoch: number;
  readonly currentEpoch: number;
  /** The last txn of its log, all of which has been applied. */
  readonly lastZxid: Zxid;
  /**
   * The epoch whose leader sent a TRUNC that was impossible: the learner reports zxid 0 to it, and
   * gets a snapshot. 0 for none.
   */
  readonly resyncEpoch: number;
  readonly configVersion: number;
  /** See `LearnerInfo`; undefined for a learner that sends none. */
  readonly incarnation?: number | undefined;
  /** The server it learns from. */
  readonly leader: Sid;
}

/** A txn from the leader that has been appended to the log. */
export interface LoggedProposal extends LeaderTxn {
  /** Header, record and digest as in the log. */
  readonly entry: Buffer;
}

/** What a learner needs from its peer. */
export interface LearnerHost {
  /** Applies a committed txn while no clients are served yet. */
  apply(sent: LoggedProposal, now: Now): void;
  /** A txn is committed. */
  committed(sent: LoggedProposal): void;
  /** A snapshot of `zxid` follows. `snapshotLoaded` is called at its end. */
  beginSnapshot(zxid: Zxid): void;
  /** Creates the server for clients. */
  startServing(epoch: number, link: LeaderLink, now: Now): { readonly server: Server; readonly forwarder: LeaderForwarder };
  /**
   * All txns that a snapshot of the leader may contain have been applied: a leader sends NEWLEADER
   * after it, and txns committed meanwhile in between.
   */
  historyComplete(): void;
  /**
   * A configuration that may become active next. Throws a `ConfigurationConflict` if this server
   * cannot use it.
   */
  configSeen(text: string): void;
  /** A configuration is active. */
  configActivated(text: string, now: Now): void;
}

type LearnerStage =
  /** FOLLOWERINFO has been sent. */
  | 'introduced'
  /** LEADERINFO has arrived, with an epoch that is not on disk yet. */
  | 'saving acceptedEpoch'
  /** ACKEPOCH has been sent. */
  | 'accepted'
  /** The log is being truncated. */
  | 'truncating'
  /** A snapshot is being received. */
  | 'loading'
  /** It has been received, and is not on disk yet. */
  | 'installing'
  /** Txns between our history and the leader's are being received. */
  | 'synchronising'
  /** NEWLEADER has arrived; the history before it is not all on disk yet. */
  | 'settling'
  | 'saving currentEpoch'
  /** NEWLEADER has been acknowledged. */
  | 'synchronised'
  /** UPTODATE has arrived: clients are served. */
  | 'serving'
  | 'over';

/**
 * A proxy that accepts in place of a leader closes as soon as its own connection is refused, which
 * takes as long as a dial.
 */
const refusalTicksMax = 2;

export class Learner implements LeaderLink {
  readonly #options: ZabOptions;
  readonly #start: LearnerStart;
  readonly #links: QuorumLinks;
  readonly #storage: DurableState;
  readonly #host: LearnerHost;
  readonly #channel: ChannelId;
  readonly #requestQueue: RequestQueue;
  /** For a packet that must wait. */
  readonly #packet = new Writer(64);
  #stage: LearnerStage = 'introduced';
  /** The opening packet that the leader sent; for inspection only. */
  #syncMode: 'diff' | 'trunc' | 'snap' | undefined;
  #endReason: RoleEndReason | undefined;
  #endText = '';
  #connectFailure: ConnectFailure | undefined;
  #epoch = 0;
  #needsSnapshot = false;
  #server: Server | undefined;
  #forwarder: LeaderForwarder | undefined;
  /** In the log, or being appended, and not committed. */
  readonly #proposals = new Fifo<LoggedProposal>();
  readonly #localTxnFilter: LocalTxnFilter;
  /** The last txn that was appended to the log, and the last that is durable there. */
  #logged: Zxid;
  #durable: Zxid;
  /**
   * The last txn logged when NEWLEADER arrived: its ACK covers this history, and not proposals that
   * arrive while the disk writes it.
   */
  #historyEnd: Zxid = 0;
  /** Proposals to be acknowledged, in order. */
  readonly #pendingAcks = new Fifo<Zxid>();
  /**
   * The zxid of the received snapshot, 0 for none. Txns up to it are in it, and may be sent again:
   * a leader of ZooKeeper chooses the first txn to send a moment before it reads the zxid of the
   * snapshot it writes.
   */
  #snapshotZxid: Zxid = 0;
  /** Packets that arrived while the disk was working on something that must come first. */
  readonly #queuedPackets = new Fifo<Buffer>();
  readonly #view: PacketView;
  #lastReceivedMs: Millis;
  /** The configuration in NEWLEADER. */
  #leaderConfig = '';
  #wasSynced = false;

  constructor(
    options: ZabOptions,
    start: LearnerStart,
    channel: ChannelId,
    view: PacketView,
    links: QuorumLinks,
    storage: DurableState,
    host: LearnerHost,
    now: Now,
  ) {
    this.#options = options;
    this.#localTxnFilter = new LocalTxnFilter(options.sid);
    this.#start = start;
    this.#channel = channel;
    this.#requestQueue = new RequestQueue(links, channel);
    this.#view = view;
    this.#links = links;
    this.#storage = storage;
    this.#host = host;
    this.#logged = this.#durable = start.lastZxid;
    this.#lastReceivedMs = now.elapsedMs;
    const writer = links.packets(channel);
    const type = start.role === 'observer' ? PacketType.OBSERVERINFO : PacketType.FOLLOWERINFO;
    const at = beginQuorumPacket(writer, type, makeZxid(start.acceptedEpoch, 0));
    writeLearnerInfo(writer, { serverId: options.sid, configVersion: start.configVersion, incarnation: start.incarnation });
    endQuorumPacket(writer, at);
  }

  /** Why the learner is over; undefined while it is not. An election follows. */
  get endReason(): RoleEndReason | undefined {
    return this.#endReason;
  }

  /** The same, for the operator. */
  get endText(): string {
    return this.#endText;
  }

  /**
   * Set if it was over before LEADERINFO, because the stream was closed or silent: it counts as a
   * failed attempt to reach the leader.
   */
  get connectFailure(): ConnectFailure | undefined {
    return this.#connectFailure;
  }

  /** LEADERINFO has not arrived. */
  get isUnanswered(): boolean {
    return this.#stage === 'introduced';
  }

  /**
   * The epoch to whose leader it should reconnect to get a snapshot; undefined if it should not.
   */
  get resyncEpoch(): number | undefined {
    return this.#needsSnapshot ? this.#epoch : undefined;
  }

  /** The epoch, once NEWLEADER has been acknowledged: this server is part of it. */
  get epoch(): number | undefined {
    return this.#stage === 'synchronised' || this.#stage === 'serving' ? this.#epoch : undefined;
  }

  /** It has been synchronised with its leader at some time. */
  get wasSynced(): boolean {
    return this.#wasSynced;
  }

  /** The server for clients, once clients are served. */
  get server(): Server | undefined {
    return this.#server;
  }

  get phase(): 'discovery' | 'synchronization' | 'broadcast' {
    if (this.#stage === 'serving') return 'broadcast';
    return this.#syncMode === undefined ? 'discovery' : 'synchronization';
  }

  /** How it is being synchronised. */
  get syncMode(): 'diff' | 'trunc' | 'snap' | undefined {
    return this.#stage === 'serving' ? undefined : this.#syncMode;
  }

  // ---- inputs

  /**
   * A packet of the leader. Throws a `ProtocolError` if it is malformed; the caller then closes the
   * stream.
   */
  packet(packet: PacketView, now: Now): void {
    if (this.#stage === 'over') return;
    this.#lastReceivedMs = now.elapsedMs;
    if (this.#mustQueue) this.#queuedPackets.push(Buffer.from(packet.bytes.subarray(packet.start, packet.end)));
    else this.#handlePacket(packet, now);
  }

  /** Bytes have arrived from the leader, even if only part of a packet or of a snapshot. */
  bytesReceived(now: Now): void {
    this.#lastReceivedMs = now.elapsedMs;
  }

  /** The leader's snapshot has been read completely, and is the state from here on. */
  snapshotLoaded(now: Now): void {
    if (this.#stage !== 'loading') return;
    this.#lastReceivedMs = now.elapsedMs;
    this.#stage = 'installing';
    this.#storage.installSnapshot(this.#snapshotZxid);
  }

  /** The snapshot is the content of the data folder. */
  installed(now: Now): void {
    if (this.#stage !== 'installing') return;
    this.#lastReceivedMs = now.elapsedMs;
    this.#logged = this.#durable = this.#snapshotZxid;
    this.#stage = 'synchronising';
    this.#resumePackets(now);
  }

  /** The log has been truncated, and the state is that of the rest. */
  truncated(lastZxid: Zxid, now: Now): void {
    if (this.#stage !== 'truncating') return;
    this.#lastReceivedMs = now.elapsedMs;
    this.#logged = this.#durable = lastZxid;
    this.#stage = 'synchronising';
    this.#resumePackets(now);
  }

  /**
   * The log cannot be truncated: a snapshot in the folder contains more than this leader's history.
   * Its epoch is a quorum's, so the excess was never committed. To get a snapshot, the learner
   * reconnects and reports that it has nothing; its earlier promises remain valid.
   */
  truncationRefused(): void {
    if (this.#stage !== 'truncating') return;
    this.#needsSnapshot = true;
    this.#shutDown('log not truncatable', 'the log cannot be truncated that far: requesting a snapshot');
  }

  epochSaved(name: EpochName, now: Now): void {
    if (name === 'acceptedEpoch' && this.#stage === 'saving acceptedEpoch') {
      this.#lastReceivedMs = now.elapsedMs;
      this.#acceptEpoch(this.#start.currentEpoch);
      this.#resumePackets(now);
    } else if (name === 'currentEpoch' && this.#stage === 'saving currentEpoch') {
      this.#stage = 'synchronised';
      this.#wasSynced = true;
      this.#ack(makeZxid(this.#epoch, 0));
      this.#ackLogged();
    }
  }

  /** Every txn up to `zxid` is durable in the log. */
  appended(zxid: Zxid): void {
    this.#durable = zxid;
    if (this.#stage === 'settling') this.#maybeSaveCurrentEpoch();
    else this.#ackLogged();
  }

  wake(now: Now): void {
    if (this.#stage === 'over') return;
    this.#requestQueue.send();
    // While packets are not processed, the leader's silence cannot be judged.
    if (this.#isWaitingForDisk && this.#stage !== 'loading') this.#lastReceivedMs = now.elapsedMs;
    const silentMs = now.elapsedMs - this.#lastReceivedMs;
    if (silentMs <= this.#silentMaxMs) return;
    if (this.isUnanswered) this.#connectFailure = 'silent';
    this.#shutDown('leader silent', `nothing was received from the leader for ${silentMs} ms`);
  }

  deadline(): Millis | undefined {
    return this.#stage === 'over' ? undefined : this.#lastReceivedMs + this.#silentMaxMs + 1;
  }

  /** The leader does not receive the messages of this server, so it will not answer. */
  leaderNotReceiving(): void {
    this.#connectFailure = 'silent';
    this.#shutDown('leader deaf', 'the leader does not receive the messages of this server');
  }

  /**
   * The stream to the leader is closed. A stream open for longer than `refusalTicksMax` led to a
   * leader, which has given up.
   */
  channelGone(now: Now): void {
    if (this.isUnanswered && now.elapsedMs - this.#lastReceivedMs < refusalTicksMax * this.#options.tickTimeMs)
      this.#connectFailure = 'refused';
    this.#shutDown('leader disconnected', 'the connection to the leader is closed');
  }

  /** Ends learning; clients are no longer served. Everything in the log is applied. */
  stop(now: Now): void {
    if (this.#stage !== 'over') this.#shutDown('stopped', 'the role was ended by its owner');
    this.#server?.stop(now);
    for (let next = this.#proposals.shift(); next !== undefined; next = this.#proposals.shift()) {
      // The next leader decides whether they are committed; if it is this server, they are.
      this.#host.committed(next);
      this.#host.apply(next, now);
    }
  }

  /**
   * Everything that can influence behaviour, for an explorer, except the server, which the peer
   * writes.
   */
  fingerprint(to: Fingerprint, { elapsedMs: nowMs }: Now): void {
    const { acceptedEpoch, currentEpoch, lastZxid, resyncEpoch, configVersion, leader } = this.#start;
    to.text(this.#stage);
    for (const number of [acceptedEpoch, currentEpoch, lastZxid, resyncEpoch, configVersion, leader, this.#channel, this.#epoch])
      to.number(number);
    to.text(this.#leaderConfig);
    for (const zxid of [this.#logged, this.#durable, this.#historyEnd, this.#snapshotZxid]) to.number(zxid);
    to.number(this.#proposals.length);
    for (const { entry, mayBeLocal } of this.#proposals.values()) {
      fingerprintBytes(to, entry);
      to.number(mayBeLocal ? 1 : 0);
    }
    to.number(this.#pendingAcks.length);
    for (const zxid of this.#pendingAcks.values()) to.number(zxid);
    to.number(this.#queuedPackets.length);
    for (const packet of this.#queuedPackets.values()) fingerprintBytes(to, packet);
    to.number(age(this.#lastReceivedMs, nowMs, this.#silentMaxMs));
    this.#requestQueue.fingerprint(to);
  }

  // ---- as LeaderLink

  request({ sessionHigh, sessionLow }: SessionRef, cxid: number, opCode: number, record: Reader, identities: Identities | undefined): void {
    if (this.#stage === 'over') return;
    const writer = this.#requestQueue.writer() ?? this.#clearedPacket();
    const at = beginQuorumPacket(writer, PacketType.REQUEST, -1);
    writer.int64Halves(sessionHigh, sessionLow);
    writer.int32(cxid);
    writer.int32(opCode);
    writer.raw(record.bytes, record.offset, record.limit);
    endQuorumPacket(writer, at, identities?.toList() ?? null);
    if (writer === this.#packet) this.#requestQueue.push(writer);
  }

  revalidate({ sessionHigh, sessionLow }: SessionRef, timeOut: Millis): void {
    if (this.#stage === 'over') return;
    const writer = this.#requestQueue.writer() ?? this.#clearedPacket();
    const at = beginQuorumPacket(writer, PacketType.REVALIDATE, -1);
    writeRevalidateRequest(writer, { sessionHigh, sessionLow, timeOut });
    endQuorumPacket(writer, at);
    if (writer === this.#packet) this.#requestQueue.push(writer);
  }

  get queuedBytes(): number {
    return this.#requestQueue.bytes;
  }

  #clearedPacket(): Writer {
    this.#packet.clear();
    return this.#packet;
  }

  // ---- packets, in order

  /** The disk is working on something that must be done before the next packet. */
  get #mustQueue(): boolean {
    return this.#isWaitingForDisk || this.#queuedPackets.length > 0;
  }

  get #isWaitingForDisk(): boolean {
    const stage = this.#stage;
    return stage === 'saving acceptedEpoch' || stage === 'truncating' || stage === 'loading' || stage === 'installing';
  }

  #resumePackets(now: Now): void {
    for (let next = this.#queuedPackets.peek(); next !== undefined && this.#stage !== 'over'; next = this.#queuedPackets.peek()) {
      if (this.#isWaitingForDisk) return;
      this.#queuedPackets.shift();
      this.#handlePacket(this.#view.wrap(next, 0, next.length), now);
    }
  }

  #handlePacket(packet: PacketView, now: Now): void {
    switch (packet.type) {
      case PacketType.LEADERINFO:
        return this.#onLeaderInfo(packet);
      case PacketType.DIFF:
        if (!this.#expectStage('accepted', packet)) return;
        this.#syncMode = 'diff';
        this.#stage = 'synchronising';
        return;
      case PacketType.TRUNC:
        if (!this.#expectStage('accepted', packet)) return;
        this.#syncMode = 'trunc';
        this.#stage = 'truncating';
        return this.#storage.truncate(packet.zxid);
      case PacketType.SNAP:
        return this.#onSnap(packet);
      case PacketType.PROPOSAL:
        return this.#onProposal(packet);
      case PacketType.COMMIT:
        return this.#onCommit(packet.zxid, now);
      case PacketType.INFORM:
        this.#onProposal(packet);
        return this.#onCommit(packet.zxid, now);
      case PacketType.COMMITANDACTIVATE:
        return this.#onActivate(packet.zxid, packet.data.int64(), now);
      case PacketType.INFORMANDACTIVATE: {
        const designated = packet.data.int64();
        this.#onProposal(packet);
        return this.#onActivate(packet.zxid, designated, now);
      }
      case PacketType.NEWLEADER:
        return this.#onNewLeader(packet);
      case PacketType.UPTODATE:
        return this.#onUpToDate(packet, now);
      case PacketType.PING:
        return this.#onPing(packet.zxid);
      case PacketType.SYNC:
        return this.#onSync(now);
      case PacketType.REVALIDATE:
        return this.#onRevalidate(packet, now);
      default:
        this.#shutDown('protocol error', `the leader sent ${packetTypeName(packet.type)}, which a learner does not accept`);
    }
  }

  /**
   * Txns that this server acknowledged to the same leader over an earlier connection may be
   * committed, and its ACK may be one of the quorum. A snapshot of less would remove them from this
   * disk until they are sent again; if the leader crashes meanwhile, a quorum without them could be
   * elected. A moment later the leader has applied that much. Txns acknowledged in an earlier epoch
   * and committed were in the leader's history when its epoch began.
   */
  #onSnap(packet: PacketView): void {
    if (!this.#expectStage('accepted', packet)) return;
    const { role, lastZxid } = this.#start;
    if (role === 'follower' && packet.zxid < lastZxid && epochOf(lastZxid) === this.#epoch) {
      this.#shutDown(
        'snapshot too old',
        `the leader sent a snapshot of ${formatZxid(packet.zxid)}, but this server has acknowledged ${formatZxid(lastZxid)} in this epoch: reconnecting`,
      );
      return;
    }
    this.#syncMode = 'snap';
    this.#stage = 'loading';
    this.#snapshotZxid = packet.zxid;
    this.#host.beginSnapshot(packet.zxid);
  }

  #onLeaderInfo(packet: PacketView): void {
    if (!this.#expectStage('introduced', packet)) return;
    this.#epoch = epochOf(packet.zxid);
    const { acceptedEpoch, currentEpoch, role } = this.#start;
    if (this.#epoch < currentEpoch) {
      this.#shutDown('leader of an older epoch', `the leader's epoch is ${this.#epoch}, but this server is in epoch ${currentEpoch}`);
    } else if (this.#epoch < acceptedEpoch && role === 'follower') {
      this.#shutDown(
        'leader of an older epoch',
        `the leader's epoch is ${this.#epoch}, but this server has accepted epoch ${acceptedEpoch}`,
      );
    } else if (this.#epoch <= acceptedEpoch) {
      // It has promised this epoch before, perhaps to another leader; it must not count twice. An
      // observer never counts, so its promise to a leader whose epoch failed blocks no other
      // leader, and must not keep it outside until a later epoch.
      this.#acceptEpoch(-1);
    } else {
      this.#stage = 'saving acceptedEpoch';
      this.#storage.saveEpoch('acceptedEpoch', this.#epoch);
    }
  }

  #acceptEpoch(currentEpoch: number): void {
    this.#stage = 'accepted';
    const writer = this.#links.packets(this.#channel);
    const { resyncEpoch, lastZxid } = this.#start;
    const at = beginQuorumPacket(writer, PacketType.ACKEPOCH, resyncEpoch === this.#epoch ? 0 : lastZxid);
    writeAckEpoch(writer, currentEpoch);
    endQuorumPacket(writer, at);
  }

  #onProposal(packet: PacketView): void {
    const { zxid, data } = packet;
    if (!this.#isSynchronising && !this.#expectStage('serving', packet)) return;
    if (zxid <= this.#snapshotZxid) return;
    const isNext = zxid === this.#logged + 1 || (counterOf(zxid) === 1 && epochOf(zxid) > epochOf(this.#logged));
    if (!isNext) {
      this.#shutDown('protocol error', `the leader sent ${formatZxid(zxid)} after ${formatZxid(this.#logged)}: txns are missing`);
      return;
    }
    const { bytes, offset, limit } = data;
    // Its strings and buffers are views into the bytes of the packet, which will be reused.
    const copy = Buffer.from(bytes.subarray(offset, limit));
    const { header, txn, digest } = readTxn(new Reader(copy));
    // A configuration that this server cannot use must not be acknowledged, so it is checked before
    // it is logged.
    if (header.type === OpCode.reconfig) this.#host.configSeen(configTextOf(txn));
    const mayBeLocal = this.#localTxnFilter.mayBeLocal(packet);
    this.#proposals.push({ zxid, header, txn, digest, bytes: copy.length, entry: copy, mayBeLocal });
    this.#logged = zxid;
    this.#storage.append(zxid, copy, 0, copy.length);
    if (this.#start.role === 'follower' && this.#stage !== 'synchronising') this.#pendingAcks.push(zxid);
  }

  #onCommit(zxid: Zxid, now: Now): void {
    if (zxid <= this.#snapshotZxid) return;
    const next = this.#proposals.peek();
    if (next === undefined || next.zxid !== zxid) {
      this.#shutDown(
        'protocol error',
        `the leader committed ${formatZxid(zxid)}, but the next proposal is ${next === undefined ? 'none' : formatZxid(next.zxid)}`,
      );
      return;
    }
    this.#proposals.shift();
    this.#host.committed(next);
    if (this.#forwarder === undefined) {
      this.#host.apply(next, now);
    } else {
      this.#forwarder.commit(next);
      this.#server!.appended(zxid, now);
    }
  }

  /**
   * A reconfig is committed. Its leader may have designated another leader, and then commits
   * nothing more.
   */
  #onActivate(zxid: Zxid, designated: Sid, now: Now): void {
    const next = this.#proposals.peek();
    this.#onCommit(zxid, now);
    if (this.#stage === 'over' || next === undefined || zxid <= this.#snapshotZxid) return;
    this.#host.configActivated(configTextOf(next.txn), now);
    if (designated !== this.#start.leader) this.#shutDown('leader resigned', `the leader resigned in favour of server ${designated}`);
  }

  #onNewLeader(packet: PacketView): void {
    if (!this.#expectStage('synchronising', packet)) return;
    if (packet.zxid !== makeZxid(this.#epoch, 0)) {
      this.#shutDown('protocol error', `the leader of epoch ${this.#epoch} sent NEWLEADER with ${formatZxid(packet.zxid)}`);
      return;
    }
    this.#host.historyComplete();
    const { bytes, offset, limit } = packet.data;
    this.#leaderConfig = bytes.toString('utf8', offset, limit);
    this.#host.configSeen(this.#leaderConfig);
    this.#stage = 'settling';
    this.#historyEnd = this.#logged;
    if (this.#start.role === 'follower') for (const { zxid } of this.#proposals.values()) this.#pendingAcks.push(zxid);
    this.#maybeSaveCurrentEpoch();
  }

  #maybeSaveCurrentEpoch(): void {
    // Under steady load the end of the log is never durable.
    if (this.#durable < this.#historyEnd) return;
    this.#stage = 'saving currentEpoch';
    this.#storage.saveEpoch('currentEpoch', this.#epoch);
  }

  #onUpToDate(packet: PacketView, now: Now): void {
    if (!this.#expectStage('synchronised', packet)) return;
    this.#stage = 'serving';
    // A quorum has it, or the leader would not serve.
    this.#host.configActivated(this.#leaderConfig, now);
    const { server, forwarder } = this.#host.startServing(this.#epoch, this, now);
    this.#server = server;
    this.#forwarder = forwarder;
    this.#ack(makeZxid(this.#epoch, 0));
  }

  /**
   * After ACKEPOCH a leader of ZooKeeper accepts only the ACK of NEWLEADER; for any other packet it
   * closes the stream. It sends PINGs before that all the same, and its own learners answer after
   * UPTODATE. So do ours.
   */
  #onPing(zxid: Zxid): void {
    if (this.#stage !== 'serving') return;
    const writer = this.#links.packets(this.#channel);
    const at = beginQuorumPacket(writer, PacketType.PING, zxid);
    this.#server?.takeTouched((high, low, timeoutMs) => writeTouchedSession(writer, high, low, timeoutMs));
    endQuorumPacket(writer, at);
  }

  #onSync(now: Now): void {
    const sync = this.#forwarder?.takeSync();
    if (sync === undefined) this.#shutDown('protocol error', 'the leader answered a sync that this server did not send');
    else if (sync.kind === 'sync') this.#server!.synced(sync, now);
    else if (sync.isValid !== undefined) this.#server!.revalidated(sync, sync.isValid, this.#logged, now);
  }

  #onRevalidate(packet: PacketView, now: Now): void {
    const reply = readRevalidateReply(packet.data);
    if (this.#forwarder?.revalidated(reply, reply.valid) === true) this.#server!.revalidated(reply, reply.valid, this.#logged, now);
  }

  // ---- acknowledgements

  /** Each proposal is acknowledged once it is durable, and never before NEWLEADER. */
  #ackLogged(): void {
    if (this.#stage !== 'synchronised' && this.#stage !== 'serving') return;
    for (let next = this.#pendingAcks.peek(); next !== undefined && next <= this.#durable; next = this.#pendingAcks.peek()) {
      this.#pendingAcks.shift();
      this.#ack(next);
    }
  }

  #ack(zxid: Zxid): void {
    writeEmptyPacket(this.#links.packets(this.#channel), PacketType.ACK, zxid);
  }

  // ---- stages

  get #isSynchronising(): boolean {
    return (
      this.#stage === 'synchronising' ||
      this.#stage === 'settling' ||
      this.#stage === 'saving currentEpoch' ||
      this.#stage === 'synchronised'
    );
  }

  get #silentMaxMs(): Millis {
    const { tickTimeMs, initLimitTicks, syncLimitTicks } = this.#options;
    // A proxy that accepts for the leader may be silent for ever; a leader sends LEADERINFO as soon
    // as a quorum has connected, which should not take longer than another election. Later it may
    // have to wait for a disk, or for snapshots sent to others.
    const isShort = this.#stage === 'introduced' || this.#stage === 'synchronised' || this.#stage === 'serving';
    return (isShort ? syncLimitTicks : initLimitTicks) * tickTimeMs;
  }

  /**
   * Checks that a packet arrives in its stage; otherwise leader and learner disagree on the
   * protocol.
   */
  #expectStage(stage: LearnerStage, { type }: PacketView): boolean {
    if (this.#stage === stage) return true;
    this.#shutDown('protocol error', `the leader sent ${packetTypeName(type)} out of order (stage: ${this.#stage})`);
    return false;
  }

  #shutDown(reason: RoleEndReason, text: string): void {
    if (this.#stage === 'over') return;
    this.#stage = 'over';
    this.#endReason = reason;
    this.#endText = text;
    this.#links.closeChannel(this.#channel, reason, text);
  }
}

/** The txn of a reconfig is a setData of the configuration's text. */
function configTextOf(txn: Txn): string {
  return txn.kind === 'setData' && txn.data !== null ? Buffer.from(txn.data).toString('utf8') : '';
}
