/**
 * One server that has won an election, with a disk that answers on request, and learners that send
 * any packets of a test: in real framing, cut as in the learner port. Input that the core cannot
 * decode closes its stream, as there.
 */
import { membersOf } from '../support/members.ts';
import {
  type Id,
  makeZxid,
  type Notification,
  PacketDecoder,
  packetTypeName,
  PacketType,
  PacketView,
  ProtocolError,
  Reader,
  readTxn,
  type Sid,
  Writer,
  writeAckEpoch,
  writeLearnerRequest,
  writeLearnerInfo,
  writeQuorumPacket,
  type Zxid,
} from '@tskeeper/protocol';
import { type CoreOptions, coreDefaults, type Now, silentObserver } from '../../src/index.ts';
import { Peer } from '../../src/peer.ts';
import type { PeerClients } from '../../src/peer-io.ts';
import type { ElectionLinks } from '../../src/election/election-links.ts';
import { Configuration } from '../../src/quorum/configuration.ts';
import { Replica, replicaOptions } from '../../src/request/replica.ts';
import { SnapshotLoader } from '../../src/snapshot/snapshot-loader.ts';
import { CommittedLog, type CommittedLogOptions, committedLogDefaults } from '../../src/zab/committed-log.ts';
import type { LogEntry } from '../../src/zab/learner-syncer.ts';
import type { EpochName, PeerStorage } from '../../src/zab/peer-storage.ts';
import type { ChannelCloseReason, ChannelId, QuorumLinks } from '../../src/zab/quorum-links.ts';

const random = { uint32: () => 7 };
const configText = 'version=0';
export const voters: readonly Sid[] = [1, 2, 3];
/** The end of the history with which it starts. */
export const firstZxid = makeZxid(3, 0);

/** A packet sent by the leader. */
export interface Sent {
  readonly type: number;
  readonly name: string;
  readonly zxid: Zxid;
  readonly data: Buffer;
  readonly authinfo: readonly Id[] | null;
}

export interface LoneLeaderOptions {
  readonly core?: Partial<CoreOptions>;
  readonly committedLog?: CommittedLogOptions;
}

export class LoneLeader implements PeerClients, ElectionLinks, QuorumLinks, PeerStorage {
  readonly peer: Peer;
  readonly #core: CoreOptions;
  readonly #writers = new Map<ChannelId, Writer>();
  readonly #sent = new Map<ChannelId, Sent[]>();
  readonly #cutters = new Map<ChannelId, PacketDecoder>();
  readonly #loaders = new Map<ChannelId, SnapshotLoader>();
  readonly full = new Set<ChannelId>();
  readonly closed = new Map<ChannelId, string>();
  readonly disk: (() => void)[] = [];
  readonly #log: LogEntry[] = [];
  logBytes: number | undefined;
  readonly logsAsked: { readonly channel: ChannelId; readonly from: Zxid; readonly isTail: boolean }[] = [];
  now: Now = { elapsedMs: 1000, wallMs: 1_700_000_000_000 };

  constructor({ core, committedLog = committedLogDefaults }: LoneLeaderOptions = {}) {
    this.#core = { ...coreDefaults, serverId: 1, tickTimeMs: 100, minSessionTimeoutMs: 200, maxSessionTimeoutMs: 60_000, ...core };
    const replica = new Replica(replicaOptions(this.#core, random));
    replica.lastZxid = firstZxid;
    const zab = { sid: 1, tickTimeMs: 100, initLimitTicks: 1000, syncLimitTicks: 1000, forceSnapshotSync: false, counterMax: 0xffff_0000 };
    const found = { lastZxid: firstZxid, acceptedEpoch: 3, currentEpoch: 3, snapshotZxid: 0 };
    const recovered = { replica, committedLog: new CommittedLog(committedLog), ...found };
    const config = new Configuration({ sid: 1, active: membersOf(voters), reconfigEnabled: this.#core.reconfigEnabled });
    const options = { core: this.#core, zab };
    const io = { clients: this, election: this, quorum: this, storage: this };
    const parts = { options, config, start: recovered, packetView: new PacketView(), io, random, observer: silentObserver };
    this.peer = new Peer(parts, this.now);
    const vote: Notification = {
      state: 'looking',
      leader: 1,
      zxid: firstZxid,
      peerEpoch: 3,
      electionEpoch: 1,
      version: 2,
      config: configText,
    };
    for (const sid of [2, 3]) this.peer.notified(sid, vote, this.now);
    this.elapse(1000);
    if (this.peer.role !== 'leading') throw new Error(`it is ${this.peer.role}`);
  }

  elapse(ms: number): void {
    this.now = { elapsedMs: this.now.elapsedMs + ms, wallMs: this.now.wallMs + ms };
    this.peer.wake(this.now);
  }

  /** Completes the requests to the disk and their effects, and all work due now. */
  settle(): void {
    for (let steps = 0; steps < 100_000; steps++) {
      const next = this.disk.shift();
      if (next !== undefined) next();
      else if (this.peer.deadline() === 0) this.peer.wake(this.now);
      else return;
    }
    throw new Error('it does not come to rest');
  }

  // ---- input

  connect(channel: ChannelId): void {
    this.peer.accepted(channel, this.now);
  }

  say(
    channel: ChannelId,
    type: number,
    zxid: Zxid,
    data: Uint8Array | null,
    authinfo: { scheme: string; id: string }[] | null = null,
  ): void {
    const writer = new Writer(64);
    writeQuorumPacket(writer, { type, zxid, data, authinfo });
    const bytes = Buffer.from(writer.written());
    // While the core has not closed it.
    const packet = (view: PacketView) => {
      if (this.closed.has(channel)) return false;
      this.peer.packet(channel, view, this.now);
      return true;
    };
    try {
      new PacketDecoder(16_000_000, new PacketView()).feed(bytes, 0, bytes.length, { packet, raw: () => 0 });
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.closeChannel(channel, 'protocol error', error.message);
    }
    this.#tellGone();
  }

  /** Its number may be reused. */
  streamGone(channel: ChannelId): void {
    this.#writers.delete(channel);
    this.#cutters.delete(channel);
    this.peer.channelGone(channel, this.now);
  }

  introduce(
    channel: ChannelId,
    serverId: Sid,
    acceptedEpoch = 3,
    type: number = PacketType.FOLLOWERINFO,
    incarnation?: number,
    leaderPriority?: number,
  ): void {
    const info = new Writer(32);
    writeLearnerInfo(info, { serverId, configVersion: 0, incarnation, leaderPriority });
    this.connect(channel);
    this.say(channel, type, makeZxid(acceptedEpoch, 0), info.written());
  }

  acceptEpoch(channel: ChannelId, currentEpoch = 3, lastZxid = firstZxid): void {
    const epoch = new Writer(8);
    writeAckEpoch(epoch, currentEpoch);
    this.say(channel, PacketType.ACKEPOCH, lastZxid, epoch.written());
  }

  ack(channel: ChannelId, zxid: Zxid): void {
    this.say(channel, PacketType.ACK, zxid, null);
  }

  request(channel: ChannelId, session: number, cxid: number, type: number, payload: Buffer): void {
    const request = new Writer(32);
    writeLearnerRequest(request, { sessionHigh: 0, sessionLow: session, cxid, type, payload });
    this.say(channel, PacketType.REQUEST, -1, request.written());
  }

  /** Server 2 over channel 2 follows, and all requests to the disk are complete. */
  serveWithFollower(): void {
    this.follow(2);
    if (this.peer.server === undefined) throw new Error('it does not serve');
  }

  /** A follower, on the channel with its number, up to the ACK of NEWLEADER. It can take over the lead. */
  follow(sid: Sid): void {
    this.introduce(sid, sid, 3, PacketType.FOLLOWERINFO, 1, 0);
    this.settle();
    this.acceptEpoch(sid);
    this.settle();
    this.ack(sid, makeZxid(this.epoch, 0));
    this.settle();
  }

  get epoch(): number {
    return 4;
  }

  // ---- output

  /** Since the last call. */
  take(channel: ChannelId): Sent[] {
    this.#gather(channel);
    return (this.#sent.get(channel) ?? []).splice(0);
  }

  /** The zxid of the snapshot sent over this channel, and the txns after it, up to NEWLEADER. */
  afterSnapshot(channel: ChannelId): { readonly snapshotZxid: Zxid; readonly zxids: readonly Zxid[] } {
    const sent = this.take(channel);
    const begin = sent.findIndex(({ type }) => type === PacketType.SNAP);
    const end = sent.findIndex(({ type }) => type === PacketType.NEWLEADER);
    if (begin === -1 || end === -1) throw new Error(`it has sent ${sent.map(({ name }) => name).join(', ')}`);
    const txns = sent.slice(begin + 1, end).filter(({ type }) => type === PacketType.PROPOSAL || type === PacketType.INFORM);
    return { snapshotZxid: sent[begin]!.zxid, zxids: txns.map(({ zxid }) => zxid) };
  }

  /** The txns among these, by their zxids. */
  static txns(sent: readonly Sent[]) {
    return sent.filter(({ type }) => type === PacketType.PROPOSAL).map(({ data }) => readTxn(new Reader(data)));
  }

  #gather(channel: ChannelId): void {
    const writer = this.#writers.get(channel);
    if (writer === undefined) return;
    const bytes = Buffer.from(writer.written());
    writer.clear();
    let sent = this.#sent.get(channel);
    if (sent === undefined) this.#sent.set(channel, (sent = []));
    let cutter = this.#cutters.get(channel);
    if (cutter === undefined) this.#cutters.set(channel, (cutter = new PacketDecoder(100_000_000, new PacketView())));
    const [into, cut] = [sent, cutter];
    cut.feed(bytes, 0, bytes.length, {
      packet: (view) => {
        const data = Buffer.from(view.data.bytes.subarray(view.data.offset, view.data.limit));
        into.push({ type: view.type, name: packetTypeName(view.type), zxid: view.zxid, data, authinfo: view.authinfo() });
        if (view.type === PacketType.SNAP) {
          this.#loaders.set(channel, new SnapshotLoader(replicaOptions(this.#core, random), { itemBytesMax: 16_000_000 }));
          cut.beginRaw();
        }
        return true;
      },
      raw: (raw, start, end) => {
        const loader = this.#loaders.get(channel)!;
        const taken = loader.feed(raw.subarray(start, end));
        if (loader.isComplete) cut.endRaw();
        return start + taken;
      },
    });
  }

  #tellGone(): void {
    for (const channel of this.closed.keys()) {
      if (this.#received.has(channel)) continue;
      this.#received.add(channel);
      this.peer.channelGone(channel, this.now);
    }
  }

  readonly #received = new Set<ChannelId>();

  // ---- outputs

  packets(channel: ChannelId): Writer {
    let writer = this.#writers.get(channel);
    if (writer === undefined) this.#writers.set(channel, (writer = new Writer(1024)));
    return writer;
  }

  writeShared(channel: ChannelId, bytes: Buffer, start: number): void {
    this.packets(channel).raw(bytes, start, bytes.length);
  }

  closeChannel(channel: ChannelId, _reason: ChannelCloseReason, text: string): void {
    if (!this.closed.has(channel)) this.closed.set(channel, text);
  }

  append(zxid: Zxid, bytes: Buffer, start: number, end: number): void {
    this.#log.push({ zxid, bytes: Buffer.from(bytes.subarray(start, end)) });
    this.disk.push(() => this.peer.appended(zxid, this.now));
  }

  saveConfig(): void {}

  saveEpoch(name: EpochName, epoch: number): void {
    this.disk.push(() => this.peer.epochSaved(name, epoch, this.now));
  }

  readLog(channel: ChannelId, from: Zxid, isTail: boolean): void {
    this.logsAsked.push({ channel, from, isTail });
  }

  /** The log is read for a learner: `count` txns after that one. */
  showLog(channel: ChannelId, after: Zxid, count: number, isEnd = false): void {
    const begin = this.#log.findIndex(({ zxid }) => zxid > after);
    this.peer.logRead(channel, this.#log.slice(begin, begin + count), isEnd);
  }

  readonly truncate = unexpected('truncate');
  readonly installSnapshot = unexpected('installSnapshot');
  readonly reply = unexpected('reply');
  readonly dialLeader = unexpected('dialLeader');
  readonly cancelDial = unexpected('cancelDial');
  readonly reconnect = unexpected('reconnect');
  readonly close = unexpected('close');
  notify(): void {}
  resumeLogRead(): void {}
  stopLogRead(): void {}
  attach = (): void => undefined;
  isFull = (): boolean => false;
  channelIsFull = (channel: ChannelId): boolean => this.full.has(channel);
  logBytesMax = (): number | undefined => this.logBytes;
}

function unexpected(what: string): () => never {
  return () => {
    throw new Error(`${what} was not expected`);
  };
}
