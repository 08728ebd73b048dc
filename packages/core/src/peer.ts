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
  formatQuorumConfig,
  makeZxid,
  type Millis,
  type Notification,
  type PacketView,
  type Reader,
  type SessionId,
  type Sid,
  systemPath,
  type Zxid,
} from '@tskeeper/protocol';
import type { SnapshotSource } from './snapshot/snapshot-source.ts';
import type { AuthTicket, AuthVerdict } from './auth/auth-provider.ts';
import type { CnxnContext } from './cnxn/cnxn-context.ts';
import { CnxnTable } from './cnxn/cnxn-table.ts';
import { Configuration } from './quorum/configuration.ts';
import { type ElectionConfig, type ElectionOptions, type ElectionOut, FastLeaderElection } from './election/fast-leader-election.ts';
import { distance, type Fingerprint, writeBytes } from './fingerprint.ts';
import type { EnsembleInspect, Inspect } from './inspect.ts';
import { Inspection } from './inspection.ts';
import type { Now } from './now.ts';
import type { Observer } from './observer.ts';
import type { CoreOptions } from './options.ts';
import type { CnxnId, Out } from './out.ts';
import type { Random } from './random.ts';
import { OracleQuorum } from './quorum/oracle-quorum.ts';
import { Authority, earliest, type OrderParts } from './request/authority.ts';
import { Forwarding, type SentTxn } from './request/forwarding.ts';
import type { Order } from './request/order.ts';
import { Replica, replicaOptions, type ReplicaOptions } from './request/replica.ts';
import { Load } from './request/load.ts';
import type { MemoryState } from './request/memory-limits.ts';
import { Server } from './server.ts';
import { SessionTracker } from './session/session-tracker.ts';
import { WatchTable } from './tree/watch-table.ts';
import { PeerInspection } from './peer-inspection.ts';
import { SnapshotLoader } from './snapshot/snapshot-loader.ts';
import type { CommittedLog } from './zab/committed-log.ts';
import { Leader } from './zab/leader.ts';
import { Learner, type LearnerOut, type LoggedTxn } from './zab/learner.ts';
import { type LogEntry, Synchroniser, type SynchroniserOptions, type SynchroniserOut } from './zab/synchroniser.ts';
import type { ZabOptions } from './zab/zab-options.ts';
import type { ChannelId, EpochName } from './zab/zab-out.ts';

/** Where a peer says what must be done, in order. It never calls back. */
export interface PeerOut extends Out, LearnerOut, Pick<ElectionOut, 'notify'>, SynchroniserOut {
  /** How many bytes of the log on disk are cheaper to send to a learner than a snapshot; undefined when it is not to be read. See `logBytesMax`. */
  logBytesMax(): number | undefined;
  /** Connects to the learner port of another server. It completes as `dialled`, or as `dialFailed`. One dial at a time. */
  dialLeader(sid: Sid): void;
  /** Reads at once what the oracle says, which completes as `oracleSaid`. It is read now and then besides. Without an oracle there is no need. */
  askOracle?(): void;
}

/** What a start has found in the data folder. */
export interface Recovered {
  readonly replica: Replica;
  /** The last txn of the log, all of which has been applied. */
  readonly lastZxid: Zxid;
  readonly acceptedEpoch: number;
  readonly currentEpoch: number;
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
  | { readonly kind: 'dialling'; readonly leader: Sid; readonly untilMs: Millis; tries: number; retryMs: Millis | undefined }
  | { readonly kind: 'leading'; readonly leader: Leader; readonly synchroniser: Synchroniser }
  | { readonly kind: 'learning'; readonly learner: Learner; readonly channel: ChannelId; readonly leader: Sid };

/** What a znode in a snapshot takes besides its data, at most: path and Stat, or the entries of an ACL. */
const snapshotItemExtraBytes = 1024 * 1024;

/**
 * How often, and how long apart at most unless told otherwise, a learner tries to reach its leader. It may have to notice first that it leads, and
 * listens from then on; that is a matter of a few milliseconds, so the first tries come one shortly after the other. All of them take as long as
 * the five of ZooKeeper.
 */
const dialTriesMax = 8;
const dialPauseMs = 10;
const leaderConnectDelayMsDefault = 100;

/** So many learners may come before this server knows that it leads; there are few, and what else connects is not to take their room for ever. */
const earlyLearnersMax = 100;

export class Peer {
  readonly #options: PeerOptions;
  readonly #out: PeerOut;
  /** The same, for leader and learner: what they send to the log is noted. */
  readonly #zabOut: LearnerOut;
  readonly #random: Random;
  readonly #observer: Observer;
  readonly #view: PacketView;
  readonly #election: FastLeaderElection;
  readonly #config: Configuration;
  /** What others have said that they go by, while this server was looking. */
  #configHeard: string | undefined;
  readonly #replicaOptions: ReplicaOptions;
  #replica: Replica;
  readonly #committedLog: CommittedLog;
  /** Every txn of the log behind this one has been applied by this server, so none is missing in between. */
  #wholeFrom: Zxid;
  #acceptedEpoch: number;
  #currentEpoch: number;
  /** The last txn that was sent to the log, and the last that is durable. */
  #logged: Zxid;
  #durable: Zxid;
  #role: Role = { kind: 'settling', fromMs: undefined };
  /** Leaders, this server included, with whom nothing came of it, since it was in step last: how often, a long attempt counting double. */
  readonly #inVain = new Map<Sid, number>();
  /** When this server began to lead or to follow. */
  #attemptSinceMs: Millis = 0;
  /** For the observer only. */
  #lookingSinceMs: Millis = 0;
  #memory: { readonly state: MemoryState; readonly watchesMayGrow: boolean } = { state: 'ample', watchesMayGrow: true };
  readonly inspect: Inspect;
  /** What is told while nobody is served: its empty tables are large, and whoever waits for a leader asks often. */
  #rest: { readonly replica: Replica; readonly inspect: Inspect } | undefined;
  /** Epoch files, TRUNC or a snapshot: what the disk has been asked for and has not done yet. */
  #diskWork = 0;
  /**
   * Learners that have found their leader in this server before it has: their elections were over a moment earlier. They wait, with the packet
   * that they began with. To turn them away would make them look again, in a new round, which begins this server's own settling wait anew:
   * when they settle early and it does not, that could go on for ever.
   */
  readonly #early = new Map<ChannelId, Buffer | undefined>();
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
    this.#zabOut = {
      packets: (channel) => out.packets(channel),
      closeChannel: (channel, reason) => out.closeChannel(channel, reason),
      append: (zxid, bytes, from, to) => {
        this.#logged = zxid;
        out.append(zxid, bytes, from, to);
      },
      saveEpoch: (name, epoch) => {
        this.#diskWork++;
        out.saveEpoch(name, epoch);
      },
      truncate: (zxid) => {
        this.#diskWork++;
        out.truncate(zxid);
      },
      installSnapshot: (zxid) => {
        this.#diskWork++;
        out.installSnapshot(zxid);
      },
    };
    this.#random = random;
    this.#observer = observer;
    this.#view = view;
    this.#replicaOptions = replicaOptions(options.core, random);
    this.#replica = recovered.replica;
    this.#committedLog = recovered.committedLog;
    this.#wholeFrom = recovered.snapshotZxid;
    this.#acceptedEpoch = recovered.acceptedEpoch;
    this.#currentEpoch = recovered.currentEpoch;
    this.#logged = this.#durable = recovered.lastZxid;
    this.inspect = new PeerInspection(
      () => this.#front?.inspect ?? this.#atRest(),
      () => this.#place(),
    );
    const { core, zab, role, election } = options;
    const electionOptions = { ...election, sid: zab.sid, role, reconfigEnabled: core.reconfigEnabled };
    this.#election = new FastLeaderElection(electionOptions, config, {
      notify: (to, notification) => out.notify(to, notification),
      configSeen: (_from, heard) => (this.#configHeard = formatQuorumConfig(heard)),
    });
    this.#takeKeptConfig(now);
    this.#keepConfig();
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

  /** Whether a snapshot can be begun: none is being taken, for a file or for a learner, and the state is that of a txn's end. */
  get canSnapshot(): boolean {
    return !this.busy && !this.#replica.tree.isBeingWritten && this.#diskWork === 0;
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
    return this.#logged;
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

  frame(cnxn: CnxnId, reader: Reader, now: Now): void {
    this.server?.frame(cnxn, reader, now);
  }

  lastFrame(cnxn: CnxnId, reader: Reader, now: Now): void {
    this.server?.lastFrame(cnxn, reader, now);
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
    const heard = this.#configHeard;
    this.#configHeard = undefined;
    if (heard !== undefined) this.#maybeAdopt(heard, now);
    this.#maybeMakeWay();
    this.#goOn(now);
  }

  unreachable(sid: Sid, now: Now): void {
    this.#election.unreachable(sid, now);
    this.#maybeMakeWay();
    this.#goOn(now);
  }

  reachable(sid: Sid): void {
    this.#election.reachable(sid);
  }

  // ---- the learner port

  /** Somebody has connected to this server's learner port. */
  accepted(channel: ChannelId, now: Now): void {
    const { kind } = this.#role;
    if (this.#role.kind === 'leading') this.#role.leader.connected(channel, now);
    else if ((kind === 'looking' || kind === 'settling') && this.#early.size < earlyLearnersMax) this.#early.set(channel, undefined);
    else this.#out.closeChannel(channel, 'this server does not lead');
  }

  /** Whether the oracle of an ensemble of two lets this server go on without the other; see `OracleQuorum`. Of no effect on others. */
  oracleSaid(mayGoAlone: boolean, now: Now): void {
    const { verifier } = this.#config.active;
    if (!(verifier instanceof OracleQuorum)) return;
    verifier.oracleSaid(mayGoAlone);
    this.#election.reconfigure(this.#config.active, now);
    if (this.#role.kind === 'leading') this.#role.leader.quorumChanged(now);
    this.#goOn(now);
  }

  /** What the oracle said when it had no say is of no account: it is asked anew. */
  #followed(isFollowed: boolean): void {
    const { verifier } = this.#config.active;
    if (!(verifier instanceof OracleQuorum)) return;
    verifier.followed(isFollowed);
    if (isFollowed) return;
    verifier.oracleSaid(false);
    this.#out.askOracle?.();
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
      acceptedEpoch: this.#acceptedEpoch,
      currentEpoch: this.#currentEpoch,
      lastZxid: this.#logged,
      snapshotIn: this.#snapshotIn,
      configVersion: this.#config.version,
      leader: role.leader,
    };
    this.#snapshotIn = 0;
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
      learner: new Learner(this.#options.zab, start, channel, this.#view, this.#zabOut, host, now),
      channel,
      leader: role.leader,
    };
  }

  dialFailed(now: Now): void {
    if (this.#role.kind !== 'dialling') return;
    const { syncLimitTicks, tickTimeMs } = this.#options.zab;
    // Who has not answered for so long would be given up as a leader; there may be better ones.
    const isSilent = now.elapsedMs - this.#attemptSinceMs >= syncLimitTicks * tickTimeMs;
    const tries = ++this.#role.tries;
    const pauseMs = Math.min(dialPauseMs * 2 ** (tries - 1), this.#options.leaderConnectDelayMs ?? leaderConnectDelayMsDefault);
    if (isSilent || tries >= dialTriesMax) this.#leaveUnreached(this.#role.leader, now);
    else this.#role.retryMs = now.elapsedMs + pauseMs;
  }

  /** A packet of the leader, or of a learner. */
  packet(channel: ChannelId, packet: PacketView, now: Now): void {
    const role = this.#role;
    if (this.#early.has(channel)) this.#keepEarly(channel, packet);
    else if (role.kind === 'leading') role.leader.packet(channel, packet, now);
    else if (role.kind === 'learning' && role.channel === channel) role.learner.packet(packet, now);
    this.#goOn(now);
  }

  /** A learner says one thing, and waits for the answer. */
  #keepEarly(channel: ChannelId, { bytes, start, end }: PacketView): void {
    if (this.#early.get(channel) === undefined) {
      this.#early.set(channel, Buffer.from(bytes.subarray(start, end)));
    } else {
      this.#early.delete(channel);
      this.#out.closeChannel(channel, 'it has not waited for an answer');
    }
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
    const taken = loader.feed(bytes);
    this.#role.learner.heard(now);
    if (!loader.isComplete) return taken;
    this.#loading = undefined;
    this.#replica = new Replica(this.#replicaOptions, { snapshot: loader.finish(), zxid, comparesDigests: 'when told' });
    this.#committedLog.clear();
    this.#wholeFrom = zxid;
    // What the leader goes by is in the snapshot; which of its configurations this server goes by is another matter (ZOOKEEPER-2819).
    this.#keepConfig();
    this.#role.learner.snapshotLoaded(now);
    return taken;
  }

  /** Bytes go over a stream: part of a packet has come, or something of what waits has been taken. */
  channelMoves(channel: ChannelId, now: Now): void {
    const role = this.#role;
    if (role.kind === 'leading') role.leader.moves(channel, now);
    else if (role.kind === 'learning' && role.channel === channel) role.learner.heard(now);
  }

  /** There is room again in the output of a channel that was said to be full. */
  channelDrained(_channel: ChannelId, now: Now): void {
    this.wake(now);
  }

  channelGone(channel: ChannelId, now: Now): void {
    const role = this.#role;
    this.#early.delete(channel);
    if (role.kind === 'leading') {
      role.leader.gone(channel);
      this.#maybeMakeWay();
    } else if (role.kind === 'learning' && role.channel === channel) role.learner.gone();
    this.#goOn(now);
  }

  // ---- the disk

  appended(zxid: Zxid, now: Now): void {
    this.#durable = zxid;
    this.#observer.logged(zxid);
    if (this.#role.kind === 'leading') this.#role.leader.appended(zxid, now);
    else if (this.#role.kind === 'learning') this.#role.learner.appended(zxid);
    this.#goOn(now);
  }

  epochSaved(name: EpochName, epoch: number, now: Now): void {
    this.#diskWork--;
    if (name === 'acceptedEpoch') this.#acceptedEpoch = epoch;
    else this.#currentEpoch = epoch;
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
    this.#diskWork--;
    this.#replica = replica;
    this.#keepConfig();
    this.#logged = this.#durable = lastZxid;
    this.#committedLog.truncate(lastZxid);
    this.#observer.historyReplaced('trunc', lastZxid);
    if (this.#role.kind === 'learning') this.#role.learner.truncated(lastZxid, now);
    this.#goOn(now);
  }

  /** The log could not be cut, and is as it was. */
  truncationRefused(now: Now): void {
    this.#diskWork--;
    if (this.#role.kind === 'learning') this.#role.learner.truncationRefused();
    this.#goOn(now);
  }

  /** The folder holds the state as of `zxid`, and nothing else. */
  installed(zxid: Zxid, now: Now): void {
    this.#diskWork--;
    this.#logged = this.#durable = zxid;
    this.#observer.historyReplaced('snap', zxid);
    if (this.#role.kind === 'learning') this.#role.learner.installed(now);
    this.#goOn(now);
  }

  /** The log that was asked for with `readLog` is more than is worth sending. */
  logRefused(channel: ChannelId, now: Now): void {
    if (this.#role.kind === 'leading') this.#role.synchroniser.logRefused(channel);
    this.wake(now);
  }

  /** Txns of the log that was asked for with `readLog`, in order; `isEnd` when there are no more. */
  logRead(channel: ChannelId, entries: readonly LogEntry[], isEnd: boolean): void {
    if (this.#role.kind === 'leading') this.#role.synchroniser.logRead(channel, entries, isEnd, this.#role.leader.committed);
  }

  // ---- time

  wake(now: Now, allHeard = true): void {
    const role = this.#role;
    if (role.kind === 'leading') {
      role.leader.wake(now);
      role.synchroniser.wake(this.#isBusy);
    } else if (role.kind === 'learning') role.learner.wake(now);
    else if (role.kind === 'looking') this.#election.wake(now);
    else if (role.kind === 'dialling') this.#dialAgain(role, now);
    this.server?.wake(now, allHeard);
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
        return Math.min(role.untilMs, role.retryMs ?? Infinity);
      case 'settling':
        return role.fromMs;
      default:
        return role satisfies never;
    }
  }

  /** What there is to tell while nobody is served: the state, and no clients. */
  #atRest(): Inspect {
    const replica = this.#replica;
    if (this.#rest?.replica === replica) return this.#rest.inspect;
    const { tickTimeMs } = this.#options.core;
    const [tracker, watches, load] = [new SessionTracker(tickTimeMs), new WatchTable({ hashSeed: 0 }), new Load()];
    const inspect = new Inspection('looking', replica, tracker, watches, new CnxnTable(this.#out, tracker, watches, load), load);
    this.#rest = { replica, inspect };
    return inspect;
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
        return { ...shared, state: learns, phase: role.learner.phase, syncMode: role.learner.syncMode, leader: role.leader };
      case 'dialling':
        return { ...shared, state: learns, phase: 'discovery', leader: role.leader };
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
    for (const number of [this.#acceptedEpoch, this.#currentEpoch, this.#logged, this.#durable, this.#diskWork, this.#wholeFrom]) {
      to.number(number);
    }
    to.number(this.#snapshotIn);
    to.text(`${this.#memory.state} ${this.#memory.watchesMayGrow}`);
    this.#replica.fingerprint(to);
    this.#committedLog.fingerprint(to);
    this.#config.fingerprint(to);
    this.#election.fingerprint(to, now);
    for (const sid of [...this.#inVain.keys()].sort((a, b) => a - b)) {
      to.number(sid);
      to.number(this.#inVain.get(sid)!);
    }
    const role = this.#role;
    to.text(role.kind);
    to.number(this.#early.size);
    for (const channel of [...this.#early.keys()].sort((a, b) => a - b)) {
      to.number(channel);
      const bytes = this.#early.get(channel);
      if (bytes !== undefined) writeBytes(to, bytes);
    }
    if (role.kind === 'settling') {
      to.number(distance(role.fromMs, now.elapsedMs));
    } else if (role.kind === 'dialling') {
      for (const number of [role.leader, role.tries, distance(role.untilMs, now.elapsedMs), distance(role.retryMs, now.elapsedMs)]) {
        to.number(number);
      }
    } else if (role.kind === 'leading') {
      role.leader.fingerprint(to, now);
      role.synchroniser.fingerprint(to);
    } else if (role.kind === 'learning') {
      role.learner.fingerprint(to, now);
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
      const { snapshotIn, wasInStep, over } = role.learner;
      if (!wasInStep && snapshotIn === undefined) this.#failedWith(role.leader, now);
      role.learner.end(now);
      this.#observer.roleEnded(over);
      if (snapshotIn === undefined) {
        this.#look(now);
      } else {
        // At once, and to the same leader, which does not wait for ever: an election could find nobody else.
        this.#snapshotIn = snapshotIn;
        this.#follow(role.leader, now);
      }
    } else if (role.kind === 'settling') {
      this.#maybeStartElection(now);
    } else if (role.kind === 'looking' && this.#election.decided !== undefined) {
      const { state, vote } = this.#election.decided;
      this.#observer.elected(vote.leader, now.elapsedMs - this.#lookingSinceMs);
      if (state === 'leading') this.#lead(now);
      else this.#follow(vote.leader, now);
    }
  }

  #maybeMakeWay(): void {
    if (this.#role.kind === 'leading') this.#role.leader.maybeMakeWay(this.#election.lost);
  }

  /**
   * Nothing has come of an election. Once is nothing, if it was short: the leader may just have failed. After that it is not voted for,
   * longer each time, so that others have their chance. Nothing may come of those either, and each takes up to initLimit to show it: the
   * first must not be elected again before the last has, or they take turns for ever.
   */
  #failedWith(leader: Sid, now: Now): void {
    const { tickTimeMs, initLimitTicks } = this.#options.zab;
    const tookMs = now.elapsedMs - this.#attemptSinceMs;
    const isLong = tookMs >= tickTimeMs;
    const times = Math.min(32, (this.#inVain.get(leader) ?? 0) + (isLong ? 2 : 1));
    this.#inVain.set(leader, times);
    if (times <= 1) return;
    const attemptMs = Math.min(initLimitTicks * tickTimeMs, Math.max(tookMs, tickTimeMs * 2 ** (times - 1)));
    const others = this.#inVain.size - 1;
    this.#election.shun(leader, now.elapsedMs + attemptMs * (others === 0 ? 1 : others + 1.5));
  }

  #inStep(): void {
    this.#inVain.clear();
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
    if (this.#durable < this.#logged || this.#diskWork > 0) return;
    this.#takeKeptConfig(now);
    this.#role = { kind: 'looking' };
    this.#election.start(this.#logged, this.#currentEpoch, now);
    this.#goOn(now);
  }

  #lead(now: Now): void {
    const start = {
      acceptedEpoch: this.#acceptedEpoch,
      currentEpoch: this.#currentEpoch,
      lastZxid: this.#logged,
    };
    const { forceSnapshotSync } = this.#options.zab;
    const syncOptions: SynchroniserOptions = {
      forceSnapshotSync,
      logBytesMax: () => this.#out.logBytesMax(),
      wholeFrom: this.#wholeFrom,
      begun: (by, from) => this.#observer.learnerSynchronised(by, from),
    };
    const synchroniser = new Synchroniser(syncOptions, this.#replica, this.#committedLog, this.#out);
    const leader: Leader = new Leader(
      this.#options.zab,
      this.#config.active.verifier,
      start,
      this.#zabOut,
      {
        serve: (epoch, then) => this.#serveAsLeader(leader, epoch, then),
        synchronise: (learner, leaderLast) => synchroniser.add(learner, leaderLast),
        forget: (channel) => synchroniser.remove(channel),
        followed: (isFollowed) => this.#followed(isFollowed),
        configVersion: () => this.#config.version,
        newLeaderConfig: (epoch) => this.#config.proposedBy(epoch),
        committed: (zxid, entry) => void this.#committedLog.append(zxid, entry),
      },
      now,
    );
    this.#attemptSinceMs = now.elapsedMs;
    this.#role = { kind: 'leading', leader, synchroniser };
    const early = [...this.#early];
    this.#early.clear();
    for (const [channel, bytes] of early) {
      leader.connected(channel, now);
      if (bytes !== undefined) leader.packet(channel, this.#view.place(bytes, 0, bytes.length), now);
    }
  }

  #follow(leader: Sid, now: Now): void {
    const { tickTimeMs, initLimitTicks } = this.#options.zab;
    for (const channel of this.#early.keys()) this.#out.closeChannel(channel, 'this server does not lead');
    this.#early.clear();
    this.#attemptSinceMs = now.elapsedMs;
    const untilMs = now.elapsedMs + tickTimeMs * initLimitTicks;
    // A leader that turns this server away can be found again within a millisecond, so as not to spin it is dialled after a while.
    const times = this.#inVain.get(leader) ?? 0;
    const pauseMs = times > 1 ? Math.min(tickTimeMs / 4, dialPauseMs * 2 ** (times - 2)) : 0;
    const retryMs = pauseMs > 0 ? now.elapsedMs + pauseMs : undefined;
    this.#role = { kind: 'dialling', leader, untilMs, tries: 0, retryMs };
    if (retryMs === undefined) this.#out.dialLeader(leader);
  }

  #leaveUnreached(leader: Sid, now: Now): void {
    this.#failedWith(leader, now);
    this.#look(now);
  }

  #dialAgain(role: Extract<Role, { kind: 'dialling' }>, now: Now): void {
    if (now.elapsedMs >= role.untilMs) {
      this.#leaveUnreached(role.leader, now);
    } else if (role.retryMs !== undefined && now.elapsedMs >= role.retryMs) {
      role.retryMs = undefined;
      this.#out.dialLeader(role.leader);
    }
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
      append: (zxid, bytes, start, end) => leader.propose(zxid, bytes, start, end),
    };
    return this.#newServer(out, now, (parts, then) => new Authority(parts, then, (sync, at) => leader.sync(sync, at)), false);
  }

  #serveAsLearner(epoch: number, role: 'follower' | 'observer', link: Learner, now: Now): { server: Server; forwarding: Forwarding } {
    this.#inStep();
    this.#begin(epoch);
    let forwarding!: Forwarding;
    const server = this.#newServer(this.#out, now, (parts) => (forwarding = new Forwarding(role, link, parts)), true);
    return { server, forwarding };
  }

  #newServer(out: Out, now: Now, orderOf: (parts: OrderParts, now: Now) => Order, notesTouches: boolean): Server {
    const server = new Server(this.#options.core, out, this.#random, this.#observer, now, this.#replica, orderOf, notesTouches);
    server.memory(this.#memory.state, this.#memory.watchesMayGrow);
    return server;
  }

  #apply({ header, txn, digest }: SentTxn, now: Now): void {
    const job = this.#replica.apply(header, txn, digest);
    // Nobody is served by this server yet.
    if (job !== undefined) while (job.next(now).done !== true);
  }

  /** Another configuration is in force, or this server has only heard of it and is late. */
  #maybeAdopt(text: string, now: Now): void {
    if (!this.#config.maybeAdopt(text)) return;
    this.#keepConfig();
    this.#election.reconfigure(this.#config.active, now);
  }

  /** What log and snapshot say of it, which is where it is kept over a restart. */
  #takeKeptConfig(now: Now): void {
    if (!this.#options.core.reconfigEnabled) return;
    const { tree } = this.#replica;
    const node = tree.find(systemPath.config);
    if (node !== 0) this.#maybeAdopt(tree.dataOf(node)?.toString('utf8') ?? '', now);
  }

  #keepConfig(): void {
    this.#replica.tree.keepConfig(this.#config.active.text, this.#config.version);
  }

  /** The first zxid of an epoch is that of no txn: it says that everything of the epochs before is here. */
  #begin(epoch: number): void {
    this.#observer.epochBegun(epoch, this.#replica.lastZxid);
    this.#replica.lastZxid = Math.max(this.#replica.lastZxid, makeZxid(epoch, 0));
  }
}
