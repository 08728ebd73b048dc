import type { Millis, PacketDecoder } from '@tskeeper/protocol';
import type { Endpoint, StreamId } from '../../network.ts';
import { ChannelOutput } from '../channel-output.ts';
import { PeerStream } from '../peer-streams.ts';
import type { SharedBytes } from '../shared-bytes.ts';
import type { WriterPool } from '../writer-pool.ts';

/**
 * A stream between a leader and a learner, at either end. The core does not know it while it is
 * half open: no packet has arrived.
 */
export class LearnerChannel extends PeerStream {
  readonly packetDecoder: PacketDecoder;
  readonly output: ChannelOutput;
  isDirty = false;
  /** `channelIsFull` has returned true: the core needs `channelDrained` when there is room. */
  backpressureSignalled = false;

  constructor(stream: StreamId, remote: Endpoint, sinceMs: Millis, cutter: PacketDecoder, pool: WriterPool, shared: SharedBytes) {
    super(stream, remote, sinceMs);
    this.packetDecoder = cutter;
    this.output = new ChannelOutput(stream, pool, shared);
  }

  override discardOutput(): void {
    this.output.discard();
  }
}
