/**
 * The stages of a learner, in the order in which it goes through them, and how it ends.
 *
 * A stage decides which packets may arrive and how long the leader may be silent. No stage is
 * entered twice, except that a learner can be over after any of them; an election follows.
 */
import { type Millis, packetTypeName, type PacketView } from '@tskeeper/protocol';
import type { ConnectFailure } from './leader-connector.ts';
import type { ChannelId, QuorumLinks } from './quorum-links.ts';
import type { RoleEndReason } from '../role-end.ts';
import type { ZabOptions } from './zab-options.ts';

export type LearnerStage =
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
  | 'flushing'
  | 'saving currentEpoch'
  /** NEWLEADER has been acknowledged. */
  | 'synchronised'
  /** UPTODATE has arrived: clients are served. */
  | 'serving'
  | 'over';

export class LearnerStages {
  readonly #options: ZabOptions;
  readonly #links: QuorumLinks;
  readonly #channel: ChannelId;
  #stage: LearnerStage = 'introduced';
  #endReason: RoleEndReason | undefined;
  #endText = '';
  /**
   * Set if it was over before LEADERINFO, because the stream was closed or silent: it counts as a
   * failed attempt to reach the leader.
   */
  connectFailure: ConnectFailure | undefined;

  constructor(options: ZabOptions, links: QuorumLinks, channel: ChannelId) {
    this.#options = options;
    this.#links = links;
    this.#channel = channel;
  }

  get stage(): LearnerStage {
    return this.#stage;
  }

  enter(stage: Exclude<LearnerStage, 'over'>): void {
    this.#stage = stage;
  }

  get isOver(): boolean {
    return this.#stage === 'over';
  }

  /** Why it is over; undefined while it is not. */
  get endReason(): RoleEndReason | undefined {
    return this.#endReason;
  }

  /** The same, for the operator. */
  get endText(): string {
    return this.#endText;
  }

  /** LEADERINFO has not arrived. */
  get isUnanswered(): boolean {
    return this.#stage === 'introduced';
  }

  /** The disk is working on something that must be done before the next packet. */
  get isWaitingForDisk(): boolean {
    const stage = this.#stage;
    return stage === 'saving acceptedEpoch' || stage === 'truncating' || stage === 'loading' || stage === 'installing';
  }

  /** Txns of the history, or proposals beyond it, arrive before UPTODATE. */
  get isSynchronising(): boolean {
    const stage = this.#stage;
    return stage === 'synchronising' || stage === 'flushing' || stage === 'saving currentEpoch' || stage === 'synchronised';
  }

  /** NEWLEADER has been acknowledged: this server is part of the epoch. */
  get isSynced(): boolean {
    return this.#stage === 'synchronised' || this.#stage === 'serving';
  }

  get isServing(): boolean {
    return this.#stage === 'serving';
  }

  get silentMaxMs(): Millis {
    const { tickTimeMs, initLimitTicks, syncLimitTicks } = this.#options;
    // A proxy that accepts for the leader may be silent forever; a leader sends LEADERINFO as soon
    // as a quorum has connected, which should not take longer than another election. Later it may
    // have to wait for a disk, or for snapshots sent to others.
    const isShort = this.#stage === 'introduced' || this.isSynced;
    return (isShort ? syncLimitTicks : initLimitTicks) * tickTimeMs;
  }

  /**
   * Checks that a packet arrives in its stage; otherwise leader and learner disagree on the
   * protocol.
   */
  expect(stage: LearnerStage, { type }: PacketView): boolean {
    if (this.#stage === stage) return true;
    this.end('protocol error', `the leader sent ${packetTypeName(type)} out of order (stage: ${this.#stage})`);
    return false;
  }

  /** Ends learning and closes the stream; does nothing if it has ended before. */
  end(reason: RoleEndReason, text: string): void {
    if (this.#stage === 'over') return;
    this.#stage = 'over';
    this.#endReason = reason;
    this.#endText = text;
    this.#links.closeChannel(this.#channel, reason, text);
  }
}
