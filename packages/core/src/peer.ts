/**
 * A server of an ensemble: it looks for a leader, leads or learns, and looks again when that is over. At any time it is in one of these
 * roles, and only as a leader or learner that is in step with a quorum does it serve clients.
 *
 *     looking     election/fast-leader-election.ts   until there is a vote to go by
 *     leading     zab/leader.ts
 *     learning    zab/learner.ts                     as a follower, or as an observer
 *
 * Between two roles the state in memory is made that of the log: everything in the log has been applied, and is durable, before the
 * server says in an election how far it is. What the log loses again, by a TRUNC, memory loses with it (ZOOKEEPER-2845).
 */
import {
  incarnationOf,
  makeZxid,
  type Millis,
  type Notification,
  type PacketView,
  type Reader,
  type SessionId,
  type Sid,
  type Zxid,
} from '@tskeeper/protocol';
import type { SnapshotSource } from './snapshot/snapshot-source.ts';
import type { AuthTicket, AuthVerdict } from './auth/auth-provider.ts';
import type { CnxnContext } from './cnxn/cnxn-context.ts';
import { Configuration } from './quorum/configuration.ts';
import { Attempts } from './election/attempts.ts';
import { type ElectionConfig, type ElectionOptions, type ElectionOut, FastLeaderElection } from './election/fast-leader-election.ts';
import { distance, type Fingerprint } from './fingerprint.ts';
import type { EnsembleInspect, Inspect } from './inspect.ts';
import type { Now } from './now.ts';
import type { Observer } from './observer.ts';
import type { CoreOptions } from './options.ts';
import type { CnxnId, Out } from './out.ts';
import type { Random } from './random.ts';
import { Authority, earliest, type OrderParts } from './request/authority.ts';
import { Forwarding, type SentTxn } from './request/forwarding.ts';
import type { Order } from './request/order.ts';
import { StepBudget } from './request/budget.ts';
import { Replica, replicaOptions, type ReplicaOptions } from './request/replica.ts';
import type { MemoryState } from './request/memory-limits.ts';
import { Server } from './server.ts';
import { PeerInspection } from './peer-inspection.ts';
import { RestingInspection } from './resting-inspection.ts';
import { SnapshotLoader } from './snapshot/snapshot-loader.ts';
import type { CommittedLog } from './zab/committed-log.ts';
import { Dialling, type TryOutcome } from './zab/dialling.ts';
import { DiskState, type FoundOnDisk } from './zab/disk-state.ts';
import { Leader } from './zab/leader.ts';
import { Learner, type LearnerOut, type LoggedTxn } from './zab/learner.ts';
import type { SynchroniserOut } from './zab/learner-sync.ts';
import { type LogEntry, Synchroniser, type SynchroniserOptions } from './zab/synchroniser.ts';
import { diffSyncsMaxDefault, snapSyncsMaxDefault, type ZabOptions } from './zab/zab-options.ts';
import { type ChannelId, ChannelRank, type EpochName } from './zab/zab-out.ts';

/** Where a peer says what must be done, in order. It never calls back. */
export interface PeerOut extends Omit<Out, 'append'>, LearnerOut, Pick<ElectionOut, 'notify'>, SynchroniserOut {
  /** How many bytes of the log on disk are cheaper to send to a learner than a snapshot; undefined when it is not to be read. See `logBytesMax`. */
  logBytesMax(): number | undefined;
  /** Connects to the learner port of another server. It completes as `dialled`, or as `dialFailed`. One dial at a time. */
  dialLeader(sid: Sid): void;
  /** The dial that is under way, if one is, is given up, and nothing more is heard of it. */
  dialNobody(): void;
  /** Closes the connection for votes with that server, if there is one, and makes a new one, which completes as `reachable` or `unreachable`. */
  reconnect(sid: Sid): void;
  /** Reads at once what the oracle says, which completes as `oracleSaid`. It is read now and then besides. Without an oracle there is no need. */
  askOracle?(): void;
}

/** What a start has found in the data folder. */
export interface Recovered extends FoundOnDisk {
  /** All of the log has been applied to it. */
  readonly replica: Replica;
  /** The last txns of the log. */
  readonly committedLog: CommittedLog;
  /** Of the snapshot that the state was begun with, 0 for none. */
  readonly snapshotZxid: Zxid;
}

export interface PeerOptions {
  readonly core: CoreOptions;
  readonly zab: ZabOptions;
  readonly role: 'participant' | 'observer';
  /** Whether a leader takes clients (`zookeeper.leaderServes`). Default: true. */
  readonly leaderServes?: boolean;
  /** How long after a try to reach the leader the next one comes (`zookeeper.leaderConnectDelayDuringRetryMs`). Default: 100. */
  readonly leaderConnectDelayMs?: Millis;
  /**
   * How long at most an observer that has lost its leader waits before it looks for another (`zookeeper.observer.election.DelayMs`); how long is
   * a matter of chance. Default: 0.
   */
  readonly observerElectionDelayMs?: Millis;
  readonly election?: Pick<ElectionOptions, 'minNotificationIntervalMs' | 'maxNotificationIntervalMs'>;
}

type Role =
  /** The disk is at work on something that has to be there before this server says in an election how far it is. */
  | { readonly kind: 'settling'; fromMs: Millis | undefined }
  | { readonly kind: 'looking' }
  | { readonly kind: 'dialling'; readonly dialling: Dialling }
  | { readonly kind: 'leading'; readonly leader: Leader; readonly synchroniser: Synchroniser }
  | { readonly kind: 'learning'; readonly learner: Learner; readonly channel: ChannelId; readonly dialling: Dialling };

/** What a znode in a snapshot takes besides its data, at most: path and Stat, or the entries of an ACL. */
const snapshotItemExtraBytes = 1024 * 1024;

const leaderConnectDelayMsDefault = 100;

/** For how many times initLimit a leader that does not answer is not voted for, if no new connection with it comes about. */
const unansweringInitLimits = 3;

export class Peer {
  readonly #options: PeerOptions;
  readonly #out: PeerOut;
  readonly #disk: DiskState;
  readonly #random: Random;
  /** Of this process: see `LearnerInfo`. */
  readonly #incarnation: number;
  readonly #observer: Observer;
  readonly #view: PacketView;
  readonly #election: FastLeaderElection;
  readonly #config: Configuration;
  readonly #replicaOptions: ReplicaOptions;
  /** Znodes visited in one step. */
  readonly #visitsMax: number;
  #replica: Replica;
  readonly #committedLog: CommittedLog;
  /** Every txn of the log behind this one has been applied by this server, so none is missing in between. */
  #wholeFrom: Zxid;
  #role: Role = { kind: 'settling', fromMs: undefined };
  readonly #attempts: Attempts;
  /** For the observer only. */
  #lookingSinceMs: Millis = 0;
  #memory: { readonly state: MemoryState; readonly watchesMayGrow: boolean } = { state: 'ample', watchesMayGrow: true };
  readonly inspect: Inspect;
  /** Everything that had arrived by then has been heard. */
  #heardMs: Millis = -Infinity;
  /** See `LearnerStart`. */
  #snapshotIn = 0;
  /** The snapshot that is coming from the leader. */
  #loading: { readonly loader: SnapshotLoader; readonly zxid: Zxid } | undefined;

  constructor(
    options: PeerOptions,
    config: ElectionConfig,
    recovered: Recovered,
    view: PacketView,
    out: PeerOut,
    random: Random,
    observer: Observer,
    now: Now,
  ) {
    this.#options = options;
    this.#config = new Configuration(config, options.core.reconfigEnabled);
    this.#out = out;
    this.#disk = new DiskState(recovered, out);
    this.#attempts = new Attempts(options.zab);
    this.#random = random;
    this.#incarnation = incarnationOf(random.uint32(), random.uint32());
    this.#observer = observer;
    this.#view = view;
    this.#visitsMax = new StepBudget(options.core.turnUnits).visits;
    this.#replicaOptions = replicaOptions(options.core, random);
    this.#replica = recovered.replica;
    this.#committedLog = recovered.committedLog;
    this.#wholeFrom = recovered.snapshotZxid;
    const { core, zab, role, election } = options;
    const atRest = new RestingInspection(core.tickTimeMs, out);
    this.inspect = new PeerInspection(
      () => this.#front?.inspect ?? atRest.of(this.#replica),
      () => this.#place(),
    );
    const electionOptions = { ...election, sid: zab.sid, role, reconfigEnabled: core.reconfigEnabled };
    this.#election = new FastLeaderElection(electionOptions, config, {
      notify: (to, notification) => out.notify(to, notification),
      configSeen: (_from, heard) => this.#config.hear(heard),
    });
    this.#takeKeptConfig(now);
    this.#config.keepIn(this.#replica.tree);
    this.#look(now);
  }

  // ---- what others may ask

  get role(): 'looking' | 'leading' | 'learning' {
    const { kind } = this.#role;
    return kind === 'leading' || kind === 'learning' ? kind : 'looking';
  }

  /** What orders, forwards and applies; undefined while nobody is served. */
  get server(): Server | undefined {
    if (this.#role.kind === 'leading') return this.#role.leader.server;
    return this.#role.kind === 'learning' ? this.#role.learner.server : undefined;
  }

  /** What clients of this server speak to: nobody at a leader that leaves them to its learners. */
  get #front(): Server | undefined {
    return this.#role.kind === 'leading' && this.#options.leaderServes === false ? undefined : this.server;
  }

  get replica(): Replica {
    return this.#replica;
  }

  /** A long job is under way: frames given now would only be copied and wait. */
  get busy(): boolean {
    return this.server?.busy ?? false;
  }

  get busyWith(): CnxnId | undefined {
    return this.server?.busyWith;
  }

  /** See `Server.work`. What serves anew counts anew. */
  get work(): number {
    return this.server?.work ?? 0;
  }

  /** See `Server.wantsInput`. Whoever is not served is not kept waiting: it is being closed. */
  wantsInput(id: CnxnId): boolean {
    return this.server?.wantsInput(id) ?? true;
  }

  get idleTreeBytes(): number {
    return this.#replica.tree.idleBytes;
  }

  get returnedTreeBytes(): number {
    return this.#replica.tree.returnedBytes;
  }

  get watchBytes(): number {
    return this.server?.watchBytes ?? 0;
  }

  /** Whether a snapshot can be begun: the state is that of a txn's end, and stays what it is. */
  get canSnapshot(): boolean {
    return !this.busy && !this.#disk.isAtWork;
  }

  /** A snapshot of this moment, to be written in slices. See `SnapshotSource` for `writeLastZxid`. */
  snapshot(writeLastZxid = true): SnapshotSource {
    return this.#replica.snapshot(writeLastZxid);
  }

  /** How memory is; see `MemoryLimits`. */
  memory(state: MemoryState, watchesMayGrow: boolean): void {
    this.#memory = { state, watchesMayGrow };
    this.server?.memory(state, watchesMayGrow);
  }

  /** See `Server.expireSession`. Returns false as well while nobody is served. */
  expireSession(session: SessionId, now: Now): boolean {
    return this.server?.expireSession(session, now) ?? false;
  }

  get lastLogged(): Zxid {
    return this.#disk.logged;
  }

  /** The epoch that this server has acknowledged, or that it leads; undefined while it is part of none. */
  get epoch(): number | undefined {
    if (this.#role.kind === 'leading') return this.#role.leader.server === undefined ? undefined : this.#role.leader.epoch;
    return this.#role.kind === 'learning' ? this.#role.learner.epoch : undefined;
  }

  // ---- clients

  connect(cnxn: CnxnId, context: CnxnContext, now: Now): void {
    if (this.#front === undefined) this.#out.close(cnxn, 'not serving');
    else this.#front.connect(cnxn, context, now);
  }

  frame(cnxn: CnxnId, reader: Reader, now: Now, arrivedMs?: Millis): void {
    this.server?.frame(cnxn, reader, now, arrivedMs);
  }

  heard(cnxn: CnxnId, now: Now): void {
    this.server?.heard(cnxn, now);
  }

  handshakeHeard(reader: Reader, now: Now): void {
    this.server?.handshakeHeard(reader, now);
  }

  lastFrame(cnxn: CnxnId, reader: Reader, now: Now, arrivedMs?: Millis): void {
    this.server?.lastFrame(cnxn, reader, now, arrivedMs);
  }

  disconnected(cnxn: CnxnId, now: Now): void {
    this.server?.disconnected(cnxn, now);
  }

  drained(cnxn: CnxnId, now: Now): void {
    this.server?.drained(cnxn, now);
  }

  authenticated(ticket: AuthTicket, verdict: AuthVerdict, now: Now): void {
    this.server?.authenticated(ticket, verdict, now);
  }

  // ---- the election port

  notified(from: Sid, notification: Notification, now: Now): void {
    this.#election.notified(from, notification, now);
    if (this.#role.kind === 'leading' && notification.state === 'looking') this.#role.leader.voterLooks(from, now);
    if (this.#config.maybeAdoptHeard()) this.#configAdopted(now);
    this.#whereaboutsChanged();
    this.#goOn(now);
  }

  unreachable(sid: Sid, now: Now): void {
    this.#election.unreachable(sid, now);
    this.#whereaboutsChanged();
    this.#goOn(now);
  }

  reachable(sid: Sid): void {
    this.#election.reachable(sid);
  }

  // ---- the learner port

  /** Somebody has connected to this server's learner port, which listens while it leads; this may be over by now. */
  accepted(channel: ChannelId, now: Now): void {
    if (this.#role.kind === 'leading') this.#role.leader.connected(channel, now);
    else this.#out.closeChannel(channel, 'this server does not lead');
  }

  /** Whether the oracle of an ensemble of two lets this server go on without the other; see `OracleQuorum`. Of no effect on others. */
  oracleSaid(mayGoAlone: boolean, now: Now): void {
    if (!this.#config.oracleSaid(mayGoAlone)) return;
    this.#election.reconfigure(this.#config.active, now);
    if (this.#role.kind === 'leading') this.#role.leader.quorumChanged(now);
    this.#goOn(now);
  }

  /** Learners cannot reach this server, so it must not lead. */
  standDown(reason: string, now: Now): void {
    if (this.#role.kind === 'leading') this.#role.leader.standDown(reason);
    this.#goOn(now);
  }

  dialled(channel: ChannelId, now: Now): void {
    const role = this.#role;
    if (role.kind !== 'dialling') {
      this.#out.closeChannel(channel, 'the leader is no longer wanted');
      return;
    }
    const start = {
      role: this.#options.role === 'observer' ? ('observer' as const) : ('follower' as const),
      ...this.#disk.found,
      snapshotIn: this.#snapshotIn,
      configVersion: this.#config.version,
      incarnation: this.#incarnation,
      leader: role.dialling.leader,
    };
    const host = {
      apply: (sent: SentTxn, then: Now) => this.#apply(sent, then),
      beginSnapshot: (zxid: Zxid) => {
        const itemBytesMax = this.#options.core.juteMaxBuffer + this.#options.core.juteMaxBufferExtra + snapshotItemExtraBytes;
        this.#loading = { loader: new SnapshotLoader(this.#replicaOptions, { itemBytesMax }), zxid };
      },
      serve: (epoch: number, link: Learner, then: Now) => this.#serveAsLearner(epoch, start.role, link, then),
      historySent: () => this.#replica.becomesExact(),
      configSeen: (text: string) => this.#config.check(text),
      configActivated: (text: string, then: Now) => this.#maybeAdopt(text, then),
      committed: ({ zxid, entry }: LoggedTxn) => void this.#committedLog.append(zxid, entry),
    };
    this.#role = {
      kind: 'learning',
      learner: new Learner(this.#options.zab, start, channel, this.#view, this.#disk.out, host, now),
      channel,
      dialling: role.dialling,
    };
  }

  dialFailed(outcome: TryOutcome, now: Now): void {
    if (this.#role.kind !== 'dialling') return;
    this.#role.dialling.failed(outcome, now);
    this.#whereaboutsChanged();
    this.#goOn(now);
  }

  /** A packet of the leader, or of a learner. */
  packet(channel: ChannelId, packet: PacketView, now: Now): void {
    const role = this.#role;
    if (role.kind === 'leading') role.leader.packet(channel, packet, now);
    else if (role.kind === 'learning' && role.channel === channel) role.learner.packet(packet, now);
    this.#goOn(now);
  }

  /** What comes next over this stream is a snapshot, and goes to `snapshotBytes`. */
  isLoading(channel: ChannelId): boolean {
    return this.#loading !== undefined && this.#role.kind === 'learning' && this.#role.channel === channel;
  }

  /**
   * Takes the next bytes of the snapshot, and returns how many of them belong to it. Throws a `ProtocolError` for what is no snapshot; the
   * stream is to be closed then.
   */
  snapshotBytes(channel: ChannelId, bytes: Buffer, now: Now): number {
    if (!this.isLoading(channel) || this.#role.kind !== 'learning') return 0;
    const { loader, zxid } = this.#loading!;
    const wasComplete = loader.isComplete;
    const taken = wasComplete ? 1 : loader.feed(bytes);
    this.#role.learner.heard(now);
    if (!loader.isComplete) return taken;
    // The last byte is left with the caller, who offers it again in a turn to come: so nothing after the snapshot is taken before the tree is whole.
    if (!loader.finishSome(this.#visitsMax)) {
      this.#observer.stepEnded('sync');
      return taken - 1;
    }
    this.#loading = undefined;
    this.#replica = new Replica(this.#replicaOptions, { snapshot: loader.finish(), zxid, comparesDigests: 'when told' });
    this.#committedLog.clear();
    this.#wholeFrom = zxid;
    // What the leader goes by is in the snapshot; which of its configurations this server goes by is another matter (ZOOKEEPER-2819).
    this.#config.keepIn(this.#replica.tree);
    this.#role.learner.snapshotLoaded(now);
    return taken;
  }

  /** Bytes go over a stream: part of a packet has come, or something of what waits has been taken. */
  channelMoves(channel: ChannelId, now: Now): void {
    const role = this.#role;
    if (role.kind === 'leading') role.leader.moves(channel, now);
    else if (role.kind === 'learning' && role.channel === channel) role.learner.heard(now);
  }

  /** Who is at the other end of a stream. */
  channelRank(channel: ChannelId): ChannelRank {
    return this.#role.kind === 'leading' ? this.#role.leader.rankOf(channel) : ChannelRank.voter;
  }

  /** There is room again in the output of a channel that was said to be full. */
  channelDrained(_channel: ChannelId, now: Now): void {
    this.#goOnWorking(now);
  }

  channelGone(channel: ChannelId, now: Now): void {
    const role = this.#role;
    if (role.kind === 'leading') {
      role.leader.gone(channel);
      this.#whereaboutsChanged();
    } else if (role.kind === 'learning' && role.channel === channel) role.learner.gone(now);
    this.#goOn(now);
  }

  // ---- the disk

  appended(zxid: Zxid, now: Now): void {
    this.#disk.appended(zxid);
    this.#observer.logged(zxid);
    if (this.#role.kind === 'leading') this.#role.leader.appended(zxid, now);
    else if (this.#role.kind === 'learning') this.#role.learner.appended(zxid);
    this.#goOn(now);
  }

  epochSaved(name: EpochName, epoch: number, now: Now): void {
    this.#disk.epochSaved(name, epoch);
    if (this.#role.kind === 'leading') {
      this.#role.leader.epochSaved(name, now);
    } else if (this.#role.kind === 'learning') {
      this.#role.learner.epochSaved(name, now);
      if (name === 'currentEpoch') this.#election.updateVote(epoch);
    }
    this.#goOn(now);
  }

  /** The log ends with `lastZxid`, and `replica` is the state that it leads to. */
  truncated(replica: Replica, lastZxid: Zxid, now: Now): void {
    this.#disk.replaced(lastZxid);
    this.#replica = replica;
    this.#config.keepIn(this.#replica.tree);
    this.#committedLog.truncate(lastZxid);
    this.#observer.historyReplaced('trunc', lastZxid);
    if (this.#role.kind === 'learning') this.#role.learner.truncated(lastZxid, now);
    this.#goOn(now);
  }

  /** The log could not be cut, and is as it was. */
  truncationRefused(now: Now): void {
    this.#disk.truncationRefused();
    if (this.#role.kind === 'learning') this.#role.learner.truncationRefused();
    this.#goOn(now);
  }

  /** The folder holds the state as of `zxid`, and nothing else. */
  installed(zxid: Zxid, now: Now): void {
    this.#disk.replaced(zxid);
    this.#observer.historyReplaced('snap', zxid);
    if (this.#role.kind === 'learning') this.#role.learner.installed(now);
    this.#goOn(now);
  }

  /** The log that was asked for with `readLog` is more than is worth sending. */
  logRefused(channel: ChannelId, now: Now): void {
    if (this.#role.kind === 'leading') this.#role.synchroniser.logRefused(channel);
    this.#goOnWorking(now);
  }

  /** Txns of the log that was asked for with `readLog`, in order; `isEnd` when there are no more. */
  logRead(channel: ChannelId, entries: readonly LogEntry[], isEnd: boolean): void {
    if (this.#role.kind === 'leading') this.#role.synchroniser.logRead(channel, entries, isEnd, this.#role.leader.committed);
  }

  // ---- time

  /**
   * Input: nothing was done for longer than a tick, so that input may wait. Whoever has been given up by the others meanwhile serves nobody any more,
   * before any of it is taken.
   */
  stoodStill(now: Now): void {
    const role = this.#role;
    if (role.kind === 'leading') role.leader.stoodStill(now);
    else if (role.kind === 'learning') role.learner.wake(now);
    this.#goOn(now);
  }

  /** See `Server.wake` for `heardMs`. */
  wake(now: Now, heardMs: Millis = now.elapsedMs): void {
    this.#heardMs = heardMs;
    this.#goOnWorking(now);
  }

  #goOnWorking(now: Now): void {
    const heardMs = this.#heardMs;
    const role = this.#role;
    if (role.kind === 'leading') {
      role.leader.wake(now, heardMs);
      role.synchroniser.wake(this.#isBusy, now.elapsedMs);
    } else if (role.kind === 'learning') role.learner.wake(now);
    else if (role.kind === 'looking') this.#election.wake(now);
    else if (role.kind === 'dialling') role.dialling.wake(now);
    this.server?.wake(now, heardMs);
    this.#goOn(now);
  }

  deadline(): Millis | undefined {
    const role = this.#role;
    const server = this.server?.deadline();
    switch (role.kind) {
      case 'leading':
        return role.synchroniser.wants(this.#isBusy) ? 0 : earliest(role.leader.deadline(), server);
      case 'learning':
        return earliest(role.learner.deadline(), server);
      case 'looking':
        return this.#election.deadline();
      case 'dialling':
        return role.dialling.deadline();
      case 'settling':
        return role.fromMs;
      default:
        return role satisfies never;
    }
  }

  #place(): EnsembleInspect {
    const role = this.#role;
    const { sid } = this.#options.zab;
    const { verifier, text: configText } = this.#config.active;
    const learns = this.#options.role === 'observer' ? ('observing' as const) : ('following' as const);
    const shared = { sid, voterCount: verifier.voters.length, configText, syncMode: undefined, leading: undefined };
    switch (role.kind) {
      case 'leading': {
        const { leader } = role;
        const leading = leader.server === undefined ? undefined : leader.inspect();
        return { ...shared, state: 'leading', phase: leader.phase, leader: sid, leading };
      }
      case 'learning':
        return { ...shared, state: learns, phase: role.learner.phase, syncMode: role.learner.syncMode, leader: role.dialling.leader };
      case 'dialling':
        return { ...shared, state: learns, phase: 'discovery', leader: role.dialling.leader };
      case 'settling':
      case 'looking':
        return { ...shared, state: 'looking', phase: 'election', leader: undefined };
      default:
        return role satisfies never;
    }
  }

  get #isBusy(): boolean {
    return this.server?.busy ?? false;
  }

  /**
   * Everything that can influence behaviour, for an explorer. Throws an `Error` where there is something that cannot be written down: what
   * `Server` and `Synchroniser` say, and a snapshot that has been loaded in part.
   */
  fingerprint(to: Fingerprint, now: Now): void {
    if (this.#loading !== undefined) throw new Error('a snapshot that has been loaded in part has no fingerprint');
    this.#disk.fingerprint(to);
    to.number(this.#wholeFrom);
    to.number(this.#snapshotIn);
    to.text(`${this.#memory.state} ${this.#memory.watchesMayGrow}`);
    this.#replica.fingerprint(to);
    this.#committedLog.fingerprint(to);
    this.#config.fingerprint(to);
    this.#election.fingerprint(to, now);
    this.#attempts.fingerprint(to);
    const role = this.#role;
    to.text(role.kind);
    if (role.kind === 'settling') {
      to.number(distance(role.fromMs, now.elapsedMs));
    } else if (role.kind === 'dialling') {
      role.dialling.fingerprint(to, now);
    } else if (role.kind === 'leading') {
      role.leader.fingerprint(to, now);
      role.synchroniser.fingerprint(to);
    } else if (role.kind === 'learning') {
      role.learner.fingerprint(to, now);
      if (role.learner.isUnanswered) role.dialling.fingerprint(to, now);
    }
    this.server?.fingerprint(to, now);
  }

  // ---- from role to role

  /** Whatever has come to its end is followed by what comes next. */
  #goOn(now: Now): void {
    const role = this.#role;
    if (role.kind === 'leading' && role.leader.over !== undefined) {
      role.synchroniser.end();
      if (role.leader.server === undefined) this.#failedWith(this.#options.zab.sid, now);
      role.leader.end(now);
      this.#observer.roleEnded(role.leader.over);
      this.#look(now);
    } else if (role.kind === 'learning' && role.learner.over !== undefined) {
      this.#loading = undefined;
      const { snapshotIn, wasInStep, over, failedTry } = role.learner;
      const { dialling } = role;
      role.learner.end(now);
      if (failedTry !== undefined) {
        dialling.failed(failedTry, now);
        this.#role = { kind: 'dialling', dialling };
        this.#whereaboutsChanged();
        this.#goOn(now);
        return;
      }
      this.#snapshotIn = 0;
      if (!wasInStep && snapshotIn === undefined) this.#failedWith(dialling.leader, now);
      this.#observer.roleEnded(over);
      if (snapshotIn === undefined) {
        this.#look(now);
      } else {
        // At once, and to the same leader, which does not wait for ever: an election could find nobody else.
        this.#snapshotIn = snapshotIn;
        this.#follow(dialling.leader, now);
      }
    } else if (role.kind === 'dialling' && role.dialling.over) {
      // The next leader may be dialled only after a while. A stream to this one, come by then, would be taken for a stream to that.
      const { leader, unanswered } = role.dialling;
      this.#out.dialNobody();
      this.#failedWith(leader, now, !unanswered);
      if (unanswered) {
        const { initLimitTicks, tickTimeMs } = this.#options.zab;
        this.#election.unanswering(leader, now.elapsedMs + unansweringInitLimits * initLimitTicks * tickTimeMs);
        this.#out.reconnect(leader);
      }
      this.#look(now);
    } else if (role.kind === 'settling') {
      this.#maybeStartElection(now);
    } else if (role.kind === 'looking' && this.#election.decided !== undefined) {
      const { state, vote } = this.#election.decided;
      this.#observer.elected(vote.leader, now.elapsedMs - this.#lookingSinceMs);
      if (state === 'leading') this.#lead(now);
      else this.#follow(vote.leader, now);
    }
  }

  /** Others may have gone on without this server, if it leads, or the leader that it is about to follow. */
  #whereaboutsChanged(): void {
    const role = this.#role;
    if (role.kind === 'leading') {
      role.leader.maybeMakeWay(this.#election.lost);
    } else if (role.kind === 'dialling') {
      if (this.#election.isLeaderDeaf) role.dialling.leaderIsDeaf();
      else if (this.#election.isLeaderGone) role.dialling.abandon();
    } else if (role.kind === 'learning' && role.learner.isUnanswered && this.#election.isLeaderDeaf) {
      role.learner.leaderIsDeaf();
      role.dialling.leaderIsDeaf();
    }
  }

  #failedWith(leader: Sid, now: Now, wasRefused = false): void {
    const shunnedMs = this.#attempts.failedWith(leader, now, wasRefused);
    if (shunnedMs > 0) this.#election.shun(leader, now.elapsedMs + shunnedMs);
  }

  #inStep(): void {
    this.#attempts.succeeded();
    this.#election.forgive();
  }

  #look(now: Now): void {
    const pauseMs = this.#pauseMs();
    this.#role = { kind: 'settling', fromMs: pauseMs === 0 ? undefined : now.elapsedMs + pauseMs };
    this.#lookingSinceMs = now.elapsedMs;
    this.#observer.roleChanged('looking');
    this.#maybeStartElection(now);
  }

  /** Many observers that lose one leader must not all come to the next at once. Those that vote do not wait. */
  #pauseMs(): Millis {
    const mostMs = this.#options.observerElectionDelayMs ?? 0;
    const waits = mostMs > 0 && this.#options.role === 'observer' && this.#role.kind === 'learning';
    return waits ? this.#random.uint32() % mostMs : 0;
  }

  #maybeStartElection(now: Now): void {
    const role = this.#role;
    if (role.kind === 'settling' && role.fromMs !== undefined) {
      if (now.elapsedMs < role.fromMs) return;
      role.fromMs = undefined;
    }
    if (!this.#disk.isSettled) return;
    this.#takeKeptConfig(now);
    this.#role = { kind: 'looking' };
    const { lastZxid, currentEpoch } = this.#disk.found;
    this.#election.start(lastZxid, currentEpoch, now);
    this.#goOn(now);
  }

  #lead(now: Now): void {
    const { forceSnapshotSync, tickTimeMs, snapSyncsMax = snapSyncsMaxDefault, diffSyncsMax = diffSyncsMaxDefault } = this.#options.zab;
    const syncOptions: SynchroniserOptions = {
      tickTimeMs,
      forceSnapshotSync,
      snapSyncsMax,
      diffSyncsMax,
      snapshotSliceBytes: new StepBudget(this.#options.core.turnUnits).snapshotBytes,
      logBytesMax: () => this.#out.logBytesMax(),
      wholeFrom: this.#wholeFrom,
      stepEnded: () => this.#observer.stepEnded('sync'),
      limitMet: (limit) => this.#observer.limitMet(limit),
      begun: (by, from, snapshots, isBehind) => this.#observer.learnerSynchronised(by, from, snapshots, isBehind),
    };
    const synchroniser = new Synchroniser(syncOptions, this.#replica, this.#committedLog, this.#out);
    const leader: Leader = new Leader(
      this.#options.zab,
      this.#config.active.verifier,
      this.#disk.found,
      this.#disk.out,
      {
        serve: (epoch, then) => this.#serveAsLeader(leader, epoch, then),
        synchronise: (learner, leaderLast) => synchroniser.add(learner, leaderLast),
        forget: (channel) => synchroniser.remove(channel),
        followed: (isFollowed) => {
          if (this.#config.followed(isFollowed)) this.#out.askOracle?.();
        },
        configVersion: () => this.#config.version,
        isMember: (sid) => this.#config.has(sid),
        newLeaderConfig: (epoch) => this.#config.proposedBy(epoch),
        committed: (zxid, entry) => void this.#committedLog.append(zxid, entry, Math.min(this.#replica.lastZxid, this.#disk.durable)),
      },
      now,
    );
    this.#attempts.begin(now);
    this.#role = { kind: 'leading', leader, synchroniser };
  }

  #follow(leader: Sid, now: Now): void {
    this.#attempts.begin(now);
    const options = {
      zab: this.#options.zab,
      delayMsMax: this.#options.leaderConnectDelayMs ?? leaderConnectDelayMsDefault,
      pauseMs: this.#attempts.pauseMsBefore(leader),
    };
    this.#role = { kind: 'dialling', dialling: new Dialling(leader, options, (sid) => this.#out.dialLeader(sid), now) };
  }

  // ---- serving

  #serveAsLeader(leader: Leader, epoch: number, now: Now): Server {
    this.#inStep();
    this.#election.updateVote(epoch);
    this.#begin(epoch);
    this.#maybeAdopt(this.#config.proposedBy(epoch), now);
    const out: Out = {
      reply: (cnxn) => this.#out.reply(cnxn),
      isFull: (cnxn) => this.#out.isFull(cnxn),
      close: (cnxn, reason) => this.#out.close(cnxn, reason),
      append: (zxid, bytes, start, end, owner) => leader.propose(zxid, bytes, start, end, owner),
    };
    return this.#newServer(out, now, (parts, then) => new Authority(parts, then, leader), false);
  }

  #serveAsLearner(epoch: number, role: 'follower' | 'observer', link: Learner, now: Now): { server: Server; forwarding: Forwarding } {
    this.#inStep();
    this.#begin(epoch);
    let forwarding!: Forwarding;
    const server = this.#newServer(this.#out, now, (parts) => (forwarding = new Forwarding(role, link, parts)), true);
    return { server, forwarding };
  }

  #newServer(out: Out, now: Now, orderOf: (parts: OrderParts, now: Now) => Order, notesTouches: boolean): Server {
    // No server carries out a reconfig, so each answers it as where it is switched off, also where `reconfigEnabled` lets servers exchange
    // the version of their configuration.
    const options = { ...this.#options.core, reconfigEnabled: false };
    const server = new Server(options, out, this.#random, this.#observer, now, this.#replica, orderOf, notesTouches);
    server.memory(this.#memory.state, this.#memory.watchesMayGrow);
    return server;
  }

  #apply({ header, txn, digest }: SentTxn, now: Now): void {
    const job = this.#replica.apply(header, txn, digest);
    // Nobody is served by this server yet.
    if (job !== undefined) while (job.next(now).done !== true);
  }

  /** `text` is in force, or this server has only heard of it and is late. */
  #maybeAdopt(text: string, now: Now): void {
    if (this.#config.maybeAdopt(text)) this.#configAdopted(now);
  }

  #takeKeptConfig(now: Now): void {
    if (this.#config.maybeAdoptKept(this.#replica.tree)) this.#configAdopted(now);
  }

  #configAdopted(now: Now): void {
    this.#config.keepIn(this.#replica.tree);
    this.#election.reconfigure(this.#config.active, now);
  }

  /** The first zxid of an epoch is that of no txn: it says that everything of the epochs before is here. */
  #begin(epoch: number): void {
    this.#observer.epochBegun(epoch, this.#replica.lastZxid);
    this.#replica.lastZxid = Math.max(this.#replica.lastZxid, makeZxid(epoch, 0));
  }
}
