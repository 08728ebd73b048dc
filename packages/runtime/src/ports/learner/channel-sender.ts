/**
 * The output of a learner port: sends what was written to the channels of a turn, one write for
 * each unless a channel has more than one slice, and limits what may wait.
 *
 * A learner that reads nothing must not cost the leader its memory: a channel with too much output
 * is cut off, and when all channels together have too much, the heaviest of the least important
 * ones are.
 */
import type { Network, StreamId } from '../../network.ts';
import type { PeerStreams } from '../peer-streams.ts';
import type { RateLimitedLog } from '../rate-limited-log.ts';
import { SendList } from '../send-list.ts';
import { SharedBytes } from '../shared-bytes.ts';
import { WriterPool } from '../writer-pool.ts';
import type { LearnerChannel } from './learner-channel.ts';
import type { LearnerPortOptions } from './learner-port-options.ts';
import type { LearnerTurn } from './learner-turn.ts';

export interface ChannelSenderDependencies {
  readonly network: Network;
  readonly options: LearnerPortOptions;
  readonly log: RateLimitedLog;
  readonly turn: LearnerTurn;
}

/** A closing channel ranks after all others. */
const rankOfClosing = 3;

export class ChannelSender {
  readonly #network: Network;
  readonly #options: LearnerPortOptions;
  readonly #log: RateLimitedLog;
  readonly #turn: LearnerTurn;
  /** Memory for the output of all channels. */
  readonly pool = new WriterPool();
  readonly shared = new SharedBytes();
  readonly #sends = new SendList();
  /** Channels with output, or with an end to send. */
  #dirty: LearnerChannel[] = [];

  constructor({ network, options, log, turn }: ChannelSenderDependencies) {
    this.#network = network;
    this.#options = options;
    this.#log = log;
    this.#turn = turn;
  }

  markDirty(channel: LearnerChannel): void {
    if (channel.isDirty) return;
    channel.isDirty = true;
    this.#dirty.push(channel);
  }

  /** The network has accepted the slice in progress. */
  drained(channel: LearnerChannel): void {
    channel.output.sliceSent(false);
    channel.closingMs = this.#turn.now.elapsedMs;
    if (channel.stage === 'open') this.#turn.core.partSent(channel.stream, this.#turn.now);
    this.markDirty(channel);
  }

  flush(channels: PeerStreams<LearnerChannel>): void {
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
      this.#finishFlush(channel, channels);
      someWait ||= channel.output.waitingBytes > 0;
    }
    if (someWait) this.#enforceTotalLimit(channels);
  }

  #finishFlush(channel: LearnerChannel, channels: PeerStreams<LearnerChannel>): void {
    const { output } = channel;
    output.releaseEmptyWriter();
    const { waitingBytes } = output;
    if (channel.stage === 'closing') {
      if (waitingBytes === 0) channels.sendEnd(channel, this.#turn.now);
      return;
    }
    const { outputHighWaterBytes, queuedBytesMax } = this.#options;
    if (output.queuedBytes > queuedBytesMax) {
      this.#dropSlow(channel, `${waitingBytes} bytes wait for it, and it does not read them`, channels);
    } else if (channel.backpressureSignalled && waitingBytes <= outputHighWaterBytes) {
      channel.backpressureSignalled = false;
      this.#turn.core.channelDrained(channel.stream, this.#turn.now);
      // What has been written now is sent in the next turn.
      this.#turn.needsAnother = true;
    }
  }

  /**
   * The memory for all channels together has a limit, which more connections cannot exceed. The
   * heaviest of the last rank is cut off.
   */
  #enforceTotalLimit(channels: PeerStreams<LearnerChannel>): void {
    const { waitingBytesMax } = this.#options;
    for (let bytes = this.#waitingBytes(channels); bytes > waitingBytesMax; bytes = this.#waitingBytes(channels)) {
      let heaviest: LearnerChannel | undefined;
      let heaviestRank = -1;
      for (const channel of channels.values()) {
        const { waitingBytes } = channel.output;
        if (waitingBytes === 0) continue;
        const rank = channel.stage === 'open' ? this.#turn.core.channelRank(channel.stream) : rankOfClosing;
        const isHeavier = heaviest === undefined || waitingBytes > heaviest.output.waitingBytes;
        if (rank < heaviestRank || (rank === heaviestRank && !isHeavier)) continue;
        heaviest = channel;
        heaviestRank = rank;
      }
      if (heaviest === undefined) return;
      const reason = `${bytes} bytes wait for all learners, more than the limit of ${waitingBytesMax}, and most of them for this one`;
      this.#dropSlow(heaviest, reason, channels);
    }
  }

  #waitingBytes(channels: PeerStreams<LearnerChannel>): number {
    let { bytes } = this.shared;
    for (const { output } of channels.values()) bytes += output.ownBytes;
    return bytes;
  }

  #dropSlow(channel: LearnerChannel, reason: string, channels: PeerStreams<LearnerChannel>): void {
    const bytes = channel.output.waitingBytes;
    const remedy = 'Check its disk and the link to it; it may reconnect, and is sent what it lacks';
    this.#log.warn(this.#turn.now.elapsedMs, `${channel.name} was cut off: ${reason}. ${remedy}.`, {
      event: 'peer.slow',
      address: channel.name,
      bytes,
    });
    channels.drop(channel, this.#turn.now);
  }
}
