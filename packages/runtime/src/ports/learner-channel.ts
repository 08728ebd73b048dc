import { type Millis, PacketCutter, type PacketView } from '@tskeeper/protocol';
import type { Endpoint, StreamId } from '../network.ts';
import { ChannelOutput } from './channel-output.ts';
import type { WriterPool } from './writer-pool.ts';

/** A stream between a leader and a learner, at either end. */
export class LearnerChannel {
  readonly stream: StreamId;
  readonly remote: Endpoint;
  readonly sinceMs: Millis;
  /** `half-open`: it was accepted and has brought no packet; the core does not know it. `closing`: what was written is sent, nothing is read. */
  stage: 'half-open' | 'open' | 'closing' = 'half-open';
  readonly cutter: PacketCutter;
  readonly output: ChannelOutput;
  isDirty = false;
  /** The core was told that much waits, and has to hear when there is room. */
  saidFull = false;
  /** Packets wait in the cutter for the next turn; the channel is not read meanwhile. */
  isStalled = false;
  /** The other side will say nothing more, and has not been heard to the end. */
  hasEnded = false;
  endSent = false;
  /** When it was closed here, or when something of what it is still to be sent was last taken. */
  closingMs: Millis = 0;
  discardedBytes = 0;

  constructor(stream: StreamId, remote: Endpoint, sinceMs: Millis, packetBytesMax: number, view: PacketView, pool: WriterPool) {
    this.stream = stream;
    this.remote = remote;
    this.sinceMs = sinceMs;
    this.cutter = new PacketCutter(packetBytesMax, view);
    this.output = new ChannelOutput(stream, pool);
  }
}
