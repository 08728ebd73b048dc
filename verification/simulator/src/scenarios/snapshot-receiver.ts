/**
 * An unknown observer: it joins as a server that no configuration lists, and reads the snapshot it
 * is sent, or reads nothing, without ever acknowledging it.
 */
import { PacketType, type Sid, Writer, writeAckEpoch, writeLearnerInfo, writeQuorumPacket, type Zxid } from '@tskeeper/protocol';
import type { Endpoint, StreamId } from '@tskeeper/runtime';
import type { VirtualWorld } from '../world/virtual-world.ts';

export class SnapshotReceiver {
  /** Bytes received so far. */
  receivedBytes = 0;
  isGone = false;

  constructor(world: VirtualWorld, address: string, leader: Endpoint, sid: Sid, isSilent: boolean) {
    const stack = world.wire.stack(address);
    const send = (stream: StreamId, type: number, zxid: Zxid, data: Writer): void => {
      const packet = new Writer(64);
      writeQuorumPacket(packet, { type, zxid, data: data.written(), authinfo: null });
      stack.send({ count: 1, streams: [stream], buffers: [packet.bytes], starts: [0], ends: [packet.offset], kept: [false] });
    };
    let hasAnswered = false;
    stack.start({
      accepted() {},
      connected: (stream) => {
        const info = new Writer(32);
        writeLearnerInfo(info, { serverId: sid, configVersion: 0 });
        send(stream, PacketType.OBSERVERINFO, 0, info);
      },
      received: ({ count, streams, starts, ends }) => {
        for (let at = 0; at < count; at++) this.receivedBytes += ends[at]! - starts[at]!;
        if (hasAnswered) return;
        hasAnswered = true;
        const epoch = new Writer(8);
        writeAckEpoch(epoch, 0);
        send(streams[0]!, PacketType.ACKEPOCH, 0, epoch);
        if (isSilent) stack.pause(streams[0]!);
      },
      drained() {},
      ended() {},
      closed: () => {
        this.isGone = true;
      },
    });
    stack.connect(leader);
  }
}
