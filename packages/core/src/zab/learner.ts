/**
 * Learning (Zab's discovery, synchronisation and broadcast, from the side of a follower or an observer).
 *
 * What a learner has said it must not forget, so each word waits for the disk: the new epoch is written down before it is accepted; what
 * the leader has sent is in the log, or in a snapshot, before currentEpoch says so; and only then is NEWLEADER acknowledged, and single
 * proposals behind it. In this order a crash at any point leaves a server that claims less than it has, never more (ZOOKEEPER-3911, 4643,
 * 4646, 4685).
 *
 * When the leader is lost the learner is over. Nothing that stands in its log is given up: it is applied, and taken into the election.
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
  readRevalidateAnswer,
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
import { age, type Fingerprint, writeBytes } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import type { Forwarding, LeaderLink, SentTxn } from '../request/forwarding.ts';
import type { Server } from '../server.ts';
import type { TryOutcome } from './dialling.ts';
import { RequestQueue } from './request-queue.ts';
import { OwnTxns } from './txn-origin.ts';
import type { ZabOptions } from './zab-options.ts';
import type { EpochName, PeerStorage } from './peer-storage.ts';
import type { ChannelId, QuorumLinks } from './quorum-links.ts';

/** What a learner begins with. */
export interface LearnerStart {
  readonly role: 'follower' | 'observer';
  readonly acceptedEpoch: number;
  readonly currentEpoch: number;
  /** The last txn of its log, all of which has been applied. */
  readonly lastZxid: Zxid;
  /** The epoch whose leader wanted the log cut where it cannot be: it is told that there is nothing, and sends a snapshot. 0 for none. */
  readonly snapshotIn: number;
  readonly configVersion: number;
  /** See `LearnerInfo`; undefined for a learner that does not say. */
  readonly incarnation?: number | undefined;
  /** Whom it learns from. */
  readonly leader: Sid;
}

/** A txn that the leader has sent, and that has gone to the log. */
export interface LoggedTxn extends SentTxn {
  /** Header, record and digest as they stand in the log. */
  readonly entry: Buffer;
}

/** What a learner needs of the peer that it is. */
export interface LearnerHost {
  /** Changes the state by a committed txn while nobody is served yet. */
  apply(sent: LoggedTxn, now: Now): void;
  /** A txn is committed. */
  committed(sent: LoggedTxn): void;
  /** What comes next is a snapshot as of `zxid`. When it has come, `snapshotLoaded` is called. */
  beginSnapshot(zxid: Zxid): void;
  /** Makes the server that clients speak to. */
  serve(epoch: number, link: LeaderLink, now: Now): { readonly server: Server; readonly forwarding: Forwarding };
  /**
   * Everything that a snapshot of the leader may hold has been applied: a leader writes NEWLEADER behind it, and what it commits meanwhile comes
   * in between.
   */
  historySent(): void;
  /** A configuration that is to follow the one in force. Throws a `ConfigurationConflict` if this server cannot go by it. */
  configSeen(text: string): void;
  /** A configuration is in force. */
  configActivated(text: string, now: Now): void;
}

type Stage =
  /** FOLLOWERINFO has been sent. */
  | 'introduced'
  /** LEADERINFO has come, with an epoch that is not on disk yet. */
  | 'saving acceptedEpoch'
  /** ACKEPOCH has been sent. */
  | 'accepted'
  /** The log is being cut. */
  | 'truncating'
  /** A snapshot is coming. */
  | 'loading'
  /** It has come, and is not on disk yet. */
  | 'installing'
  /** Txns come that lie between our history and the leader's. */
  | 'synchronising'
  /** NEWLEADER has come; what it stands for is not all on disk yet. */
  | 'settling'
  | 'saving currentEpoch'
  /** NEWLEADER has been acknowledged. */
  | 'synchronised'
  /** UPTODATE has come: clients are served. */
  | 'serving'
  | 'over';

/** What accepts in place of a leader closes as soon as it has been refused, which takes as long as a dial. */
const earlyTicksMax = 2;

export class Learner implements LeaderLink {
  readonly #options: ZabOptions;
  readonly #start: LearnerStart;
  readonly #links: QuorumLinks;
  readonly #storage: PeerStorage;
  readonly #host: LearnerHost;
  readonly #channel: ChannelId;
  readonly #requests: RequestQueue;
  /** For a packet that has to wait. */
  readonly #packet = new Writer(64);
  #stage: Stage = 'introduced';
  /** For who asks only: what the leader has sent. */
  #syncMode: 'diff' | 'trunc' | 'snap' | undefined;
  #overReason: string | undefined;
  #failedTry: TryOutcome | undefined;
  #epoch = 0;
  #wantsSnapshot = false;
  #server: Server | undefined;
  #forwarding: Forwarding | undefined;
  /** In the log, or on the way there, and not committed. */
  readonly #proposals = new Fifo<LoggedTxn>();
  readonly #ownTxns: OwnTxns;
  /** The last txn that was sent to the log, and the last that is durable there. */
  #logged: Zxid;
  #durable: Zxid;
  /** What was logged when NEWLEADER came: it stands for that, and not for what is proposed while the disk works on it. */
  #historyEnd: Zxid = 0;
  /** Proposals that are to be acknowledged, in order. */
  readonly #toAck = new Fifo<Zxid>();
  /**
   * Of the snapshot that came, 0 for none. Txns up to here are in it, and may come again: a leader of ZooKeeper decides from where on it sends
   * txns before it reads off, a moment later, what the snapshot it is about to write is as of.
   */
  #snapshotZxid: Zxid = 0;
  /** Packets that came while the disk was at work on something that has to come first. */
  readonly #waiting = new Fifo<Buffer>();
  readonly #view: PacketView;
  #heardMs: Millis;
  /** Of NEWLEADER. */
  #leaderConfig = '';
  #wasInStep = false;

  constructor(
    options: ZabOptions,
    start: LearnerStart,
    channel: ChannelId,
    view: PacketView,
    links: QuorumLinks,
    storage: PeerStorage,
    host: LearnerHost,
    now: Now,
  ) {
    this.#options = options;
    this.#ownTxns = new OwnTxns(options.sid);
    this.#start = start;
    this.#channel = channel;
    this.#requests = new RequestQueue(links, channel);
    this.#view = view;
    this.#links = links;
    this.#storage = storage;
    this.#host = host;
    this.#logged = this.#durable = start.lastZxid;
    this.#heardMs = now.elapsedMs;
    const writer = links.packets(channel);
    const type = start.role === 'observer' ? PacketType.OBSERVERINFO : PacketType.FOLLOWERINFO;
    const at = beginQuorumPacket(writer, type, makeZxid(start.acceptedEpoch, 0));
    writeLearnerInfo(writer, { serverId: options.sid, configVersion: start.configVersion, incarnation: start.incarnation });
    endQuorumPacket(writer, at);
  }

  /** Why it is over: it learns no more, and an election follows. Undefined while it is not. */
  get over(): string | undefined {
    return this.#overReason;
  }

  /** It is over before LEADERINFO has come, because the stream was closed or silent: a try to reach the leader, and no more than that. */
  get failedTry(): TryOutcome | undefined {
    return this.#failedTry;
  }

  /** LEADERINFO has not come. */
  get isUnanswered(): boolean {
    return this.#stage === 'introduced';
  }

  /** The epoch to whose leader it should come again, to be sent a snapshot; undefined when it should not. */
  get snapshotIn(): number | undefined {
    return this.#wantsSnapshot ? this.#epoch : undefined;
  }

  /** NEWLEADER has been acknowledged: this server is part of the epoch. */
  get epoch(): number | undefined {
    return this.#stage === 'synchronised' || this.#stage === 'serving' ? this.#epoch : undefined;
  }

  /** It has been in step with its leader, and may be no more. */
  get wasInStep(): boolean {
    return this.#wasInStep;
  }

  /** Clients are served. */
  get server(): Server | undefined {
    return this.#server;
  }

  get phase(): 'discovery' | 'synchronization' | 'broadcast' {
    if (this.#stage === 'serving') return 'broadcast';
    return this.#syncMode === undefined ? 'discovery' : 'synchronization';
  }

  /** How it is being brought to the leader's history. */
  get syncMode(): 'diff' | 'trunc' | 'snap' | undefined {
    return this.#stage === 'serving' ? undefined : this.#syncMode;
  }

  // ---- inputs

  /** A packet of the leader. What cannot be read throws a `ProtocolError`, and the stream is to be closed. */
  packet(packet: PacketView, now: Now): void {
    if (this.#stage === 'over') return;
    this.#heardMs = now.elapsedMs;
    if (this.#mustWait) this.#waiting.push(Buffer.from(packet.bytes.subarray(packet.start, packet.end)));
    else this.#take(packet, now);
  }

  /** Something has come from the leader, if only a part of a packet or of a snapshot. */
  heard(now: Now): void {
    this.#heardMs = now.elapsedMs;
  }

  /** The leader's snapshot has been read to its end, and is the state from here on. */
  snapshotLoaded(now: Now): void {
    if (this.#stage !== 'loading') return;
    this.#heardMs = now.elapsedMs;
    this.#stage = 'installing';
    this.#storage.installSnapshot(this.#snapshotZxid);
  }

  /** The snapshot is what the folder holds. */
  installed(now: Now): void {
    if (this.#stage !== 'installing') return;
    this.#heardMs = now.elapsedMs;
    this.#logged = this.#durable = this.#snapshotZxid;
    this.#stage = 'synchronising';
    this.#goOn(now);
  }

  /** The log has been cut, and the state is what is left of it. */
  truncated(lastZxid: Zxid, now: Now): void {
    if (this.#stage !== 'truncating') return;
    this.#heardMs = now.elapsedMs;
    this.#logged = this.#durable = lastZxid;
    this.#stage = 'synchronising';
    this.#goOn(now);
  }

  /**
   * The log cannot be cut: a snapshot of an earlier leader stands for more than this one has, whose epoch is a quorum's, so what is more was
   * never committed. To be sent a snapshot it comes again, and says that it has nothing; what it has said of itself so far counts.
   */
  truncationRefused(): void {
    if (this.#stage !== 'truncating') return;
    this.#wantsSnapshot = true;
    this.#giveUp('the log cannot be cut that far back: a snapshot is asked for');
  }

  epochSaved(name: EpochName, now: Now): void {
    if (name === 'acceptedEpoch' && this.#stage === 'saving acceptedEpoch') {
      this.#heardMs = now.elapsedMs;
      this.#acceptEpoch(this.#start.currentEpoch);
      this.#goOn(now);
    } else if (name === 'currentEpoch' && this.#stage === 'saving currentEpoch') {
      this.#stage = 'synchronised';
      this.#wasInStep = true;
      this.#ack(makeZxid(this.#epoch, 0));
      this.#ackLogged();
    }
  }

  /** Every txn up to `zxid` is in the log. */
  appended(zxid: Zxid): void {
    this.#durable = zxid;
    if (this.#stage === 'settling') this.#maybeSettle();
    else this.#ackLogged();
  }

  wake(now: Now): void {
    if (this.#stage === 'over') return;
    this.#requests.send();
    // Whoever does not listen cannot say that nothing comes.
    if (this.#isAtDisk && this.#stage !== 'loading') this.#heardMs = now.elapsedMs;
    const silentMs = now.elapsedMs - this.#heardMs;
    if (silentMs <= this.#silentMaxMs) return;
    if (this.isUnanswered) this.#failedTry = 'silent';
    this.#giveUp(`nothing came from the leader for ${silentMs} ms`);
  }

  deadline(): Millis | undefined {
    return this.#stage === 'over' ? undefined : this.#heardMs + this.#silentMaxMs + 1;
  }

  /** The leader does not hear this server, so it will not answer. */
  leaderIsDeaf(): void {
    this.#failedTry = 'silent';
    this.#giveUp('the leader does not hear this server');
  }

  /** The stream to the leader is gone. One that was there for longer than a leader is early was one to a leader, which has given up. */
  gone(now: Now): void {
    if (this.isUnanswered && now.elapsedMs - this.#heardMs < earlyTicksMax * this.#options.tickTimeMs) this.#failedTry = 'refused';
    this.#giveUp('the connection to the leader is gone');
  }

  /** Learns no more; clients are served no more. Everything in the log has been applied behind it. */
  end(now: Now): void {
    if (this.#stage !== 'over') this.#giveUp('it was told to end');
    this.#server?.end(now);
    for (let next = this.#proposals.shift(); next !== undefined; next = this.#proposals.shift()) {
      // Whether they are committed is for the next leader to say; if that is this server, they are.
      this.#host.committed(next);
      this.#host.apply(next, now);
    }
  }

  /** Everything that can influence behaviour, for an explorer. That of its server is the peer's to write. */
  fingerprint(to: Fingerprint, { elapsedMs: nowMs }: Now): void {
    const { acceptedEpoch, currentEpoch, lastZxid, snapshotIn, configVersion, leader } = this.#start;
    to.text(this.#stage);
    for (const number of [acceptedEpoch, currentEpoch, lastZxid, snapshotIn, configVersion, leader, this.#channel, this.#epoch])
      to.number(number);
    to.text(this.#leaderConfig);
    for (const zxid of [this.#logged, this.#durable, this.#historyEnd, this.#snapshotZxid]) to.number(zxid);
    to.number(this.#proposals.length);
    for (const { entry, mayBeOurs } of this.#proposals.values()) {
      writeBytes(to, entry);
      to.number(mayBeOurs ? 1 : 0);
    }
    to.number(this.#toAck.length);
    for (const zxid of this.#toAck.values()) to.number(zxid);
    to.number(this.#waiting.length);
    for (const packet of this.#waiting.values()) writeBytes(to, packet);
    to.number(age(this.#heardMs, nowMs, this.#silentMaxMs));
    this.#requests.fingerprint(to);
  }

  // ---- as LeaderLink

  request(high: number, low: number, cxid: number, opCode: number, record: Reader, identities: Identities | undefined): void {
    if (this.#stage === 'over') return;
    const writer = this.#requests.writer() ?? this.#cleared();
    const at = beginQuorumPacket(writer, PacketType.REQUEST, -1);
    writer.halves(high, low);
    writer.int32(cxid);
    writer.int32(opCode);
    writer.raw(record.bytes, record.offset, record.limit);
    endQuorumPacket(writer, at, identities?.toList() ?? null);
    if (writer === this.#packet) this.#requests.push(writer);
  }

  revalidate(sessionHigh: number, sessionLow: number, timeOut: Millis): void {
    if (this.#stage === 'over') return;
    const writer = this.#requests.writer() ?? this.#cleared();
    const at = beginQuorumPacket(writer, PacketType.REVALIDATE, -1);
    writeRevalidateRequest(writer, { sessionHigh, sessionLow, timeOut });
    endQuorumPacket(writer, at);
    if (writer === this.#packet) this.#requests.push(writer);
  }

  get queuedBytes(): number {
    return this.#requests.bytes;
  }

  #cleared(): Writer {
    this.#packet.clear();
    return this.#packet;
  }

  // ---- packets, in their turn

  /** The disk is at work on what has to be done before anything else is taken in. */
  get #mustWait(): boolean {
    return this.#isAtDisk || this.#waiting.length > 0;
  }

  get #isAtDisk(): boolean {
    const stage = this.#stage;
    return stage === 'saving acceptedEpoch' || stage === 'truncating' || stage === 'loading' || stage === 'installing';
  }

  #goOn(now: Now): void {
    for (let next = this.#waiting.peek(); next !== undefined && this.#stage !== 'over'; next = this.#waiting.peek()) {
      if (this.#isAtDisk) return;
      this.#waiting.shift();
      this.#take(this.#view.place(next, 0, next.length), now);
    }
  }

  #take(packet: PacketView, now: Now): void {
    switch (packet.type) {
      case PacketType.LEADERINFO:
        return this.#onLeaderInfo(packet);
      case PacketType.DIFF:
        if (!this.#expect('accepted', packet)) return;
        this.#syncMode = 'diff';
        this.#stage = 'synchronising';
        return;
      case PacketType.TRUNC:
        if (!this.#expect('accepted', packet)) return;
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
        this.#giveUp(`the leader has sent ${packetTypeName(packet.type)}, which this server does not understand`);
    }
  }

  /**
   * What this server has acknowledged to the same leader in an earlier connection may be committed, and its acknowledgement may be one of those
   * that count. A snapshot of less would take it off the disk until it is sent again, and a leader that crashes meanwhile would not be missed by
   * a quorum that does not have it. A moment later the leader has applied that much. What was acknowledged in an earlier epoch and committed, the
   * leader had when its epoch began.
   */
  #onSnap(packet: PacketView): void {
    if (!this.#expect('accepted', packet)) return;
    const { role, lastZxid } = this.#start;
    if (role === 'follower' && packet.zxid < lastZxid && epochOf(lastZxid) === this.#epoch) {
      this.#giveUp(
        `the leader has sent a snapshot as of ${formatZxid(packet.zxid)}, and this server has acknowledged ${formatZxid(lastZxid)} in this epoch: it comes again`,
      );
      return;
    }
    this.#syncMode = 'snap';
    this.#stage = 'loading';
    this.#snapshotZxid = packet.zxid;
    this.#host.beginSnapshot(packet.zxid);
  }

  #onLeaderInfo(packet: PacketView): void {
    if (!this.#expect('introduced', packet)) return;
    this.#epoch = epochOf(packet.zxid);
    const { acceptedEpoch, currentEpoch, role } = this.#start;
    if (this.#epoch < currentEpoch) {
      this.#giveUp(`the leader's epoch is ${this.#epoch}, and this server stands in epoch ${currentEpoch}`);
    } else if (this.#epoch < acceptedEpoch && role === 'follower') {
      this.#giveUp(`the leader's epoch is ${this.#epoch}, and this server has accepted epoch ${acceptedEpoch}`);
    } else if (this.#epoch <= acceptedEpoch) {
      // It has promised this before, to another leader it may be; it must not count for it twice. An observer never counts, so whatever it
      // has promised to one whose epoch did not come about keeps nobody from leading, and must not keep it outside until a later epoch.
      this.#acceptEpoch(-1);
    } else {
      this.#stage = 'saving acceptedEpoch';
      this.#storage.saveEpoch('acceptedEpoch', this.#epoch);
    }
  }

  #acceptEpoch(currentEpoch: number): void {
    this.#stage = 'accepted';
    const writer = this.#links.packets(this.#channel);
    const { snapshotIn, lastZxid } = this.#start;
    const at = beginQuorumPacket(writer, PacketType.ACKEPOCH, snapshotIn === this.#epoch ? 0 : lastZxid);
    writeAckEpoch(writer, currentEpoch);
    endQuorumPacket(writer, at);
  }

  #onProposal(packet: PacketView): void {
    const { zxid, data } = packet;
    if (!this.#isSynchronising && !this.#expect('serving', packet)) return;
    if (zxid <= this.#snapshotZxid) return;
    const isNext = zxid === this.#logged + 1 || (counterOf(zxid) === 1 && epochOf(zxid) > epochOf(this.#logged));
    if (!isNext) {
      this.#giveUp(`after ${formatZxid(this.#logged)} the leader sent ${formatZxid(zxid)}`);
      return;
    }
    const { bytes, offset, limit } = data;
    // Its strings and buffers are views into the bytes of the packet, which will be used again.
    const copy = Buffer.from(bytes.subarray(offset, limit));
    const { header, txn, digest } = readTxn(new Reader(copy));
    // What this server cannot go by it must not acknowledge either, so it is judged before it is in the log.
    if (header.type === OpCode.reconfig) this.#host.configSeen(configTextOf(txn));
    const mayBeOurs = this.#ownTxns.mayInclude(packet);
    this.#proposals.push({ zxid, header, txn, digest, bytes: copy.length, entry: copy, mayBeOurs });
    this.#logged = zxid;
    this.#storage.append(zxid, copy, 0, copy.length);
    if (this.#start.role === 'follower' && this.#stage !== 'synchronising') this.#toAck.push(zxid);
  }

  #onCommit(zxid: Zxid, now: Now): void {
    if (zxid <= this.#snapshotZxid) return;
    const next = this.#proposals.peek();
    if (next === undefined || next.zxid !== zxid) {
      this.#giveUp(
        `the leader has committed ${formatZxid(zxid)}, where ${next === undefined ? 'nothing' : formatZxid(next.zxid)} was next`,
      );
      return;
    }
    this.#proposals.shift();
    this.#host.committed(next);
    if (this.#forwarding === undefined) {
      this.#host.apply(next, now);
    } else {
      this.#forwarding.commit(next);
      this.#server!.appended(zxid, now);
    }
  }

  /** A reconfig is committed. Its leader may have chosen another one for what follows, and commits nothing more then. */
  #onActivate(zxid: Zxid, designated: Sid, now: Now): void {
    const next = this.#proposals.peek();
    this.#onCommit(zxid, now);
    if (this.#stage === 'over' || next === undefined || zxid <= this.#snapshotZxid) return;
    this.#host.configActivated(configTextOf(next.txn), now);
    if (designated !== this.#start.leader) this.#giveUp(`the leader has made way for server ${designated}`);
  }

  #onNewLeader(packet: PacketView): void {
    if (!this.#expect('synchronising', packet)) return;
    if (packet.zxid !== makeZxid(this.#epoch, 0)) {
      this.#giveUp(`the leader of epoch ${this.#epoch} has ended the synchronisation with ${formatZxid(packet.zxid)}`);
      return;
    }
    this.#host.historySent();
    const { bytes, offset, limit } = packet.data;
    this.#leaderConfig = bytes.toString('utf8', offset, limit);
    this.#host.configSeen(this.#leaderConfig);
    this.#stage = 'settling';
    this.#historyEnd = this.#logged;
    if (this.#start.role === 'follower') for (const { zxid } of this.#proposals.values()) this.#toAck.push(zxid);
    this.#maybeSettle();
  }

  #maybeSettle(): void {
    // Under a steady load the log is never durable to its end.
    if (this.#durable < this.#historyEnd) return;
    this.#stage = 'saving currentEpoch';
    this.#storage.saveEpoch('currentEpoch', this.#epoch);
  }

  #onUpToDate(packet: PacketView, now: Now): void {
    if (!this.#expect('synchronised', packet)) return;
    this.#stage = 'serving';
    // A quorum has it, or the leader would not serve.
    this.#host.configActivated(this.#leaderConfig, now);
    const { server, forwarding } = this.#host.serve(this.#epoch, this, now);
    this.#server = server;
    this.#forwarding = forwarding;
    this.#ack(makeZxid(this.#epoch, 0));
  }

  /**
   * The first thing a leader of ZooKeeper takes from a learner behind ACKEPOCH is the ACK of NEWLEADER; at anything else it hangs up. It sends
   * PINGs before that all the same, and its own learners answer from UPTODATE on. So do ours.
   */
  #onPing(zxid: Zxid): void {
    if (this.#stage !== 'serving') return;
    const writer = this.#links.packets(this.#channel);
    const at = beginQuorumPacket(writer, PacketType.PING, zxid);
    this.#server?.takeTouched((high, low, timeoutMs) => writeTouchedSession(writer, high, low, timeoutMs));
    endQuorumPacket(writer, at);
  }

  #onSync(now: Now): void {
    const sync = this.#forwarding?.takeSync();
    if (sync === undefined) this.#giveUp('the leader has answered a sync that nobody asked for');
    else if (sync.kind === 'sync') this.#server!.synced(sync, now);
    else if (sync.isValid !== undefined) this.#server!.revalidated(sync.high, sync.low, sync.isValid, this.#logged, now);
  }

  #onRevalidate(packet: PacketView, now: Now): void {
    const { sessionHigh, sessionLow, valid } = readRevalidateAnswer(packet.data);
    if (this.#forwarding?.revalidated(sessionHigh, sessionLow, valid) === true) {
      this.#server!.revalidated(sessionHigh, sessionLow, valid, this.#logged, now);
    }
  }

  // ---- acknowledgements

  /** Single proposals are acknowledged once they are durable, and never before NEWLEADER is. */
  #ackLogged(): void {
    if (this.#stage !== 'synchronised' && this.#stage !== 'serving') return;
    for (let next = this.#toAck.peek(); next !== undefined && next <= this.#durable; next = this.#toAck.peek()) {
      this.#toAck.shift();
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
    // What has accepted for the leader may be silent for ever; a leader says in which epoch it leads as soon as a quorum has come, which is not to
    // take longer than another election. Later it may have to wait for a disk, or for a snapshot to be sent to others.
    const isShort = this.#stage === 'introduced' || this.#stage === 'synchronised' || this.#stage === 'serving';
    return (isShort ? syncLimitTicks : initLimitTicks) * tickTimeMs;
  }

  /** A packet has its place; out of place it means that this leader and this server do not understand each other. */
  #expect(stage: Stage, { type }: PacketView): boolean {
    if (this.#stage === stage) return true;
    this.#giveUp(`the leader has sent ${packetTypeName(type)} at a time when it means nothing (${this.#stage})`);
    return false;
  }

  #giveUp(reason: string): void {
    if (this.#stage === 'over') return;
    this.#stage = 'over';
    this.#overReason = reason;
    this.#links.closeChannel(this.#channel, reason);
  }
}

/** The txn of a reconfig is one of setData, of the configuration's text. */
function configTextOf(txn: Txn): string {
  return txn.kind === 'setData' && txn.data !== null ? Buffer.from(txn.data).toString('utf8') : '';
}
