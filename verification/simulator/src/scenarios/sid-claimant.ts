/**
 * A peer outside the ensemble at the quorum port of a leader. It sends what the scenario says, true
 * or not.
 */
import { makeZxid, PacketType, type Sid, Writer, writeAckEpoch, writeLearnerInfo, writeQuorumPacket } from '@tskeeper/protocol';
import type { Network, StreamId } from '@tskeeper/runtime';
import { quorumPort } from '../world/peer-ports.ts';
import type { VirtualWorld } from '../world/virtual-world.ts';

interface SentPacket {
  readonly type: number;
  readonly zxid: number;
  readonly write?: (writer: Writer) => void;
}

export class SidClaimant {
  readonly #network: Network;
  readonly #introductions = new Map<StreamId, Buffer>();
  readonly #answeredStreams = new Set<StreamId>();

  constructor(world: VirtualWorld, address: string) {
    this.#network = world.wire.stack(address);
    this.#network.start({
      accepted() {},
      connected: (stream) => this.#send(stream, this.#introductions.get(stream)!),
      received: (batch) => {
        for (let at = 0; at < batch.count; at++) this.#answeredStreams.add(batch.streams[at]!);
      },
      drained() {},
      ended: (stream) => this.#network.end(stream),
      closed: (stream) => void this.#introductions.delete(stream),
    });
  }

  /** Its open connections. */
  get openCount(): number {
    return this.#introductions.size;
  }

  /** Those of them over which it received something. */
  get answeredCount(): number {
    return [...this.#introductions.keys()].filter((stream) => this.#answeredStreams.has(stream)).length;
  }

  /** Claims to be the server `sid` with this accepted epoch. Then it sends nothing more. */
  claimSid(address: string, sid: Sid, type: number, epoch: number): void {
    const stream = this.#network.connect({ address, port: quorumPort });
    this.#answeredStreams.delete(stream);
    const info: SentPacket = {
      type,
      zxid: makeZxid(epoch, 0),
      write: (writer) => writeLearnerInfo(writer, { serverId: sid, configVersion: 0 }),
    };
    this.#introductions.set(stream, packetsOf([info]));
  }

  /** Proceeds to the state in which it is sent everything. */
  acceptEpoch(epoch: number): void {
    for (const stream of this.#introductions.keys()) {
      const accepted: SentPacket = { type: PacketType.ACKEPOCH, zxid: 0, write: (writer) => writeAckEpoch(writer, -1) };
      this.#send(stream, packetsOf([accepted, { type: PacketType.ACK, zxid: makeZxid(epoch, 0) }]));
    }
  }

  #send(stream: StreamId, bytes: Buffer): void {
    this.#network.send({ count: 1, streams: [stream], buffers: [bytes], starts: [0], ends: [bytes.length], kept: [] });
  }
}

function packetsOf(said: readonly SentPacket[]): Buffer {
  const packets = new Writer(64);
  for (const { type, zxid, write } of said) {
    const data = new Writer(32);
    write?.(data);
    writeQuorumPacket(packets, { type, zxid, data: write === undefined ? null : data.written(), authinfo: null });
  }
  return Buffer.from(packets.written());
}
