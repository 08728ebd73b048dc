/**
 * The learner port: the streams between a leader and its learners. A leader accepts them at its
 * quorum address, a learner dials that of its leader; from then on both ends are alike. A follower
 * may accept observers in the same way, at another address (observerMasterPort). Packets go
 * both ways, and from the leader sometimes a raw snapshot between them.
 *
 * No stream waits for another. What a slow learner has not read waits, up to a limit; one that
 * reads nothing is cut off, and closing a stream is complete for the core at the end of the turn
 * (ZOOKEEPER-2201, -3574, -3774: one learner blocked a leader).
 *
 * The owner drives it in turns, as the client port: events as they occur, then `endTurn` once. All
 * packets of a turn for a learner are sent in one write.
 *
 * This file has the inputs and their order; each part of the work has its own file: leader-dial (a
 * learner dials its leader), learner-channels (bytes to the core) and channel-sender (bytes to
 * other servers, and what may wait for them).
 */
import type { ChannelCloseReason, ChannelId, LeaderPort, Now, Observer, QuorumLinks } from '@tskeeper/core';
import type { HostPort, Millis, PacketView, Sid, Writer } from '@tskeeper/protocol';
import type { Clock } from '../../clock.ts';
import type { Logger } from '../../logger.ts';
import type { Endpoint, Listener, Network, ReceivedBatch, StreamId } from '../../network.ts';
import { Dialler } from '../dialler.ts';
import { DiscardSink } from '../discard-sink.ts';
import type { PeerServer } from '../peer-server.ts';
import type { PeerStreams } from '../peer-streams.ts';
import { RateLimitedLog } from '../rate-limited-log.ts';
import { ChannelSender } from './channel-sender.ts';
import { LeaderDial } from './leader-dial.ts';
import type { LearnerChannel } from './learner-channel.ts';
import { LearnerChannels } from './learner-channels.ts';
import type { LearnerCore } from './learner-core.ts';
import type { LearnerPortOptions } from './learner-port-options.ts';
import { LearnerTurn } from './learner-turn.ts';

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

export class LearnerPort implements QuorumLinks {
  readonly #options: LearnerPortOptions;
  readonly #limitObserver: Pick<Observer, 'limitReached'>;
  readonly #log: RateLimitedLog;
  readonly #turn = new LearnerTurn();
  readonly #dialler: Dialler;
  readonly #dial: LeaderDial;
  readonly #sender: ChannelSender;
  readonly #channels: LearnerChannels;
  readonly #streams: PeerStreams<LearnerChannel>;
  readonly #discardSink = new DiscardSink();

  constructor(dependencies: LearnerPortDependencies, servers: readonly PeerServer[]) {
    const { network, clock, options, view, limitObserver, logger } = dependencies;
    const turn = this.#turn;
    const log = new RateLimitedLog(logger);
    const dialler = new Dialler(dependencies);
    const sender = new ChannelSender({ network, options, log, turn });
    this.#options = options;
    this.#limitObserver = limitObserver;
    this.#log = log;
    this.#dialler = dialler;
    this.#dial = new LeaderDial({ options, logger, log, turn, dialler });
    this.#sender = sender;
    this.#channels = new LearnerChannels({ network, clock, options, view, limitObserver, log, turn, sender });
    this.#streams = this.#channels.streams;
    this.setServers(servers);
  }

  /** Sets another configuration, which the next dial uses. */
  setServers(servers: readonly PeerServer[]): void {
    this.#dial.setServers(servers);
  }

  /**
   * Sets the core that this port delivers to. It is made after the port, which it writes to at
   * once.
   */
  attach(core: LearnerCore): void {
    this.#turn.core = core;
  }

  // --- Listening

  /**
   * Listens on one of this server's quorum addresses, or on one for observers; see
   * `PeerStreams.listen`.
   */
  listen(address: HostPort, port: LeaderPort = 'quorum'): Promise<Listener | undefined> {
    return this.#streams.listen(address, port === 'quorum' ? 'quorum port' : 'port for observers');
  }

  /**
   * Stops accepting until the next `listen`; existing channels stay. For a server that has ceased
   * to lead: a refused learner connects again a moment later, as does one that is accepted and
   * closed; but the latter has been accepted by a leader first.
   */
  stopListening(): Promise<void> {
    return this.#streams.stopListening();
  }

  owns(listener: Listener): boolean {
    return this.#streams.owns(listener);
  }

  ownsStream(stream: StreamId): boolean {
    return this.#streams.has(stream) || this.#dialler.ownsStream(stream);
  }

  /** Closes all connections at once, without what waits to be sent. */
  dropAll(now: Now): void {
    this.#turn.now = now;
    this.#streams.dropAll(now);
  }

  /**
   * Stops accepting and dialling, and closes all channels; output written to them is still sent.
   */
  async shutDown(now: Now): Promise<void> {
    this.#turn.now = now;
    this.#dial.shutDown();
    await this.#streams.shutDown(now);
  }

  // --- What the network reports

  accepted(stream: StreamId, listener: Listener, remote: Endpoint, now: Now): void {
    this.#turn.now = now;
    this.#streams.accepted(stream, listener, remote, now);
  }

  connected(stream: StreamId, now: Now): void {
    this.#turn.now = now;
    this.#dialler.connected(stream, now);
  }

  /** Takes the channels of this port out of the batch and ignores the others. */
  received(batch: ReceivedBatch, now: Now): void {
    this.#turn.now = now;
    this.#streams.received(batch, now);
  }

  drained(stream: StreamId, now: Now): void {
    this.#turn.now = now;
    const channel = this.#streams.get(stream);
    if (channel !== undefined && channel.output.writePending) this.#sender.drained(channel);
  }

  ended(stream: StreamId, now: Now): void {
    this.#turn.now = now;
    this.#streams.ended(stream, now);
  }

  closed(stream: StreamId, error: string | undefined, now: Now): void {
    this.#turn.now = now;
    // At once and not at the end of the turn: from here on its number may be used again.
    if (this.#streams.closed(stream, now)) this.#channels.reportGone();
    else this.#dialler.closed(stream, error, now);
  }

  // --- What the core asks for

  /**
   * As `QuorumLinks.dialLeader`: it completes as `dialled` or `dialFailed`. A dial in progress is
   * cancelled, and completes as neither.
   */
  dialLeader(sid: Sid, port: LeaderPort = 'quorum'): void {
    this.#dial.request(sid, port);
  }

  /** As `QuorumLinks.cancelDial`. */
  cancelDial(): void {
    this.#dial.cancel();
  }

  /** As `QuorumLinks.packets`. */
  packets(id: ChannelId): Writer {
    const channel = this.#streams.get(id);
    if (channel === undefined || channel.stage !== 'open') {
      return this.#discardSink.writer();
    }
    this.#sender.markDirty(channel);
    return channel.output.writer();
  }

  /** As `QuorumLinks.writeShared`. */
  writeShared(id: ChannelId, bytes: Buffer, start: number): void {
    const channel = this.#streams.get(id);
    if (channel === undefined || channel.stage !== 'open') return;
    this.#sender.markDirty(channel);
    if (bytes.length - start < this.#options.sharedBytesMin) channel.output.writer().raw(bytes, start, bytes.length);
    else channel.output.writeShared(bytes, start);
  }

  /** As `QuorumLinks.channelIsFull`: `channelDrained` follows when there is room again. */
  channelIsFull(id: ChannelId): boolean {
    const channel = this.#streams.get(id);
    if (channel === undefined || channel.stage !== 'open' || channel.output.waitingBytes <= this.#options.outputHighWaterBytes)
      return false;
    channel.backpressureSignalled = true;
    this.#limitObserver.limitReached('learnerOutputHighWaterBytes');
    return true;
  }

  /**
   * As `QuorumLinks.closeChannel`. The core gets `channelGone` at the end of the turn, whether or
   * not the other side reads what was written.
   */
  closeChannel(id: ChannelId, _reason: ChannelCloseReason, text: string): void {
    const channel = this.#streams.get(id);
    if (channel === undefined || channel.stage !== 'open') return;
    this.#log.warn(this.#turn.now.elapsedMs, `The connection with ${channel.name} was closed: ${text}.`, {
      event: 'peer.closed',
      address: channel.name,
      reason: text,
    });
    this.#streams.close(channel, this.#turn.now);
  }

  // --- Time

  /** When to call `wake` if nothing else happens. */
  deadline(): Millis | undefined {
    const due = Math.min(this.#dialler.deadline() ?? Infinity, this.#streams.deadline() ?? Infinity);
    return due === Infinity ? undefined : due;
  }

  /** There is more work that can be done at once: the owner should run another turn soon. */
  get needsTurn(): boolean {
    return this.#turn.needsAnother;
  }

  /** Closes channels that have timed out. */
  wake(now: Now): void {
    this.#turn.now = now;
    this.#dialler.wake(now);
    this.#streams.wake(now);
  }

  // --- The end of a turn

  /** Feeds channels that had to wait, dials if requested, and sends all output at once. */
  endTurn(now: Now): void {
    this.#turn.now = now;
    this.#turn.needsAnother = false;
    if (this.#streams.resumeStalled()) this.#turn.needsAnother = true;
    this.#channels.reportGone();
    this.#dial.startRequested(this.#streams);
    this.#sender.flush(this.#streams);
    // Channels that were cut off for reading nothing are gone for the core as well.
    this.#channels.reportGone();
  }
}
