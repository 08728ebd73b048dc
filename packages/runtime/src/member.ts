/**
 * What a server of an ensemble has besides its clients: the ports to the other servers, and the disk work that its peer asks for. The
 * runtime drives it in its turns.
 */
import {
  type ChannelId,
  ChannelRank,
  type CoreOptions,
  type EpochName,
  type Now,
  type Observer,
  type Out,
  Peer,
  type PeerOut,
} from '@tskeeper/core';
import { CommittedLog, committedLogDefaults, Fifo, logBytesMax, OracleQuorum, type Replica, verifierOf } from '@tskeeper/core/internal';
import { formatQuorumConfig, isParticipant, type Millis, type Notification, PacketView, type Sid, type Zxid } from '@tskeeper/protocol';
import { DiskError } from './disk.ts';
import type { Logger } from './logger.ts';
import type { MemberOptions } from './member-options.ts';
import type { ServerMetrics } from './metrics/server-metrics.ts';
import { ElectionPort, electionPortDefaults } from './ports/election-port.ts';
import { LearnerPort, learnerPortDefaults } from './ports/learner-port.ts';
import type { ElectionCore, LearnerCore, PeerServer } from './ports/peer-core.ts';
import { ReplicaRecovery } from './replica-recovery.ts';
import type { LogReading } from './storage/log-reading.ts';
import { SnapshotSpoiled } from './storage/snapshot-files.ts';
import type { RecoveredMember, Storage } from './storage/storage.ts';
import { TruncationImpossible } from './storage/truncation.ts';
import type { World } from './world.ts';

export interface MemberParts {
  readonly world: World;
  readonly core: CoreOptions;
  readonly options: MemberOptions;
  readonly storage: Storage;
  readonly observer: Observer;
  readonly books: Pick<ServerMetrics, 'txnReceived' | 'txnLogged'>;
  /** See `RuntimeHooks.oracle`. */
  readonly oracle: (() => Promise<boolean>) | undefined;
  readonly logger: Logger;
  /** What the peer asks for on behalf of clients. */
  readonly out: Out;
  /** Runs something as a turn of its own. */
  readonly turn: (work: (now: Now) => void) => void;
  /** The server cannot go on. */
  readonly failed: (error: unknown) => void;
}

/** How often a leader's snapshot is written before the disk counts as failed. */
const installTriesMax = 3;
/** Between two looks at what an oracle says. */
const oracleIntervalMs: Millis = 100;

/** A port of the server, as the runtime drives it. */
export type MemberPort = ElectionPort | LearnerPort;

export class Member {
  readonly #parts: MemberParts;
  readonly #view: PacketView;
  readonly #readings = new Map<ChannelId, LogReading | undefined>();
  /** Those that wait until their stream takes more. */
  readonly #waitingReadings = new Map<ChannelId, () => void>();
  #peer: Peer | undefined;
  #election: ElectionPort | undefined;
  #learners: LearnerPort | undefined;
  /** Sent to the log and not durable yet, with their times on the wall clock. */
  readonly #logging = new Fifo<{ readonly zxid: Zxid; readonly txnMs: Millis }>();
  /** What the peer has been told last; undefined when it has forgotten. */
  #oracleSaid: boolean | undefined;
  #isEnding = false;
  #isShut = false;
  #admitsLearners = false;
  /** Raised whenever it begins or ends to lead. */
  #leadership = 0;
  /** None before `begin`. */
  ports: readonly MemberPort[] = [];

  constructor(parts: MemberParts) {
    this.#parts = parts;
    const { juteMaxBuffer, juteMaxBufferExtra } = parts.core;
    this.#view = new PacketView(juteMaxBuffer + juteMaxBufferExtra);
  }

  get peer(): Peer {
    if (this.#peer === undefined) throw new Error('the member has not been opened');
    return this.#peer;
  }

  /** Reads what the folder holds into `recovery`. Where there was nothing, a beginning is written: a log alone is not trusted. */
  async recover(recovery: ReplicaRecovery): Promise<{ readonly replica: Replica; readonly recovered: RecoveredMember }> {
    const { storage, options } = this.#parts;
    const recovered = await storage.openMember(recovery, {
      recent: { count: options.commitLogCount, bytes: committedLogDefaults.bytesMax },
      canRefetch: hasOtherVoters(options),
    });
    const replica = recovery.finish();
    // A folder that is not trusted to be new waits for the leader's snapshot.
    if (!recovered.needsSnapshot || recovered.lastZxid < 0) return { replica, recovered };
    const source = replica.snapshot();
    try {
      if (!(await storage.takeSnapshot(replica.lastZxid, source))) {
        throw new Error(
          `cannot begin a database in ${storage.snapshotFolder}: its first snapshot could not be written (${storage.snapshotFailure ?? 'it was given up'})`,
        );
      }
    } finally {
      source.abandon();
    }
    return { replica, recovered };
  }

  /**
   * Makes the peer, which begins to look for a leader at once, and its ports, each of which lets in `strangersMax` connections of one kind from
   * strangers. Nothing is listened to before `listen`.
   */
  begin(replica: Replica, recovered: RecoveredMember, strangersMax: number, now: Now): Peer {
    const { world, core, options, logger, turn, observer } = this.#parts;
    const servers = serversOf(options);
    const electionPort = { ...electionPortDefaults, ...options.electionPort };
    const learnerPort = { ...learnerPortDefaults, ...options.learnerPort };
    const { tickTimeMs, initLimitTicks } = options.zab;
    const shared = { network: world.network, clock: world.clock, core: this.#core(), logger, turn, limits: observer };
    this.#election = new ElectionPort(
      {
        ...shared,
        options: {
          ...electionPort,
          halfOpenMax: Math.min(electionPort.halfOpenMax, strangersMax),
          strangersMax: Math.min(electionPort.strangersMax, strangersMax),
          sid: options.zab.sid,
          cnxTimeoutMs: options.cnxTimeoutMs,
          initialMessageTimeoutMs: options.quorumCnxnTimeoutMs,
          multiAddressEnabled: options.multiAddressEnabled,
          bindTriesMax: options.bindTriesMax,
        },
      },
      servers,
    );
    this.#learners = new LearnerPort(
      {
        ...shared,
        view: this.#view,
        options: {
          ...learnerPort,
          halfOpenMax: Math.min(learnerPort.halfOpenMax, strangersMax),
          packetBytesMax: core.juteMaxBuffer + core.juteMaxBufferExtra,
          dialTimeoutMs: options.connectToLeaderMs,
          cnxTimeoutMs: options.cnxTimeoutMs,
          firstPacketTimeoutMs: tickTimeMs * initLimitTicks,
          bindTriesMax: options.bindTriesMax,
        },
      },
      servers,
    );
    this.ports = [this.#election, this.#learners];
    const committedLog = new CommittedLog({ ...committedLogDefaults, countMax: options.commitLogCount });
    for (const { zxid, bytes } of recovered.recent) committedLog.restore(zxid, bytes);
    const { oracle } = this.#parts;
    const verifier = oracle === undefined ? verifierOf(options.quorum) : new OracleQuorum(verifierOf(options.quorum).voters);
    const config = { verifier, text: formatQuorumConfig(options.quorum), version: options.quorum.version };
    const found = {
      replica,
      lastZxid: recovered.lastZxid,
      acceptedEpoch: recovered.acceptedEpoch,
      currentEpoch: recovered.currentEpoch,
      committedLog,
      snapshotZxid: recovered.snapshotZxid ?? 0,
    };
    const { zab, role, leaderServes, leaderConnectDelayMs, observerElectionDelayMs } = options;
    const { minNotificationIntervalMs, maxNotificationIntervalMs } = options;
    const election = { minNotificationIntervalMs, maxNotificationIntervalMs };
    this.#peer = new Peer(
      { core, zab, role, leaderServes, leaderConnectDelayMs, observerElectionDelayMs, election },
      config,
      found,
      this.#view,
      this.#out(),
      world.random,
      observer,
      now,
    );
    if (oracle !== undefined) void this.#consult(oracle);
    return this.#peer;
  }

  /** Others can send this server their votes. Rejects with a sentence for the operator when a port cannot be had. */
  async listen(): Promise<void> {
    for (const address of this.#parts.options.electionAddresses) await this.#election?.listen(address);
  }

  /** At the end of each turn: all output of the ports, and what follows from the role that the peer has now. */
  endTurn(now: Now): void {
    for (const port of this.ports) port.endTurn(now);
    this.#admitLearners();
  }

  /**
   * Learners are listened to while this server leads, or tries to. One that is refused dials again a moment later; one that is let in by a
   * server that does not lead would give up the leader it has found.
   */
  #admitLearners(): void {
    const leads = this.peer.role === 'leading';
    if (leads === this.#admitsLearners || this.#isShut) return;
    this.#admitsLearners = leads;
    this.#leadership++;
    if (leads) void this.#listenForLearners(this.#leadership);
    else void this.#learners?.stopListening();
  }

  async #listenForLearners(leadership: number): Promise<void> {
    try {
      for (const address of this.#parts.options.quorumAddresses) {
        if (leadership === this.#leadership) await this.#learners?.listen(address);
      }
    } catch (error) {
      if (leadership !== this.#leadership || this.#isShut) return;
      this.#parts.logger.error(`${messageOf(error)} This server cannot lead without it.`, {
        event: 'port.unavailable',
        reason: messageOf(error),
      });
      this.#parts.turn((now) => this.peer.standDown('its quorum port cannot be had', now));
    }
  }

  /** Storage is about to close; `shutDown` follows. */
  beginShutDown(): void {
    this.#isEnding = true;
  }

  async shutDown(now: Now): Promise<void> {
    this.#isShut = true;
    for (const channel of this.#readings.keys()) this.#stopReading(channel);
    await Promise.all([this.#election?.shutDown(now), this.#learners?.shutDown(now)]);
  }

  /** The ports are there before the peer is, which speaks through them from its first moment. */
  #core(): ElectionCore & LearnerCore {
    const peer = () => this.#peer;
    return {
      notified: (from, notification, now) => peer()?.notified(from, notification, now),
      reachable: (sid) => peer()?.reachable(sid),
      unreachable: (sid, now) => peer()?.unreachable(sid, now),
      accepted: (channel, now) => peer()?.accepted(channel, now),
      dialled: (channel, now) => peer()?.dialled(channel, now),
      dialFailed: (outcome, now) => peer()?.dialFailed(outcome, now),
      packet: (channel, packet, now) => peer()?.packet(channel, packet, now),
      isLoading: (channel) => peer()?.isLoading(channel) ?? false,
      snapshotBytes: (channel, bytes, now) => peer()?.snapshotBytes(channel, bytes, now) ?? 0,
      channelMoves: (channel, now) => peer()?.channelMoves(channel, now),
      channelRank: (channel) => peer()?.channelRank(channel) ?? ChannelRank.voter,
      channelDrained: (channel, now) => {
        this.#goOnReading(channel);
        peer()?.channelDrained(channel, now);
      },
      channelGone: (channel, now) => {
        this.#stopReading(channel);
        peer()?.channelGone(channel, now);
      },
    };
  }

  #out(): PeerOut {
    const { out, storage } = this.#parts;
    return {
      reply: (cnxn) => out.reply(cnxn),
      isFull: (cnxn) => out.isFull(cnxn),
      close: (cnxn, reason) => out.close(cnxn, reason),
      append: (zxid, bytes, start, end) => {
        this.#noteAppend(zxid, bytes, start);
        storage.append(zxid, bytes, start, end);
      },
      notify: (to: Sid, notification: Notification) => this.#election!.notify(to, notification),
      dialLeader: (sid) => this.#learners!.dialLeader(sid),
      dialNobody: () => this.#learners!.dialNobody(),
      reconnect: (sid) => this.#election!.reconnect(sid),
      askOracle: () => {
        this.#oracleSaid = undefined;
        const { oracle } = this.#parts;
        if (oracle !== undefined) void this.#askOracle(oracle);
      },
      packets: (channel) => this.#learners!.packets(channel),
      share: (channel, bytes, start) => this.#learners!.share(channel, bytes, start),
      channelIsFull: (channel) => this.#learners!.channelIsFull(channel),
      closeChannel: (channel, reason) => this.#learners!.closeChannel(channel, reason),
      saveEpoch: (name, epoch) => this.#saveEpoch(name, epoch),
      truncate: (zxid) => this.#truncate(zxid),
      installSnapshot: (zxid) => this.#installSnapshot(zxid),
      readLog: (channel, from, isTail) => this.#beginReading(channel, from, isTail),
      logBytesMax: () => (this.#parts.options.snapshotSizeFactor < 0 ? undefined : Infinity),
    };
  }

  // --- An oracle

  /** It is asked for as long as the server lives, since it may change its mind. */
  async #consult(oracle: () => Promise<boolean>): Promise<void> {
    await this.#askOracle(oracle);
    if (!this.#isShut) this.#parts.world.clock.after(oracleIntervalMs, () => void this.#consult(oracle));
  }

  async #askOracle(oracle: () => Promise<boolean>): Promise<void> {
    let mayGoAlone = false;
    try {
      mayGoAlone = await oracle();
    } catch {
      // A server must not go on alone by mistake.
    }
    if (this.#isShut || mayGoAlone === this.#oracleSaid) return;
    this.#oracleSaid = mayGoAlone;
    this.#parts.logger.info(
      `the oracle ${mayGoAlone ? 'lets this server go on without the other' : 'does not let this server go on alone'}`,
      { event: 'oracle.answered', allowed: mayGoAlone },
    );
    this.#parts.turn((now) => this.peer.oracleSaid(mayGoAlone, now));
  }

  // --- How old txns are when they are received, and when they are durable, for the books.

  #noteAppend(zxid: Zxid, bytes: Buffer, start: number): void {
    const { world, books, options } = this.#parts;
    // A txn begins with its header: session, cxid and zxid come before the time.
    const txnMs = bytes.readInt32BE(start + 20) * 2 ** 32 + bytes.readUInt32BE(start + 24);
    if (this.peer.role === 'learning') books.txnReceived(world.clock.now().wallMs - txnMs);
    if (options.role === 'participant') this.#logging.push({ zxid, txnMs });
  }

  /** Every txn up to `zxid` is durable. */
  appended(zxid: Zxid, now: Now): void {
    for (let next = this.#logging.peek(); next !== undefined && next.zxid <= zxid; next = this.#logging.peek()) {
      this.#logging.shift();
      this.#parts.books.txnLogged(now.wallMs - next.txnMs);
    }
  }

  // --- Disk work of the peer. What the disk refuses ends the server: nobody could say what is on it.

  async #then<T>(work: Promise<T>, done: (result: T, now: Now) => void): Promise<void> {
    const { turn } = this.#parts;
    let result: T;
    try {
      result = await work;
    } catch (error) {
      this.#workFailed(error);
      return;
    }
    turn((now) => done(result, now));
  }

  #saveEpoch(name: EpochName, epoch: number): void {
    void this.#then(this.#parts.storage.saveEpoch(name, epoch), (_, now) => this.peer.epochSaved(name, epoch, now));
  }

  #truncate(zxid: Zxid): void {
    const { storage } = this.#parts;
    const cut = async (to: Zxid): Promise<{ recovery: ReplicaRecovery; lastZxid: Zxid } | undefined> => {
      const recovery = this.#newRecovery();
      try {
        const { lastZxid } = await storage.truncate(to, recovery);
        return { recovery, lastZxid };
      } catch (error) {
        if (!(error instanceof TruncationImpossible)) throw error;
        // The leader goes by a txn that is not here. Behind the one before it the two histories are the same, and are compared again.
        if (error.heldZxid !== undefined && error.heldZxid < to) return await cut(error.heldZxid);
        this.#parts.logger.warn(`${error.message}; the leader is asked for a snapshot`, {
          event: 'txnlog.not-truncated',
          reason: error.message,
        });
        return undefined;
      }
    };
    void this.#then(cut(zxid), (done, now) => {
      if (done === undefined) this.peer.truncationRefused(now);
      else this.peer.truncated(done.recovery.finish(), done.lastZxid, now);
    });
  }

  #installSnapshot(zxid: Zxid): void {
    void this.#then(this.#replaceBySnapshot(zxid, installTriesMax), (_, now) => this.peer.installed(zxid, now));
  }

  /** The leader's snapshot is in memory as it came, so one that the disk has spoiled is written again. */
  async #replaceBySnapshot(zxid: Zxid, triesLeft: number): Promise<void> {
    const { storage, logger } = this.#parts;
    const source = this.peer.snapshot();
    try {
      if (!(await storage.replaceBySnapshot(zxid, source))) throw new Error('the server ends');
      return;
    } catch (error) {
      if (!(error instanceof SnapshotSpoiled)) throw error;
      logger.warn(`${error.message}; ${triesLeft > 1 ? 'it is written again' : 'this server ends'}. Check the disk.`, {
        event: 'snapshot.spoiled',
        path: error.path,
      });
      if (triesLeft <= 1) throw new DiskError('EIO', 'read back', error.path, error);
    } finally {
      source.abandon();
    }
    await this.#replaceBySnapshot(zxid, triesLeft - 1);
  }

  #newRecovery(): ReplicaRecovery {
    const { core, world, logger } = this.#parts;
    return new ReplicaRecovery(core, world.random, logger);
  }

  #beginReading(channel: ChannelId, from: Zxid, isTail: boolean): void {
    this.#readLog(channel, from, isTail).catch((error: unknown) => {
      this.#workFailed(error);
    });
  }

  /** Storage that closes takes no more work and breaks off what it can, and nobody waits for it. What the disk refuses is another matter. */
  #workFailed(error: unknown): void {
    if (this.#isShut || (this.#isEnding && !(error instanceof DiskError))) return;
    this.#parts.failed(error);
  }

  /** Reads the log for a learner, piece by piece, for as long as its stream is there and no other reading is wanted for it. */
  async #readLog(channel: ChannelId, from: Zxid, isTail: boolean): Promise<void> {
    const { storage, turn, options } = this.#parts;
    this.#stopReading(channel);
    this.#readings.set(channel, undefined);
    const reading = await storage.readFrom(from);
    if (!this.#readings.has(channel) || this.#readings.get(channel) !== undefined) {
      void reading?.close();
      return;
    }
    const bytesMax = isTail ? Infinity : (logBytesMax(options.snapshotSizeFactor, reading?.snapshotBytes ?? 0) ?? 0);
    if (reading === undefined || reading.logBytes > bytesMax) {
      this.#readings.delete(channel);
      void reading?.close();
      turn((now) => this.peer.logRefused(channel, now));
      return;
    }
    this.#readings.set(channel, reading);
    for (;;) {
      const piece = await reading.next();
      if (this.#readings.get(channel) !== reading) return;
      const isEnd = piece.kind !== 'txns';
      if (isEnd) this.#readings.delete(channel);
      turn(() => this.peer.logRead(channel, piece.kind === 'txns' ? piece.txns : [], isEnd));
      if (isEnd) return;
      // The disk is faster than most lines, and what a learner has not taken waits in memory.
      if (this.#learners!.channelIsFull(channel)) await new Promise<void>((resolve) => this.#waitingReadings.set(channel, resolve));
    }
  }

  #stopReading(channel: ChannelId): void {
    void this.#readings.get(channel)?.close();
    this.#readings.delete(channel);
    this.#goOnReading(channel);
  }

  /** There is room again for what is read, or the reading is over and finds that out. */
  #goOnReading(channel: ChannelId): void {
    this.#waitingReadings.get(channel)?.();
    this.#waitingReadings.delete(channel);
  }
}

/** Whether there can be a quorum that has everything without this server. Observers belong to none. */
function hasOtherVoters({ quorum, zab }: MemberOptions): boolean {
  return [...quorum.servers.values()].some((server) => server.sid !== zab.sid && isParticipant(server));
}

function serversOf({ quorum }: MemberOptions): PeerServer[] {
  return [...quorum.servers.values()].map(({ sid, addresses }) => ({
    sid,
    electionAddresses: addresses.map(({ host, electionPort }) => ({ host, port: electionPort })),
    quorumAddresses: addresses.map(({ host, quorumPort }) => ({ host, port: quorumPort })),
  }));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** When the first of them wants to be woken. */
export function firstDeadline(ports: readonly MemberPort[]): Millis {
  return Math.min(Infinity, ...ports.map((port) => (port.unfinished ? 0 : (port.deadline() ?? Infinity))));
}
