/**
 * The ports of servers of an ensemble, on a network in memory: recording cores, and hosts that send
 * raw bytes.
 */
import { type ChannelId, ChannelRank, type LeaderPort, type Now, silentObserver } from '@tskeeper/core';
import {
  type HostPort,
  type Notification,
  type PacketView,
  PacketView as View,
  type Sid,
  writeInitialMessage,
  writeNotification,
  Writer,
} from '@tskeeper/protocol';
import type { Endpoint, Listener, Logger, NetworkSink, StreamId } from '../../src/index.ts';
import {
  type ElectionCore,
  ElectionPort,
  electionPortDefaults,
  type ElectionPortOptions,
  type LearnerCore,
  LearnerPort,
  learnerPortDefaults,
  type LearnerPortOptions,
  type VirtualNetwork,
  type PeerServer,
  type VirtualCnxn,
  VirtualWire,
} from '../../src/internal.ts';
import { ManualClock } from '../../src/virtual/manual-clock.ts';

export const electionPort = 3888;
export const quorumPort = 2888;

export function addressOf(sid: Sid): string {
  return `10.0.0.${sid}`;
}

export function serverOf(sid: Sid, host: string = addressOf(sid)): PeerServer {
  return { sid, electionAddresses: [{ host, port: electionPort }], quorumAddresses: [{ host, port: quorumPort }] };
}

/** A notification that is identified by its round. */
export function noteOf(electionEpoch: number): Notification {
  return { state: 'looking', leader: 1, zxid: 5, peerEpoch: 0, electionEpoch, version: 2, config: 'version=0' };
}

export function frameOf(notification: Notification): Buffer {
  const writer = new Writer();
  const start = writer.beginFrame();
  writeNotification(writer, notification);
  writer.endFrame(start);
  return Buffer.from(writer.written());
}

export function initialOf(sid: Sid | undefined, addresses: HostPort[] = [], protocolVersion: number | undefined = -65536): Buffer {
  const writer = new Writer();
  const text = addresses.length > 0 ? addresses : [{ host: '0.0.0.0', port: electionPort }];
  writeInitialMessage(writer, { sid, protocolVersion, addresses: text });
  return Buffer.from(writer.written());
}

/** The clock, the network, and everything connected to it. */
export class Rig {
  readonly clock = new ManualClock(1_000_000);
  readonly wire = new VirtualWire(this.clock);

  /** Advances the time; look-ups complete in between. */
  async run(ms: number, stepMs = 1): Promise<void> {
    await this.settle();
    for (let left = ms; left > 0; left -= stepMs) {
      this.clock.advance(Math.min(left, stepMs));
      await this.settle();
    }
  }

  /** Runs everything that needs no time. */
  async settle(): Promise<void> {
    for (let quiet = 0; quiet < 4; quiet++) {
      this.clock.advance(0);
      for (let ticks = 0; ticks < 4; ticks++) await Promise.resolve();
    }
  }

  /** Connections that exist on both sides, or that are being closed. */
  get cnxns(): VirtualCnxn[] {
    return [...this.wire.cnxns];
  }
}

export interface NodeOptions {
  readonly election?: Partial<ElectionPortOptions>;
  readonly learner?: Partial<LearnerPortOptions>;
  readonly address?: string;
}

/** One server: both ports, and a core that records its calls. */
export class RigNode implements ElectionCore, LearnerCore {
  readonly rig: Rig;
  readonly sid: Sid;
  readonly network: VirtualNetwork;
  readonly election: ElectionPort;
  readonly learner: LearnerPort;
  readonly view: PacketView = new View(10_000_000);
  /** The calls of the core, in order. */
  readonly events: string[] = [];
  readonly notes: Notification[] = [];
  readonly lines: string[] = [];
  readonly debugLines: string[] = [];
  readonly channels = new Set<ChannelId>();
  /** Lengths of snapshots that follow packets of type SNAP. */
  readonly snapshots: number[] = [];
  snapshotLeft = 0;
  snapshot: Buffer[] = [];
  /** Called with each packet, inside the call of the core. */
  onPacket: (channel: ChannelId, packet: PacketView) => void = () => undefined;
  onDrained: (channel: ChannelId) => void = () => undefined;
  /** Inside a call of the core, which the port must not call again. */
  #inside = false;
  #wakeAt: object | undefined;
  isDead = false;
  listeners: Listener[] = [];
  turns = 0;

  constructor(rig: Rig, sid: Sid, servers: readonly PeerServer[], setup: NodeOptions = {}) {
    this.rig = rig;
    this.sid = sid;
    this.network = rig.wire.stack(setup.address ?? addressOf(sid));
    const logger: Logger = {
      debug: (line) => this.debugLines.push(line),
      info() {},
      warn: (line) => this.lines.push(line),
      error: (line) => this.lines.push(line),
    };
    const runTurn = (work: (now: Now) => void): void => this.runTurn(work);
    const common = { network: this.network, clock: rig.clock, limitObserver: silentObserver, logger, runTurn };
    this.election = new ElectionPort({ ...common, options: { ...electionPortDefaults, sid, ...setup.election } }, servers);
    this.learner = new LearnerPort({ ...common, view: this.view, options: { ...learnerPortDefaults, ...setup.learner } }, servers);
    this.election.attach(this);
    this.learner.attach(this);
    this.network.start({
      accepted: (stream, listener, remote) => {
        if (this.election.owns(listener)) runTurn((now) => this.election.accepted(stream, listener, remote, now));
        else runTurn((now) => this.learner.accepted(stream, listener, remote, now));
      },
      connected: (stream) =>
        runTurn((now) => {
          if (this.election.ownsStream(stream)) this.election.connected(stream, now);
          else this.learner.connected(stream, now);
        }),
      received: (batch) =>
        runTurn((now) => {
          this.election.received(batch, now);
          this.learner.received(batch, now);
        }),
      drained: (stream) =>
        runTurn((now) => {
          this.election.drained(stream, now);
          this.learner.drained(stream, now);
        }),
      ended: (stream) =>
        runTurn((now) => {
          this.election.ended(stream, now);
          this.learner.ended(stream, now);
        }),
      closed: (stream, error) =>
        runTurn((now) => {
          if (this.election.ownsStream(stream)) this.election.closed(stream, error, now);
          else this.learner.closed(stream, error, now);
        }),
    });
  }

  async listen(): Promise<this> {
    const host = this.network.address;
    for (const listener of [
      await this.election.listen({ host, port: electionPort }),
      await this.learner.listen({ host, port: quorumPort }),
    ]) {
      this.listeners.push(listener!);
    }
    return this;
  }

  /** The process ends: the system closes its sockets and its ports. */
  crash(): void {
    this.isDead = true;
    for (const listener of this.listeners) void listener.close();
    const { address } = this.network;
    for (const { dialer, listener, forward } of this.rig.cnxns) {
      if (dialer.address === address || listener.address === address) forward.resetAfter(0);
    }
  }

  runTurn(input: (now: Now) => void): void {
    if (this.isDead) return;
    this.turns++;
    const now = this.rig.clock.now();
    input(now);
    this.election.endTurn(now);
    this.learner.endTurn(now);
    if (this.#wakeAt !== undefined) this.rig.clock.cancel(this.#wakeAt);
    const isUnfinished = this.election.needsTurn || this.learner.needsTurn;
    const due = isUnfinished ? now.elapsedMs : Math.min(this.election.deadline() ?? Infinity, this.learner.deadline() ?? Infinity);
    this.#wakeAt =
      due === Infinity
        ? undefined
        : this.rig.clock.after(Math.max(0, due - now.elapsedMs), () =>
            this.runTurn((then) => {
              this.election.wake(then);
              this.learner.wake(then);
            }),
          );
  }

  notify(to: Sid, notification: Notification): void {
    this.runTurn(() => this.#within(() => this.election.notify(to, notification)));
  }

  dialLeader(sid: Sid, port: LeaderPort = 'quorum'): void {
    this.runTurn(() => this.#within(() => this.learner.dialLeader(sid, port)));
  }

  write(channel: ChannelId, bytes: Buffer): void {
    this.runTurn(() => this.#within(() => this.learner.packets(channel).raw(bytes)));
  }

  closeChannel(channel: ChannelId, text = 'the test says so'): void {
    this.runTurn(() => this.#within(() => this.learner.closeChannel(channel, 'stopped', text)));
  }

  /** A call of the core. It is never called back from inside one. */
  #within(call: () => void): void {
    if (this.#inside) throw new Error('the core was called from inside a call of its own');
    this.#inside = true;
    try {
      call();
    } finally {
      this.#inside = false;
    }
  }

  #hear(event: string): void {
    this.#within(() => void this.events.push(event));
  }

  // --- ElectionCore

  notified(from: Sid, notification: Notification): void {
    this.#hear(`${from}: ${notification.electionEpoch}`);
    this.notes.push(notification);
  }

  reachable(sid: Sid): void {
    this.#hear(`reachable ${sid}`);
  }

  unreachable(sid: Sid): void {
    this.#hear(`unreachable ${sid}`);
  }

  // --- LearnerCore

  accepted(channel: ChannelId): void {
    this.#hear(`accepted ${channel}`);
    this.channels.add(channel);
  }

  dialled(channel: ChannelId): void {
    this.#hear(`dialled ${channel}`);
    this.channels.add(channel);
  }

  dialFailed(outcome: 'refused' | 'unanswered'): void {
    this.#hear(`dialFailed ${outcome}`);
  }

  packet(channel: ChannelId, packet: PacketView): void {
    if (!this.channels.has(channel)) throw new Error(`a packet of channel ${channel}, which is gone`);
    this.#within(() => {
      this.events.push(`${channel}: type ${packet.type} zxid ${packet.zxid}`);
      if (packet.type === 15) this.snapshotLeft = this.snapshots.shift() ?? 0;
      this.onPacket(channel, packet);
    });
  }

  isReceivingSnapshot(): boolean {
    return this.snapshotLeft > 0;
  }

  feedSnapshot(_channel: ChannelId, bytes: Buffer): number {
    const count = Math.min(this.snapshotLeft, bytes.length);
    this.snapshot.push(Buffer.from(bytes.subarray(0, count)));
    this.snapshotLeft -= count;
    return count;
  }

  /** Number of calls for each channel. */
  readonly moves = new Map<ChannelId, number>();

  partReceived(channel: ChannelId): void {
    this.moves.set(channel, (this.moves.get(channel) ?? 0) + 1);
  }

  partSent(channel: ChannelId): void {
    this.moves.set(channel, (this.moves.get(channel) ?? 0) + 1);
  }

  readonly ranks = new Map<ChannelId, ChannelRank>();

  channelRank(channel: ChannelId): ChannelRank {
    return this.ranks.get(channel) ?? ChannelRank.voter;
  }

  channelDrained(channel: ChannelId): void {
    this.#within(() => {
      this.events.push(`drained ${channel}`);
      this.onDrained(channel);
    });
  }

  channelGone(channel: ChannelId): void {
    if (!this.channels.delete(channel)) throw new Error(`channel ${channel} is gone twice`);
    this.#hear(`gone ${channel}`);
  }
}

/** One end of a connection of a host that sends raw bytes. */
export interface RawEnd {
  readonly stream: StreamId;
  readonly remote: Endpoint | undefined;
  readonly pieces: Buffer[];
  readonly received: Buffer;
  ended: boolean;
  closed: string | undefined;
  send(bytes: Buffer): void;
  end(): void;
  reset(): void;
}

/** A host that does what the test says. It closes when the other side has. */
export class RawHost {
  readonly network: VirtualNetwork;
  readonly address: string;
  readonly accepted: RawEnd[] = [];
  /** Sent at once over each accepted connection. */
  says: Buffer | undefined;
  readonly #ends = new Map<StreamId, RawEnd>();
  /** To be sent once there is a connection. */
  readonly #early = new Map<StreamId, Buffer[]>();

  constructor(rig: Rig, address: string) {
    this.address = address;
    this.network = rig.wire.stack(address);
    const sink: NetworkSink = {
      accepted: (stream, _listener, remote) => {
        this.accepted.push(this.#add(stream, remote));
        if (this.says !== undefined) this.#send(stream, this.says);
      },
      connected: (stream) => {
        for (const bytes of this.#early.get(stream) ?? []) this.#send(stream, bytes);
        this.#early.delete(stream);
      },
      received: (batch) => {
        for (let index = 0; index < batch.count; index++) {
          const bytes = batch.buffers[index]!.subarray(batch.starts[index], batch.ends[index]);
          this.#ends.get(batch.streams[index]!)?.pieces.push(bytes);
        }
      },
      drained() {},
      ended: (stream) => {
        this.#ends.get(stream)!.ended = true;
        this.network.end(stream);
      },
      closed: (stream, error) => {
        this.#early.delete(stream);
        this.#ends.get(stream)!.closed = error ?? 'end';
        this.#ends.delete(stream);
      },
    };
    this.network.start(sink);
  }

  listen(port: number): Promise<Listener> {
    return this.network.listen({ address: undefined, port, backlog: undefined });
  }

  dial(address: string, port: number): RawEnd {
    const stream = this.network.connect({ address, port });
    this.#early.set(stream, []);
    return this.#add(stream, undefined);
  }

  #send(stream: StreamId, bytes: Buffer): void {
    this.network.send({ count: 1, streams: [stream], buffers: [bytes], starts: [0], ends: [bytes.length], kept: [] });
  }

  #add(stream: StreamId, remote: Endpoint | undefined): RawEnd {
    const { network } = this;
    const end: RawEnd = {
      stream,
      remote,
      pieces: [],
      get received() {
        return Buffer.concat(end.pieces);
      },
      ended: false,
      closed: undefined,
      send: (bytes) => {
        if (end.closed !== undefined) return;
        const early = this.#early.get(stream);
        if (early === undefined) this.#send(stream, bytes);
        else early.push(bytes);
      },
      end: () => network.end(stream),
      reset: () => {
        if (end.closed === undefined) network.reset(stream);
      },
    };
    this.#ends.set(stream, end);
    return end;
  }
}
