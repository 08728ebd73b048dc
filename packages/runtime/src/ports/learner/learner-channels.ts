/**
 * The channels of a learner port, from their first packet to their end: cuts what arrives into
 * packets and snapshots for the core, and reports each channel that has gone.
 *
 * An accepted stream is shown to the core with its first packet. Until then it is one of a limited
 * number with a limited time, so that the core never learns of connections that send nothing.
 */
import type { Observer } from '@tskeeper/core';
import { type Millis, type PacketConsumer, PacketDecoder, type PacketView, ProtocolError } from '@tskeeper/protocol';
import type { Clock } from '../../clock.ts';
import type { Endpoint, Network, StreamId } from '../../network.ts';
import { type PeerStreamOwner, PeerStreams } from '../peer-streams.ts';
import type { RateLimitedLog } from '../rate-limited-log.ts';
import type { ChannelSender } from './channel-sender.ts';
import { LearnerChannel } from './learner-channel.ts';
import type { LearnerPortOptions } from './learner-port-options.ts';
import type { LearnerTurn } from './learner-turn.ts';

export interface LearnerChannelsDependencies {
  readonly network: Network;
  readonly clock: Pick<Clock, 'now' | 'after'>;
  readonly options: LearnerPortOptions;
  /** Placed over each packet, one after the other. */
  readonly view: PacketView;
  readonly limitObserver: Pick<Observer, 'limitReached'>;
  readonly log: RateLimitedLog;
  readonly turn: LearnerTurn;
  readonly sender: ChannelSender;
}

/**
 * Limit of a first packet. FOLLOWERINFO has 40 bytes; a connection that announces a megabyte before
 * its introduction sends something else.
 */
const firstPacketBytesMax = 1024;

export class LearnerChannels implements PeerStreamOwner<LearnerChannel> {
  readonly #options: LearnerPortOptions;
  readonly #view: PacketView;
  readonly #limitObserver: Pick<Observer, 'limitReached'>;
  readonly #log: RateLimitedLog;
  readonly #turn: LearnerTurn;
  readonly #sender: ChannelSender;
  readonly streams: PeerStreams<LearnerChannel>;
  /** Channels that need a call of `channelGone`. */
  #goneToReport: LearnerChannel[] = [];
  #feeding: LearnerChannel | undefined;
  #quantumPacketsLeft = 0;

  readonly #consumer: PacketConsumer = {
    packet: (packet) => this.#packet(packet),
    raw: (bytes, start, end) => this.#snapshotBytes(bytes, start, end),
  };

  constructor({ network, clock, options, view, limitObserver, log, turn, sender }: LearnerChannelsDependencies) {
    this.#options = options;
    this.#view = view;
    this.#limitObserver = limitObserver;
    this.#log = log;
    this.#turn = turn;
    this.#sender = sender;
    const { bindTriesMax, halfOpenMax, firstPacketTimeoutMs: halfOpenTimeoutMs } = options;
    this.streams = new PeerStreams({ network, clock, log, portName: 'quorum port', bindTriesMax, halfOpenMax, halfOpenTimeoutMs }, this);
  }

  createStream(stream: StreamId, remote: Endpoint, sinceMs: Millis): LearnerChannel {
    const decoder = new PacketDecoder(this.#options.packetBytesMax, this.#view);
    return new LearnerChannel(stream, remote, sinceMs, decoder, this.#sender.pool, this.#sender.shared);
  }

  // --- Input

  receive(channel: LearnerChannel, bytes: Buffer, start: number, end: number): void {
    if (channel.stage === 'open') this.#turn.core.partReceived(channel.stream, this.#turn.now);
    this.#feed(channel, bytes, start, end);
  }

  resume(channel: LearnerChannel): void {
    this.#feed(channel, undefined, 0, 0);
  }

  /** `bytes` undefined: the retained ones. */
  #feed(channel: LearnerChannel, bytes: Buffer | undefined, start: number, end: number): void {
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
      this.#log.warn(this.#turn.now.elapsedMs, `${channel.name} was closed on the quorum port: ${error.message}.`, {
        event: 'peer.malformed',
        address: channel.name,
        reason: error.message,
      });
      this.streams.close(channel, this.#turn.now);
    } finally {
      this.#feeding = undefined;
    }
    if (channel.stage === 'closing') return;
    if (!wantsMore) this.streams.stall(channel);
    else if (channel.hasPeerEnded) this.streams.close(channel, this.#turn.now);
  }

  /** The packet decoder's consumer. Returns whether the channel may pass another packet. */
  #packet(packet: PacketView): boolean {
    const channel = this.#feeding!;
    const { core, now } = this.#turn;
    const { stream } = channel;
    if (channel.stage === 'half-open') {
      this.streams.markOpen(channel);
      core.accepted(stream, now);
    }
    if (!isOpen(channel)) return false;
    core.packet(stream, packet, now);
    if (!isOpen(channel)) return false;
    if (core.isReceivingSnapshot(stream)) channel.packetDecoder.beginRaw();
    if (--this.#quantumPacketsLeft > 0) return true;
    this.#limitObserver.limitReached('packetsPerQuantum');
    return false;
  }

  #snapshotBytes(bytes: Buffer, start: number, end: number): number {
    const channel = this.#feeding!;
    const { core, now } = this.#turn;
    const taken = core.feedSnapshot(channel.stream, bytes.subarray(start, end), now);
    if (!isOpen(channel)) return end;
    if (!core.isReceivingSnapshot(channel.stream)) channel.packetDecoder.endRaw();
    return start + taken;
  }

  // --- Going away

  onClosing(channel: LearnerChannel): void {
    if (channel.stage === 'open') this.#goneToReport.push(channel);
    channel.packetDecoder.close();
    this.#sender.markDirty(channel);
  }

  reportGone(): void {
    if (this.#goneToReport.length === 0) return;
    const leaving = this.#goneToReport;
    this.#goneToReport = [];
    for (const { stream } of leaving) this.#turn.core.channelGone(stream, this.#turn.now);
    this.#turn.needsAnother = true;
  }
}

/** Checked again after each call to the core, which may have closed it. */
function isOpen(channel: LearnerChannel): boolean {
  return channel.stage === 'open';
}
