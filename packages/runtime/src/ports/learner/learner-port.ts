/**
 * The learner port: the streams between a leader and its learners. A leader accepts them at its
 * quorum address, a learner dials that of its leader; from then on both ends are alike. Packets go
 * both ways, and from the leader sometimes a raw snapshot between them.
 *
 * An accepted stream is shown to the core with its first packet. Until then it is one of a limited
 * number with a limited time, so that the core never learns of connections that send nothing.
 *
 * No stream waits for another. What a slow learner has not read waits, up to a limit; one that
 * reads nothing is cut off, and closing a stream is complete for the core at the end of the turn
 * (ZOOKEEPER-2201, -3574, -3774: one learner blocked a leader).
 *
 * The owner drives it in turns, as the client port: events as they occur, then `endTurn` once. All
 * packets of a turn for a learner are sent in one write.
 */
import type { ChannelId, Now, Observer, QuorumLinks } from '@tskeeper/core';
import {
  type HostPort,
  type Millis,
  type PacketConsumer,
  PacketDecoder,
  type PacketView,
  ProtocolError,
  type Sid,
  Writer,
} from '@tskeeper/protocol';
import type { Clock } from '../../clock.ts';
import type { Logger } from '../../logger.ts';
import type { Endpoint, Listener, Network, ReceivedBatch, StreamId } from '../../network.ts';
import { type Dial, Dialler, type DialOutcome } from '../dialler.ts';
import { LearnerChannel } from './learner-channel.ts';
import { RateLimitedLog } from '../rate-limited-log.ts';
import { DiscardSink } from '../discard-sink.ts';
import type { LearnerCore } from './learner-core.ts';
import type { PeerServer } from '../peer-server.ts';
import { PeerStreams } from '../peer-streams.ts';
import { SendList } from '../send-list.ts';
import { SharedBytes } from '../shared-bytes.ts';
import { WriterPool } from '../writer-pool.ts';

export interface LearnerPortOptions {
  /** jute.maxbuffer and its extra: the largest size of a packet's data. */
  readonly packetBytesMax: number;
  /** For a whole dial: initLimit ticks, or connectToLearnerMasterLimit. */
  readonly dialTimeoutMs: Millis;
  /** Of these, for one look-up of a name or one address. */
  readonly cnxTimeoutMs: Millis;
  /** initLimit ticks: limit for the first packet of a new connection. */
  readonly firstPacketTimeoutMs: Millis;
  /** Number of tries to listen; 0 = no limit. */
  readonly bindTriesMax: number;
  /** Limit of connections that have not sent a packet. */
  readonly halfOpenMax: number;
  /** Waiting output above which a channel reports that it is full. */
  readonly outputHighWaterBytes: number;
  /** Limit of what may wait after the output of one turn; above it the channel is reset. */
  readonly queuedBytesMax: number;
  /**
   * Limit of what may wait for all channels together; above it channels are reset, those of unknown
   * servers first.
   */
  readonly waitingBytesMax: number;
  /**
   * Bytes for several channels are held once from this size on. Fewer are copied, which costs less
   * than a piece of its own.
   */
  readonly sharedBytesMin: number;
  /** Packets of one channel before another gets its turn. */
  readonly packetsPerQuantum: number;
}

export const learnerPortDefaults: LearnerPortOptions = {
  packetBytesMax: 2 * 0xfffff,
  dialTimeoutMs: 20_000,
  cnxTimeoutMs: 5000,
  firstPacketTimeoutMs: 20_000,
  bindTriesMax: 3,
  halfOpenMax: 256,
  outputHighWaterBytes: 1024 * 1024,
  queuedBytesMax: 64 * 1024 * 1024,
  waitingBytesMax: 128 * 1024 * 1024,
  sharedBytesMin: 4096,
  packetsPerQuantum: 1024,
};

export interface LearnerPortDependencies {
  readonly network: Network;
  readonly clock: Pick<Clock, 'now' | 'after'>;
  readonly options: LearnerPortOptions;
  /** Placed over each packet, one after the other. */
  readonly view: PacketView;
  readonly limitObserver: Pick<Observer, 'limitReached'>;
  readonly logger: Logger;
  /** Runs work in a turn of its own, `endTurn` included. */
  readonly runTurn: (work: (now: Now) => void) => void;
}

/**
 * Limit of a first packet. FOLLOWERINFO has 40 bytes; a connection that announces a megabyte before
 * its introduction sends something else.
 */
const firstPacketBytesMax = 1024;

export class LearnerPort implements QuorumLinks {
  readonly #network: Network;
  #core!: LearnerCore;
  readonly #options: LearnerPortOptions;
  readonly #logger: Logger;
  readonly #limitObserver: Pick<Observer, 'limitReached'>;
  readonly #log: RateLimitedLog;
  readonly #dialler: Dialler;
  #addresses = new Map<Sid, readonly HostPort[]>();

  readonly #channels: PeerStreams<LearnerChannel>;
  /** Channels that need a call of `channelGone`. */
  #goneToReport: LearnerChannel[] = [];
  #dirty: LearnerChannel[] = [];

  /** The leader to dial at the end of the turn. */
  #leaderToDial: Sid | undefined;
  #dial: Dial | undefined;

  readonly #pool = new WriterPool();
  readonly #shared = new SharedBytes();
  readonly #sends = new SendList();
  readonly #discardSink = new DiscardSink();
  #feeding: LearnerChannel | undefined;
  #quantumPacketsLeft = 0;
  #now: Now = { elapsedMs: 0, wallMs: 0 };
  #needsTurn = false;
  #isShutDown = false;

  readonly #consumer: PacketConsumer = {
    packet: (packet) => this.#packet(packet),
    raw: (bytes, start, end) => this.#snapshotBytes(bytes, start, end),
  };

  constructor(parts: LearnerPortDependencies, servers: readonly PeerServer[]) {
    this.#network = parts.network;
    this.#options = parts.options;
    this.#logger = parts.logger;
    this.#limitObserver = parts.limitObserver;
    this.#log = new RateLimitedLog(parts.logger);
    this.#dialler = new Dialler(parts);
    const { packetBytesMax, bindTriesMax, halfOpenMax, firstPacketTimeoutMs } = parts.options;
    const { network, clock, view } = parts;
    this.#channels = new PeerStreams(
      { network, clock, log: this.#log, portName: 'quorum port', bindTriesMax, halfOpenMax, halfOpenTimeoutMs: firstPacketTimeoutMs },
      {
        createStream: (stream, remote, sinceMs) =>
          new LearnerChannel(stream, remote, sinceMs, new PacketDecoder(packetBytesMax, view), this.#pool, this.#shared),
        receive: (channel, bytes, start, end) => this.#receive(channel, bytes, start, end),
        resume: (channel) => this.#feed(channel, undefined),
        onClosing: (channel) => this.#closing(channel),
      },
    );
    this.setServers(servers);
  }

  /** Sets another configuration, which the next dial uses. */
  setServers(servers: readonly PeerServer[]): void {
    this.#addresses = new Map(servers.map(({ sid, quorumAddresses }) => [sid, quorumAddresses]));
  }

  /**
   * Sets the core that this port delivers to. It is made after the port, which it writes to at
   * once.
   */
  attach(core: LearnerCore): void {
    this.#core = core;
  }

  // --- Listening

  /** Listens on one of this server's quorum addresses; see `PeerStreams.listen`. */
  listen(address: HostPort): Promise<Listener | undefined> {
    return this.#channels.listen(address);
  }

  /**
   * Stops accepting until the next `listen`; existing channels stay. For a server that has ceased
   * to lead: a refused learner connects again a moment later, as does one that is accepted and
   * closed; but the latter has been accepted by a leader first.
   */
  stopListening(): Promise<void> {
    return this.#channels.stopListening();
  }

  owns(listener: Listener): boolean {
    return this.#channels.owns(listener);
  }

  ownsStream(stream: StreamId): boolean {
    return this.#channels.has(stream) || this.#dialler.ownsStream(stream);
  }

  /**
   * Stops accepting and dialling, and closes all channels; output written to them is still sent.
   */
  async shutDown(now: Now): Promise<void> {
    this.#now = now;
    this.#isShutDown = true;
    this.#dialler.cancelAll();
    this.#dial = this.#leaderToDial = undefined;
    await this.#channels.shutDown(now);
  }

  // --- What the network reports

  accepted(stream: StreamId, listener: Listener, remote: Endpoint, now: Now): void {
    this.#now = now;
    this.#channels.accepted(stream, listener, remote, now);
  }

  connected(stream: StreamId, now: Now): void {
    this.#now = now;
    this.#dialler.connected(stream, now);
  }

  /** Takes the channels of this port out of the batch and ignores the others. */
  received(batch: ReceivedBatch, now: Now): void {
    this.#now = now;
    this.#channels.received(batch, now);
  }

  drained(stream: StreamId, now: Now): void {
    this.#now = now;
    const channel = this.#channels.get(stream);
    if (channel === undefined || !channel.output.writePending) return;
    channel.output.sliceSent(false);
    channel.closingMs = now.elapsedMs;
    if (channel.stage === 'open') this.#core.partSent(stream, now);
    this.#markDirty(channel);
  }

  ended(stream: StreamId, now: Now): void {
    this.#now = now;
    this.#channels.ended(stream, now);
  }

  closed(stream: StreamId, error: string | undefined, now: Now): void {
    this.#now = now;
    // At once and not at the end of the turn: from here on its number may be used again.
    if (this.#channels.closed(stream, now)) this.#reportGone();
    else this.#dialler.closed(stream, error, now);
  }

  // --- What the core asks for

  /**
   * As `QuorumLinks.dialLeader`: it completes as `dialled` or `dialFailed`. A dial in progress is
   * cancelled, and completes as neither.
   */
  dialLeader(sid: Sid): void {
    this.#leaderToDial = sid;
  }

  /** As `QuorumLinks.cancelDial`. */
  cancelDial(): void {
    this.#leaderToDial = undefined;
    if (this.#dial !== undefined) this.#dialler.cancel(this.#dial);
    this.#dial = undefined;
  }

  /** As `QuorumLinks.packets`. */
  packets(id: ChannelId): Writer {
    const channel = this.#channels.get(id);
    if (channel === undefined || channel.stage !== 'open') {
      return this.#discardSink.writer();
    }
    this.#markDirty(channel);
    return channel.output.writer();
  }

  /** As `QuorumLinks.share`. */
  writeShared(id: ChannelId, bytes: Buffer, start: number): void {
    const channel = this.#channels.get(id);
    if (channel === undefined || channel.stage !== 'open') return;
    this.#markDirty(channel);
    if (bytes.length - start < this.#options.sharedBytesMin) channel.output.writer().raw(bytes, start, bytes.length);
    else channel.output.writeShared(bytes, start);
  }

  /** As `QuorumLinks.channelIsFull`: `channelDrained` follows when there is room again. */
  channelIsFull(id: ChannelId): boolean {
    const channel = this.#channels.get(id);
    if (channel === undefined || channel.stage !== 'open' || channel.output.waitingBytes <= this.#options.outputHighWaterBytes)
      return false;
    channel.backpressureSignalled = true;
    this.#limitObserver.limitReached('fullBytes');
    return true;
  }

  /**
   * As `QuorumLinks.closeChannel`. The core gets `channelGone` at the end of the turn, whether or
   * not the other side reads what was written.
   */
  closeChannel(id: ChannelId, reason: string): void {
    const channel = this.#channels.get(id);
    if (channel === undefined || channel.stage !== 'open') return;
    this.#log.warn(this.#now.elapsedMs, `The connection with ${channel.name} was closed: ${reason}.`, {
      event: 'peer.closed',
      address: channel.name,
      reason,
    });
    this.#close(channel);
  }

  // --- Time

  /** When to call `wake` if nothing else happens. */
  deadline(): Millis | undefined {
    const due = Math.min(this.#dialler.deadline() ?? Infinity, this.#channels.deadline() ?? Infinity);
    return due === Infinity ? undefined : due;
  }

  /** There is more work that can be done at once: the owner should run another turn soon. */
  get needsTurn(): boolean {
    return this.#needsTurn;
  }

  /** Gives up on channels whose time is over. */
  wake(now: Now): void {
    this.#now = now;
    this.#dialler.wake(now);
    this.#channels.wake(now);
  }

  // --- The end of a turn

  /** Feeds channels that had to wait, dials if requested, and sends all output at once. */
  endTurn(now: Now): void {
    this.#now = now;
    this.#needsTurn = false;
    if (this.#channels.resumeStalled()) this.#needsTurn = true;
    this.#reportGone();
    this.#dialRequested();
    this.#flush();
    // Channels that were cut off for reading nothing are gone for the core as well.
    this.#reportGone();
  }

  #dialRequested(): void {
    const sid = this.#leaderToDial;
    this.#leaderToDial = undefined;
    if (sid === undefined || this.#isShutDown) return;
    this.cancelDial();
    const hosts = this.#addresses.get(sid) ?? [];
    const { dialTimeoutMs, cnxTimeoutMs } = this.#options;
    if (hosts.length === 0) {
      this.#dialFailed(sid, 'it is not in the configuration', false);
      return;
    }
    this.#dial = this.#dialler.dial(hosts, { attemptMs: cnxTimeoutMs, totalMs: dialTimeoutMs }, this.#now, (outcome, now) => {
      this.#now = now;
      this.#dial = undefined;
      if (outcome.kind === 'failed') this.#dialFailed(sid, outcome.reason, outcome.refused);
      else this.#dialled(outcome);
    });
  }

  #dialled({ stream, remote }: Extract<DialOutcome, { kind: 'open' }>): void {
    this.#channels.markOpen(this.#channels.add(stream, remote, this.#now));
    this.#core.dialled(stream, this.#now);
  }

  #dialFailed(sid: Sid, reason: string, refused: boolean): void {
    const sentence = `The leader, server ${sid}, cannot be reached: ${reason}.`;
    // After every election, a leader that does not know yet that it leads refuses at first.
    if (refused) this.#logger.debug(sentence, { event: 'leader.refused', peer: sid, reason });
    else this.#log.warn(this.#now.elapsedMs, sentence, { event: 'leader.unreachable', peer: sid, reason });
    this.#core.dialFailed(refused ? 'refused' : 'unanswered', this.#now);
    // What the core does about it belongs to another turn.
    this.#needsTurn = true;
  }

  #reportGone(): void {
    if (this.#goneToReport.length === 0) return;
    const leaving = this.#goneToReport;
    this.#goneToReport = [];
    for (const { stream } of leaving) this.#core.channelGone(stream, this.#now);
    this.#needsTurn = true;
  }

  #flush(): void {
    const dirty = this.#dirty;
    this.#dirty = [];
    for (const channel of dirty) channel.isDirty = false;
    // One pass, unless a channel has more than one slice to send.
    for (let pending = dirty; pending.length > 0;) {
      const given = pending.filter(({ output }) => output.addSlice(this.#sends));
      const held = new Set<StreamId>();
      this.#sends.send(this.#network, (stream) => held.add(stream));
      for (const { output, stream } of given) output.sliceSent(held.has(stream));
      pending = given;
    }
    let someWait = false;
    for (const channel of dirty) {
      this.#finishFlush(channel);
      someWait ||= channel.output.waitingBytes > 0;
    }
    if (someWait) this.#enforceTotalLimit();
  }

  /**
   * The memory for all channels together has a limit, which more connections cannot exceed. The
   * heaviest of the last rank is cut off.
   */
  #enforceTotalLimit(): void {
    const { waitingBytesMax } = this.#options;
    for (let bytes = this.#waitingBytes; bytes > waitingBytesMax; bytes = this.#waitingBytes) {
      let heaviest: LearnerChannel | undefined;
      let heaviestRank = -1;
      for (const channel of this.#channels.values()) {
        const { waitingBytes } = channel.output;
        if (waitingBytes === 0) continue;
        const rank = channel.stage === 'open' ? this.#core.channelRank(channel.stream) : rankOfClosing;
        const isHeavier = heaviest === undefined || waitingBytes > heaviest.output.waitingBytes;
        if (rank < heaviestRank || (rank === heaviestRank && !isHeavier)) continue;
        heaviest = channel;
        heaviestRank = rank;
      }
      if (heaviest === undefined) return;
      this.#dropSlow(
        heaviest,
        `${bytes} bytes wait for all learners, more than the limit of ${waitingBytesMax}, and most of them for this one`,
      );
    }
  }

  get #waitingBytes(): number {
    let bytes = this.#shared.bytes;
    for (const { output } of this.#channels.values()) bytes += output.ownBytes;
    return bytes;
  }

  #dropSlow(channel: LearnerChannel, reason: string): void {
    const bytes = channel.output.waitingBytes;
    const remedy = 'Check its disk and the link to it; it may reconnect, and is sent what it lacks';
    this.#log.warn(this.#now.elapsedMs, `${channel.name} was cut off: ${reason}. ${remedy}.`, {
      event: 'peer.slow',
      address: channel.name,
      bytes,
    });
    this.#channels.drop(channel, this.#now);
  }

  #finishFlush(channel: LearnerChannel): void {
    const { output } = channel;
    output.releaseEmptyWriter();
    const { waitingBytes } = output;
    if (channel.stage === 'closing') {
      if (waitingBytes === 0) this.#channels.sendEnd(channel, this.#now);
      return;
    }
    const { outputHighWaterBytes, queuedBytesMax } = this.#options;
    if (output.queuedBytes > queuedBytesMax) {
      this.#dropSlow(channel, `${waitingBytes} bytes wait for it, and it does not read them`);
    } else if (channel.backpressureSignalled && waitingBytes <= outputHighWaterBytes) {
      channel.backpressureSignalled = false;
      this.#core.channelDrained(channel.stream, this.#now);
      // What has been written now is sent in the next turn.
      this.#needsTurn = true;
    }
  }

  #markDirty(channel: LearnerChannel): void {
    if (channel.isDirty) return;
    channel.isDirty = true;
    this.#dirty.push(channel);
  }

  // --- Coming in

  #receive(channel: LearnerChannel, bytes: Buffer, start: number, end: number): void {
    if (channel.stage === 'open') this.#core.partReceived(channel.stream, this.#now);
    this.#feed(channel, bytes, start, end);
  }

  /** `bytes` undefined: the retained ones. */
  #feed(channel: LearnerChannel, bytes: Buffer | undefined, start = 0, end = 0): void {
    this.#feeding = channel;
    this.#quantumPacketsLeft = this.#options.packetsPerQuantum;
    let wantsMore = true;
    try {
      if (bytes === undefined) wantsMore = channel.packetDecoder.resume(this.#consumer);
      else wantsMore = channel.packetDecoder.feed(bytes, start, end, this.#consumer);
      if (channel.stage === 'half-open' && channel.packetDecoder.retainedBytes > firstPacketBytesMax) {
        throw new ProtocolError('a short packet that introduces the server', 0);
      }
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#log.warn(this.#now.elapsedMs, `${channel.name} was closed on the quorum port: ${error.message}.`, {
        event: 'peer.malformed',
        address: channel.name,
        reason: error.message,
      });
      this.#close(channel);
    } finally {
      this.#feeding = undefined;
    }
    if (channel.stage === 'closing') return;
    if (!wantsMore) this.#channels.stall(channel);
    else if (channel.hasPeerEnded) this.#close(channel);
  }

  /** The packet cutter's consumer. Returns whether the channel may pass another packet. */
  #packet(packet: PacketView): boolean {
    const channel = this.#feeding!;
    const { stream } = channel;
    if (channel.stage === 'half-open') {
      this.#channels.markOpen(channel);
      this.#core.accepted(stream, this.#now);
    }
    if (!isOpen(channel)) return false;
    this.#core.packet(stream, packet, this.#now);
    if (!isOpen(channel)) return false;
    if (this.#core.isReceivingSnapshot(stream)) channel.packetDecoder.beginRaw();
    if (--this.#quantumPacketsLeft > 0) return true;
    this.#limitObserver.limitReached('packetsPerGo');
    return false;
  }

  #snapshotBytes(bytes: Buffer, start: number, end: number): number {
    const channel = this.#feeding!;
    const taken = this.#core.feedSnapshot(channel.stream, bytes.subarray(start, end), this.#now);
    if (!isOpen(channel)) return end;
    if (!this.#core.isReceivingSnapshot(channel.stream)) channel.packetDecoder.endRaw();
    return start + taken;
  }

  // --- Going away

  /** Accepts no more input; sends what was written, then the end. */
  #close(channel: LearnerChannel): void {
    this.#channels.close(channel, this.#now);
  }

  #closing(channel: LearnerChannel): void {
    if (channel.stage === 'open') this.#goneToReport.push(channel);
    channel.packetDecoder.close();
    this.#markDirty(channel);
  }
}

/** A closing channel ranks after all others. */
const rankOfClosing = 3;

/** Checked again after each call to the core, which may have closed it. */
function isOpen(channel: LearnerChannel): boolean {
  return channel.stage === 'open';
}
