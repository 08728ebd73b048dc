/**
 * A peer outside the ensemble at the quorum port of a leader. It sends what the scenario says, true
 * or not.
 */
import { makeZxid, PacketType, type Sid, Writer, writeAckEpoch, writeLearnerInfo, writeQuorumPacket } from '@tskeeper/protocol';
import type { Network, StreamId } from '@tskeeper/runtime';
import { quorumPort } from '../world/peer-ports.ts';
import type { VirtualWorld } from '../world/virtual-world.ts';

interface Said {
  readonly type: number;
  readonly zxid: number;
  readonly write?: (writer: Writer) => void;
}

export class Stranger {
  readonly #network: Network;
  readonly #said = new Map<StreamId, Buffer>();
  readonly #heard = new Set<StreamId>();

  constructor(world: VirtualWorld, address: string) {
    this.#network = world.wire.stack(address);
    this.#network.start({
      accepted() {},
      connected: (stream) => this.#send(stream, this.#said.get(stream)!),
      received: (batch) => {
        for (let at = 0; at < batch.count; at++) this.#heard.add(batch.streams[at]!);
      },
      drained() {},
      ended: (stream) => this.#network.end(stream),
      closed: (stream) => void this.#said.delete(stream),
    });
  }

  /** Its open connections. */
  get connections(): number {
    return this.#said.size;
  }

  /** Those of them over which it received something. */
  get answered(): number {
    return [...this.#said.keys()].filter((stream) => this.#heard.has(stream)).length;
  }

  /** Claims to be the server `sid` with this accepted epoch. Then it sends nothing more. */
  claims(address: string, sid: Sid, type: number, epoch: number): void {
    const stream = this.#network.connect({ address, port: quorumPort });
    this.#heard.delete(stream);
    const info: Said = { type, zxid: makeZxid(epoch, 0), write: (writer) => writeLearnerInfo(writer, { serverId: sid, configVersion: 0 }) };
    this.#said.set(stream, packetsOf([info]));
  }

  /** Proceeds to the state in which it is sent everything. */
  acceptsEpoch(epoch: number): void {
    for (const stream of this.#said.keys()) {
      const accepted: Said = { type: PacketType.ACKEPOCH, zxid: 0, write: (writer) => writeAckEpoch(writer, -1) };
      this.#send(stream, packetsOf([accepted, { type: PacketType.ACK, zxid: makeZxid(epoch, 0) }]));
    }
  }

  #send(stream: StreamId, bytes: Buffer): void {
    this.#network.send({ count: 1, streams: [stream], buffers: [bytes], starts: [0], ends: [bytes.length], kept: [] });
  }
}

function packetsOf(said: readonly Said[]): Buffer {
  const packets = new Writer(64);
  for (const { type, zxid, write } of said) {
    const data = new Writer(32);
    write?.(data);
    writeQuorumPacket(packets, { type, zxid, data: write === undefined ? null : data.written(), authinfo: null });
  }
  return Buffer.from(packets.written());
}
