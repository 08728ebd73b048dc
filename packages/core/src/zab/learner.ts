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
  endQuorumPacket,
  epochOf,
  formatZxid,
  makeZxid,
  type Millis,
  PacketType,
  type PacketView,
  packetTypeName,
  LeaderFeature,
  OpCode,
  readDesignatedLeader,
  readLeaderInfo,
  readRevalidateReply,
  readTxn,
  Reader,
  type Sid,
  type Txn,
  writeAckEpoch,
  writeLearnerInfo,
  writeTouchedSession,
  type Zxid,
} from '@tskeeper/protocol';
import { Fifo } from '../fifo.ts';
import { age, type Fingerprint, fingerprintBytes } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import type { LeaderForwarder } from '../request/leader-forwarder.ts';
import type { Server } from '../server.ts';
import { LearnerHistory } from './learner-history.ts';
import type { LearnerHost, LearnerStart } from './learner-host.ts';
import { LearnerStages } from './learner-stages.ts';
import type { ObserverMaster } from './observer-master.ts';
import { observersLag } from './observers-lag.ts';
import type { DurableState, EpochName } from './peer-storage.ts';
import type { ChannelId, QuorumLinks } from './quorum-links.ts';
import { RequestQueue } from './request-queue.ts';
import { LocalTxnFilter } from './txn-origin.ts';
import type { ZabOptions } from './zab-options.ts';

/**
 * A proxy that accepts in place of a leader closes as soon as its own connection is refused, which
 * takes as long as a dial.
 */
const refusalTicksMax = 2;

export class Learner {
  readonly #options: ZabOptions;
  readonly #start: LearnerStart;
  readonly #links: QuorumLinks;
  readonly #storage: DurableState;
  readonly #host: LearnerHost;
  readonly #channel: ChannelId;
  readonly stages: LearnerStages;
  readonly #history: LearnerHistory;
  readonly #localTxnFilter: LocalTxnFilter;
  /** Requests of clients on their way to the leader. */
  readonly requests: RequestQueue;
  /** The opening packet that the leader sent; for inspection only. */
  #syncMode: 'diff' | 'trunc' | 'snap' | undefined;
  #epoch = 0;
  #needsSnapshot = false;
  #server: Server | undefined;
  #forwarder: LeaderForwarder | undefined;
  /** The observers of this follower, which are informed of each commit. */
  #observers: ObserverMaster | undefined;
  /** Packets that arrived while the disk was working on something that must come first. */
  readonly #queuedPackets = new Fifo<Buffer>();
  readonly #view: PacketView;
  #lastReceivedMs: Millis;
  /** The configuration in NEWLEADER. */
  #leaderConfig = '';
  /** The last reconfig that was proposed here; it may be committed by now. */
  #lastReconfig: { readonly zxid: Zxid; readonly text: string } | undefined;
  #successor: Sid | undefined;
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
    this.stages = new LearnerStages(options, links, channel);
    this.#history = new LearnerHistory(start, channel, links, storage);
    this.requests = new RequestQueue(start.leader, this.stages, links, channel);
    this.#view = view;
    this.#links = links;
    this.#storage = storage;
    this.#host = host;
    this.#lastReceivedMs = now.elapsedMs;
    const writer = links.packets(channel);
    const type = start.role === 'observer' ? PacketType.OBSERVERINFO : PacketType.FOLLOWERINFO;
    const at = beginQuorumPacket(writer, type, makeZxid(start.acceptedEpoch, 0));
    writeLearnerInfo(writer, {
      serverId: options.sid,
      configVersion: start.configVersion,
      incarnation: start.incarnation,
      leaderPriority: start.leaderPriority,
    });
    endQuorumPacket(writer, at);
  }

  /**
   * The epoch to whose leader it should reconnect to get a snapshot; undefined if it should not.
   */
  get resyncEpoch(): number | undefined {
    return this.#needsSnapshot ? this.#epoch : undefined;
  }

  /** The epoch, once NEWLEADER has been acknowledged: this server is part of it. */
  get epoch(): number | undefined {
    return this.stages.isSynced ? this.#epoch : undefined;
  }

  /** It has been synchronised with its leader at some time. */
  get wasSynced(): boolean {
    return this.#wasSynced;
  }

  /**
   * The leader to connect to next without an election, or this server, which leads next; undefined
   * if an election follows.
   */
  get successor(): Sid | undefined {
    return this.#successor;
  }

  /** The server for clients, once clients are served. */
  get server(): Server | undefined {
    return this.#server;
  }

  get phase(): 'discovery' | 'synchronization' | 'broadcast' {
    if (this.stages.isServing) return 'broadcast';
    return this.#syncMode === undefined ? 'discovery' : 'synchronization';
  }

  /** How it is being synchronised. */
  get syncMode(): 'diff' | 'trunc' | 'snap' | undefined {
    return this.stages.isServing ? undefined : this.#syncMode;
  }

  // ---- inputs

  /**
   * A packet of the leader. Throws a `ProtocolError` if it is malformed; the caller then closes the
   * stream.
   */
  packet(packet: PacketView, now: Now): void {
    if (this.stages.isOver) return;
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
    if (this.stages.stage !== 'loading') return;
    this.#lastReceivedMs = now.elapsedMs;
    this.stages.enter('installing');
    this.#storage.installSnapshot(this.#history.snapshotZxid);
  }

  /** The snapshot is the content of the data folder. */
  installed(now: Now): void {
    if (this.stages.stage !== 'installing') return;
    this.#lastReceivedMs = now.elapsedMs;
    this.#history.restartAt(this.#history.snapshotZxid);
    this.stages.enter('synchronising');
    this.#resumePackets(now);
  }

  /** The log has been truncated, and the state is that of the rest. */
  truncated(lastZxid: Zxid, now: Now): void {
    if (this.stages.stage !== 'truncating') return;
    this.#lastReceivedMs = now.elapsedMs;
    this.#history.restartAt(lastZxid);
    this.stages.enter('synchronising');
    this.#resumePackets(now);
  }

  /**
   * The log cannot be truncated: a snapshot in the folder contains more than this leader's history.
   * Its epoch is a quorum's, so the excess was never committed. To get a snapshot, the learner
   * reconnects and reports that it has nothing; its earlier promises remain valid.
   */
  truncationRefused(): void {
    if (this.stages.stage !== 'truncating') return;
    this.#needsSnapshot = true;
    this.stages.end('log not truncatable', 'the log cannot be truncated that far: requesting a snapshot');
  }

  epochSaved(name: EpochName, now: Now): void {
    if (name === 'acceptedEpoch' && this.stages.stage === 'saving acceptedEpoch') {
      this.#lastReceivedMs = now.elapsedMs;
      this.#acceptEpoch(this.#start.currentEpoch);
      this.#resumePackets(now);
    } else if (name === 'currentEpoch' && this.stages.stage === 'saving currentEpoch') {
      this.stages.enter('synchronised');
      this.#wasSynced = true;
      this.#history.ack(makeZxid(this.#epoch, 0));
      this.#history.ackDurable();
    }
  }

  /** Every txn up to `zxid` is durable in the log. */
  appended(zxid: Zxid): void {
    this.#history.appended(zxid);
    if (this.stages.stage === 'flushing') this.#maybeSaveCurrentEpoch();
    else if (this.stages.isSynced) this.#history.ackDurable();
  }

  wake(now: Now): void {
    if (this.stages.isOver) return;
    this.requests.send();
    // While packets are not processed, the leader's silence cannot be measured.
    if (this.stages.isWaitingForDisk && this.stages.stage !== 'loading') this.#lastReceivedMs = now.elapsedMs;
    const silentMs = now.elapsedMs - this.#lastReceivedMs;
    if (silentMs <= this.stages.silentMaxMs) return;
    if (this.stages.isUnanswered) this.stages.connectFailure = 'silent';
    this.stages.end('leader silent', `nothing was received from the leader for ${silentMs} ms`);
  }

  deadline(): Millis | undefined {
    return this.stages.isOver ? undefined : this.#lastReceivedMs + this.stages.silentMaxMs + 1;
  }

  /** The leader does not receive the messages of this server, so it will not answer. */
  leaderNotReceiving(): void {
    this.stages.connectFailure = 'silent';
    this.stages.end('leader not receiving', 'the leader does not receive the messages of this server');
  }

  /**
   * The stream to the leader is closed. A stream open for longer than `refusalTicksMax` led to a
   * leader, which has given up.
   */
  channelGone(now: Now): void {
    if (this.stages.isUnanswered && now.elapsedMs - this.#lastReceivedMs < refusalTicksMax * this.#options.tickTimeMs)
      this.stages.connectFailure = 'refused';
    this.stages.end('leader disconnected', 'the connection to the leader is closed');
  }

  /** Ends learning; clients are no longer served. Everything in the log is applied. */
  stop(now: Now): void {
    if (!this.stages.isOver) this.stages.end('stopped', 'the role was ended by its owner');
    this.#server?.stop(now);
    for (let next = this.#history.takeProposal(); next !== undefined; next = this.#history.takeProposal()) {
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
    const { role, acceptedEpoch, currentEpoch, lastZxid, resyncEpoch, configVersion, leader } = this.#start;
    to.text(role);
    to.text(this.stages.stage);
    for (const number of [acceptedEpoch, currentEpoch, lastZxid, resyncEpoch, configVersion, leader, this.#channel, this.#epoch])
      to.number(number);
    to.text(this.#leaderConfig);
    to.number(this.#lastReconfig?.zxid ?? 0);
    this.#history.fingerprint(to);
    to.number(this.#queuedPackets.length);
    for (const packet of this.#queuedPackets.values()) fingerprintBytes(to, packet);
    to.number(age(this.#lastReceivedMs, nowMs, this.stages.silentMaxMs));
    this.requests.fingerprint(to);
  }

  // ---- packets, in order

  /** A packet must wait for the disk, or after others that do. */
  get #mustQueue(): boolean {
    return this.stages.isWaitingForDisk || this.#queuedPackets.length > 0;
  }

  #resumePackets(now: Now): void {
    for (let next = this.#queuedPackets.peek(); next !== undefined && !this.stages.isOver; next = this.#queuedPackets.peek()) {
      if (this.stages.isWaitingForDisk) return;
      this.#queuedPackets.shift();
      this.#handlePacket(this.#view.wrap(next, 0, next.length), now);
    }
  }

  #handlePacket(packet: PacketView, now: Now): void {
    switch (packet.type) {
      case PacketType.LEADERINFO:
        return this.#onLeaderInfo(packet);
      case PacketType.DIFF:
        if (!this.stages.expect('accepted', packet)) return;
        this.#syncMode = 'diff';
        this.stages.enter('synchronising');
        return;
      case PacketType.TRUNC:
        if (!this.stages.expect('accepted', packet)) return;
        this.#syncMode = 'trunc';
        this.stages.enter('truncating');
        return this.#storage.truncate(packet.zxid);
      case PacketType.SNAP:
        return this.#onSnap(packet);
      case PacketType.PROPOSAL:
        return this.#onProposal(packet, now);
      case PacketType.COMMIT:
        return this.#onCommit(packet.zxid, now);
      case PacketType.INFORM:
        this.#onProposal(packet, now);
        return this.#onCommit(packet.zxid, now);
      case PacketType.COMMITANDACTIVATE:
        return this.#onActivate(packet.zxid, packet.data.int64(), now);
      case PacketType.INFORMANDACTIVATE: {
        const designated = packet.data.int64();
        this.#onProposal(packet, now);
        return this.#onActivate(packet.zxid, designated, now);
      }
      case PacketType.HANDOVER:
        return this.#onHandover(packet);
      case PacketType.NEWLEADER:
        return this.#onNewLeader(packet, now);
      case PacketType.UPTODATE:
        return this.#onUpToDate(packet, now);
      case PacketType.PING:
        return this.#onPing(packet.zxid, now);
      case PacketType.SYNC:
        return this.#onSync(now);
      case PacketType.REVALIDATE:
        return this.#onRevalidate(packet, now);
      default:
        this.stages.end('protocol error', `the leader sent ${packetTypeName(packet.type)}, which a learner does not accept`);
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
    if (!this.stages.expect('accepted', packet)) return;
    const { role, lastZxid } = this.#start;
    if (role === 'follower' && packet.zxid < lastZxid && epochOf(lastZxid) === this.#epoch) {
      this.stages.end(
        'snapshot too old',
        `the leader sent a snapshot of ${formatZxid(packet.zxid)}, but this server has acknowledged ${formatZxid(lastZxid)} in this epoch: reconnecting`,
      );
      return;
    }
    this.#syncMode = 'snap';
    this.stages.enter('loading');
    this.#history.snapshotZxid = packet.zxid;
    this.#host.beginSnapshot(packet.zxid);
  }

  #onLeaderInfo(packet: PacketView): void {
    if (!this.stages.expect('introduced', packet)) return;
    this.#epoch = epochOf(packet.zxid);
    const features = packet.hasData ? readLeaderInfo(packet.data).features : 0;
    this.requests.leaderReadsOrigins = (features & LeaderFeature.origins) !== 0;
    this.requests.leaderAcceptsTransfers = (features & LeaderFeature.transfer) !== 0;
    this.requests.leaderAcceptsKeeperWrites = (features & LeaderFeature.keeperWrites) !== 0;
    const { acceptedEpoch, currentEpoch, role } = this.#start;
    const hasVote = role === 'follower' && (features & LeaderFeature.noVote) === 0;
    if (this.#epoch < currentEpoch) {
      this.stages.end('leader of an older epoch', `the leader's epoch is ${this.#epoch}, but this server is in epoch ${currentEpoch}`);
    } else if (this.#epoch < acceptedEpoch && hasVote) {
      this.stages.end(
        'leader of an older epoch',
        `the leader's epoch is ${this.#epoch}, but this server has accepted epoch ${acceptedEpoch}`,
      );
    } else if (this.#epoch <= acceptedEpoch) {
      // It has promised this epoch before, perhaps to another leader; it must not count twice. A
      // learner without a vote never counts, so its promise to a leader whose epoch failed blocks no
      // other leader, and must not keep it outside until a later epoch. If a reconfiguration gives it a
      // vote later, the quorum of the configuration before has kept no such promise.
      this.#acceptEpoch(-1);
    } else {
      this.stages.enter('saving acceptedEpoch');
      this.#storage.saveEpoch('acceptedEpoch', this.#epoch);
    }
  }

  #acceptEpoch(currentEpoch: number): void {
    this.stages.enter('accepted');
    const writer = this.#links.packets(this.#channel);
    const { resyncEpoch, lastZxid } = this.#start;
    const at = beginQuorumPacket(writer, PacketType.ACKEPOCH, resyncEpoch === this.#epoch ? 0 : lastZxid);
    writeAckEpoch(writer, currentEpoch);
    endQuorumPacket(writer, at);
  }

  #onProposal(packet: PacketView, now: Now): void {
    const { zxid, data } = packet;
    if (!this.stages.isSynchronising && !this.stages.expect('serving', packet)) return;
    if (this.#history.isInSnapshot(zxid)) return;
    if (!this.#history.isNext(zxid)) {
      this.stages.end('protocol error', `the leader sent ${formatZxid(zxid)} after ${formatZxid(this.#history.logged)}: txns are missing`);
      return;
    }
    const { bytes, offset, limit } = data;
    // Its strings and buffers are views into the bytes of the packet, which will be reused.
    const kept = this.#start.acceptsObservers === true ? Buffer.from(bytes.subarray(packet.start, packet.end)) : undefined;
    const copy =
      kept === undefined ? Buffer.from(bytes.subarray(offset, limit)) : kept.subarray(offset - packet.start, limit - packet.start);
    const { header, txn, digest } = readTxn(new Reader(copy));
    // From here on elections need a quorum of the new configuration too, so it is stored before the
    // txn is acknowledged.
    if (header.type === OpCode.reconfig) {
      const text = configTextOf(txn);
      if (!this.#acceptsConfig(text, now)) return;
      this.#lastReconfig = { zxid, text };
    }
    const mayBeLocal = this.#localTxnFilter.mayBeLocal(packet);
    const proposal = { zxid, header, txn, digest, bytes: copy.length, entry: copy, packet: kept, mayBeLocal };
    this.#history.append(proposal, this.stages.stage === 'synchronising');
  }

  /** `designated`: as `#onActivate`. */
  #onCommit(zxid: Zxid, now: Now, designated?: Sid): void {
    if (this.#history.isInSnapshot(zxid)) return;
    const next = this.#history.nextProposal;
    if (next === undefined || next.zxid !== zxid) {
      this.stages.end(
        'protocol error',
        `the leader committed ${formatZxid(zxid)}, but the next proposal is ${next === undefined ? 'none' : formatZxid(next.zxid)}`,
      );
      return;
    }
    this.#history.takeProposal();
    this.#host.committed(next);
    if (this.#forwarder === undefined) {
      this.#host.apply(next, now);
    } else {
      this.#forwarder.commit(next);
      this.#server!.appended(zxid, now);
      if (next.packet !== undefined) this.#observers?.onCommit(zxid, next.packet, designated);
    }
  }

  /**
   * The leader gives up the lead in favour of another server, and commits nothing more. That server
   * has everything that this one has.
   */
  #onHandover(packet: PacketView): void {
    if (!this.stages.expect('serving', packet)) return;
    this.#successor = readDesignatedLeader(packet.data);
    this.stages.end('leader resigned', `the leader resigned in favour of server ${this.#successor}`);
  }

  // ---- configurations

  /**
   * A configuration that this server cannot use must not be acknowledged. Returns whether it can.
   */
  #acceptsConfig(text: string, now: Now): boolean {
    const refusal = this.#host.configSeen(text, now);
    if (refusal !== undefined) this.stages.end('other configuration', refusal);
    return refusal === undefined;
  }

  /**
   * A reconfig is committed. Its leader may have designated another leader, and then commits
   * nothing more.
   */
  #onActivate(zxid: Zxid, designated: Sid, now: Now): void {
    const next = this.#history.nextProposal;
    this.#onCommit(zxid, now, designated);
    if (this.stages.isOver || next === undefined || this.#history.isInSnapshot(zxid)) return;
    this.#activateConfig(configTextOf(next.txn), designated, now);
  }

  /**
   * @param designated the leader that the present one has named; undefined if it has named none.
   */
  #activateConfig(text: string, designated: Sid | undefined, now: Now): void {
    const { leader } = this.#start;
    const { isFollowed, isRoleChanged, canLeaderLeadOn } = this.#host.configActivated(text, designated !== undefined, now);
    if (designated !== undefined && designated !== leader) {
      if (isFollowed) this.#successor = designated;
      this.stages.end('leader resigned', `the leader resigned in favour of server ${designated}`);
    } else if (!canLeaderLeadOn && designated === undefined) {
      this.stages.end('leader removed', `server ${leader} cannot lead under the new configuration`);
    } else if (isRoleChanged) {
      this.#successor = leader;
      this.stages.end('role changed', 'this server has another role in the new configuration, and connects to its leader again');
    }
  }

  #onNewLeader(packet: PacketView, now: Now): void {
    if (!this.stages.expect('synchronising', packet)) return;
    if (packet.zxid !== makeZxid(this.#epoch, 0)) {
      this.stages.end('protocol error', `the leader of epoch ${this.#epoch} sent NEWLEADER with ${formatZxid(packet.zxid)}`);
      return;
    }
    this.#host.historyComplete();
    const { bytes, offset, limit } = packet.data;
    this.#leaderConfig = bytes.toString('utf8', offset, limit);
    if (!this.#acceptsConfig(this.#leaderConfig, now)) return;
    this.stages.enter('flushing');
    this.#history.endHistory();
    this.#maybeSaveCurrentEpoch();
  }

  #maybeSaveCurrentEpoch(): void {
    if (!this.#history.isDurable) return;
    this.stages.enter('saving currentEpoch');
    this.#storage.saveEpoch('currentEpoch', this.#epoch);
  }

  #onUpToDate(packet: PacketView, now: Now): void {
    if (!this.stages.expect('synchronised', packet)) return;
    this.stages.enter('serving');
    this.#activateLeaderConfig(now);
    if (this.stages.isOver) return;
    const { server, forwarder, observers } = this.#host.startServing(this.#epoch, this.requests, now);
    this.#server = server;
    this.#forwarder = forwarder;
    this.#observers = observers;
    this.#history.ack(makeZxid(this.#epoch, 0));
  }

  /**
   * A quorum has it, or the leader would not serve. Only a leader of ZooKeeper sends one that it has
   * just proposed, and that is not committed yet: it becomes active with the commit of its txn.
   */
  #activateLeaderConfig(now: Now): void {
    const { nextProposal } = this.#history;
    const isPending = nextProposal !== undefined && this.#lastReconfig !== undefined && this.#lastReconfig.zxid >= nextProposal.zxid;
    if (isPending && this.#lastReconfig?.text === this.#leaderConfig) return;
    this.#activateConfig(this.#leaderConfig, undefined, now);
  }

  /**
   * After ACKEPOCH a leader of ZooKeeper accepts only the ACK of NEWLEADER; for any other packet it
   * closes the stream. It sends PINGs before that nevertheless, and its own learners answer after
   * UPTODATE. So do ours.
   */
  #onPing(zxid: Zxid, now: Now): void {
    if (!this.stages.isServing) return;
    this.#observers?.onLeaderPing(now);
    const writer = this.#links.packets(this.#channel);
    const at = beginQuorumPacket(writer, PacketType.PING, zxid);
    const report = (high: number, low: number, timeoutMs: Millis): void => writeTouchedSession(writer, high, low, timeoutMs);
    this.#server?.takeTouched(report);
    this.#observers?.takeTouched(report);
    endQuorumPacket(writer, at, observersLag(this.#observers?.lagMs(now)));
  }

  #onSync(now: Now): void {
    const asker = this.requests.takeSyncAsker();
    if (asker !== undefined) {
      this.#observers?.onSynced(asker);
      return;
    }
    const sync = this.#forwarder?.takeSync();
    if (sync === undefined) this.stages.end('protocol error', 'the leader answered a sync that this server did not send');
    else if (sync.kind === 'sync') this.#server!.synced(sync, now);
    else if (sync.isValid !== undefined) this.#server!.revalidated(sync, sync.isValid, this.#history.logged, now);
  }

  #onRevalidate(packet: PacketView, now: Now): void {
    const reply = readRevalidateReply(packet.data);
    const asker = this.requests.takeRevalidationAsker();
    if (asker !== undefined) {
      this.#observers?.onRevalidated(asker, reply);
      return;
    }
    if (this.#forwarder?.revalidated(reply, reply.valid) === true) this.#server!.revalidated(reply, reply.valid, this.#history.logged, now);
  }
}

/** The txn of a reconfig is a setData of the configuration's text. */
function configTextOf(txn: Txn): string {
  return txn.kind === 'setData' && txn.data !== null ? Buffer.from(txn.data).toString('utf8') : '';
}
