/**
 * The streams between a server and others. What the peer writes is cut into packets, each of which
 * is checked against the invariants and waits in the inbox of the other end until the explorer
 * delivers it.
 */
import { counterOf, epochOf, PacketDecoder, PacketType, PacketView, readAckEpoch, type Sid, Writer } from '@tskeeper/protocol';
import type { ChannelCloseReason, ChannelId, QuorumLinks } from '@tskeeper/core';
import type { Fingerprint } from '@tskeeper/core/internal';
import { Violation } from './invariants.ts';
import type { ServerState } from './server-environment.ts';
import { packetBytesMax } from './server-settings.ts';
import type { SmallDisk } from './small-disk.ts';
import { sidsOfMembers } from './small-ensemble.ts';
import type { SmallElection } from './small-election.ts';

/** One end of a stream. */
export interface StreamEnd {
  /** The server at this end, and the one at the other. */
  readonly owner: Sid;
  readonly from: Sid;
  readonly channel: ChannelId;
  readonly cutter: PacketDecoder;
  readonly writer: Writer;
  /** Packets that were sent to it and have not arrived. */
  readonly inbox: Buffer[];
  /** Undefined once that end is closed; then nothing follows what is in the inbox. */
  remoteEnd: StreamEnd | undefined;
  /** The epoch that was proposed over it. */
  proposedEpoch: number;
  /** The last packet over it that begins or ends a synchronisation; only for marks. */
  lastSyncPacket: 'nothing' | 'DIFF' | 'TRUNC' | 'SNAP' | 'NEWLEADER' | 'ACK' | 'UPTODATE';
}

export class SmallStreams implements QuorumLinks {
  readonly #server: ServerState;
  readonly #disk: SmallDisk;
  readonly #election: SmallElection;
  /** The view of all packets, shared with the peer. */
  readonly view = new PacketView();
  readonly ends = new Map<ChannelId, StreamEnd>();
  /** The streams that the peer has closed without knowing yet that they are gone. */
  readonly #closed: ChannelId[] = [];
  /** The leader to which the peer wants a stream. */
  dialing: Sid | undefined;
  /** Whether the peer sends what it reads from the log; only for marks. */
  isReadingLog = false;

  constructor(server: ServerState, disk: SmallDisk, election: SmallElection) {
    this.#server = server;
    this.#disk = disk;
    this.#election = election;
  }

  // --- what the peer does

  dialLeader(sid: Sid): void {
    this.#election.follows();
    this.dialing = sid;
  }

  cancelDial(): void {
    this.dialing = undefined;
  }

  packets(channel: ChannelId): Writer {
    return this.ends.get(channel)?.writer ?? new Writer(64);
  }

  writeShared(channel: ChannelId, bytes: Buffer, start: number): void {
    this.packets(channel).raw(bytes, start, bytes.length);
  }

  channelIsFull(): boolean {
    return false;
  }

  closeChannel(channel: ChannelId, reason: ChannelCloseReason, text: string): void {
    const end = this.ends.get(channel);
    if (end === undefined) return;
    const { sid, world } = this.#server;
    // Servers that follow the protocol never close a stream for this reason.
    if (reason === 'protocol error') throw new Violation('NoProtocolError', `${sid} closes a stream: ${text}`);
    if (reason === 'learner has a later history') world.hit('learner ahead of its leader');
    this.#send(end);
    if (end.remoteEnd !== undefined) end.remoteEnd.remoteEnd = undefined;
    this.close(end);
    this.#closed.push(channel);
  }

  // --- what happens to streams

  open(from: Sid): StreamEnd {
    let channel = 0;
    while (this.ends.has(channel)) channel++;
    const end: StreamEnd = {
      owner: this.#server.sid,
      from,
      channel,
      cutter: new PacketDecoder(packetBytesMax, this.view),
      writer: new Writer(64),
      inbox: [],
      remoteEnd: undefined,
      proposedEpoch: 0,
      lastSyncPacket: 'nothing',
    };
    this.ends.set(channel, end);
    return end;
  }

  close(end: StreamEnd): void {
    const { lastSyncPacket, channel } = end;
    // Nothing after the packet that closed the stream is read.
    end.cutter.close();
    this.ends.delete(channel);
    const isSyncing =
      lastSyncPacket === 'DIFF' || lastSyncPacket === 'TRUNC' || lastSyncPacket === 'SNAP' || lastSyncPacket === 'NEWLEADER';
    const { peer, world } = this.#server;
    if (!isSyncing || peer?.role !== 'learning') return;
    world.hit('leader lost while syncing');
    if (this.#disk.logQueue.some(({ kind }) => kind === 'truncate')) world.hit('leader lost while truncating');
  }

  /** The next stream that the peer has closed, of which it must learn that it is gone. */
  takeClosed(): ChannelId | undefined {
    return this.#closed.shift();
  }

  /** The server has crashed. */
  crash(): void {
    this.dialing = undefined;
    for (const end of this.ends.values()) if (end.remoteEnd !== undefined) end.remoteEnd.remoteEnd = undefined;
    this.ends.clear();
    this.#closed.length = 0;
  }

  // --- packets

  /** A packet has arrived, and the peer will process it. */
  received(end: StreamEnd, { type, zxid }: PacketView): void {
    if (type === PacketType.LEADERINFO) end.proposedEpoch = epochOf(zxid);
    this.#noteSyncPacket(end, type);
  }

  /** Sends what the peer has written in this turn. */
  flush(): void {
    for (const end of this.ends.values()) this.#send(end);
  }

  /** Sends packet by packet; a snapshot belongs to the packet before it. */
  #send(end: StreamEnd): void {
    const { writer, remoteEnd } = end;
    if (writer.offset === 0) return;
    const bytes = Buffer.from(writer.written());
    writer.clear();
    const splitter = new PacketDecoder(packetBytesMax);
    splitter.feed(bytes, 0, bytes.length, {
      packet: (packet) => {
        this.#sent(end, packet);
        const isSnapshot = packet.type === PacketType.SNAP;
        // Bytes that follow the snapshot in the stream are part of the same piece.
        remoteEnd?.inbox.push(bytes.subarray(packet.start, isSnapshot ? bytes.length : packet.end));
        if (isSnapshot) splitter.beginRaw();
        return true;
      },
      raw: (_chunk, _start, stop) => stop,
    });
  }

  #sent(end: StreamEnd, { type, zxid, data }: PacketView): void {
    const { sid, world } = this.#server;
    const { invariants } = world;
    if (type === PacketType.ACK) {
      invariants.acknowledged(zxid, this.#server.view());
      if (counterOf(zxid) === 0) end.lastSyncPacket = 'ACK';
      else if (world.verifier.weight(sid) === 0) world.hit('ACK of weight 0');
    } else if (type === PacketType.LEADERINFO) {
      invariants.epochProposed(epochOf(zxid), this.#server.view());
      world.epochProposed(sid, epochOf(zxid));
    } else if (type === PacketType.ACKEPOCH) {
      invariants.epochAccepted(end.proposedEpoch, this.#server.view());
      if (readAckEpoch(data) === -1) world.hit('epoch accepted before');
    } else if (type === PacketType.UPTODATE) {
      if (!sidsOfMembers(world.membersInForce).includes(end.from)) world.hit('joiner synchronised');
    } else if (type === PacketType.INFORM) {
      world.hit('INFORM');
    } else if (type === PacketType.PROPOSAL && end.lastSyncPacket === 'DIFF') {
      world.hit(this.isReadingLog ? 'DIFF from the log' : 'DIFF from memory');
    } else if (type === PacketType.PROPOSAL && end.lastSyncPacket === 'TRUNC') {
      world.hit('txns after TRUNC');
    } else if (type === PacketType.TRUNC || type === PacketType.SNAP) {
      world.hit(type === PacketType.TRUNC ? 'TRUNC' : 'SNAP');
    }
    this.#noteSyncPacket(end, type);
  }

  #noteSyncPacket(end: StreamEnd, type: number): void {
    if (type === PacketType.DIFF) end.lastSyncPacket = 'DIFF';
    else if (type === PacketType.TRUNC) end.lastSyncPacket = 'TRUNC';
    else if (type === PacketType.SNAP) end.lastSyncPacket = 'SNAP';
    else if (type === PacketType.NEWLEADER) end.lastSyncPacket = 'NEWLEADER';
    else if (type === PacketType.UPTODATE) end.lastSyncPacket = 'UPTODATE';
  }

  fingerprint(to: Fingerprint): void {
    to.number(this.dialing ?? -1);
    to.number(this.ends.size);
    for (const channel of [...this.ends.keys()].sort((a, b) => a - b)) {
      const { from, remoteEnd, inbox, proposedEpoch } = this.ends.get(channel)!;
      for (const number of [channel, from, remoteEnd === undefined ? 0 : 1, remoteEnd?.channel ?? -1, proposedEpoch, inbox.length])
        to.number(number);
      for (const bytes of inbox) to.text(bytes.toString('latin1'));
    }
  }
}
