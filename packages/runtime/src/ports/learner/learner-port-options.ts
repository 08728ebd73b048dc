/**
 * What a learner port can be configured with. Most of it limits the memory that other servers can
 * take: a leader must survive a learner that reads nothing, and connections of unknown servers.
 */
import type { Millis } from '@tskeeper/protocol';

export interface LearnerPortOptions {
  /** jute.maxbuffer and its extra: the largest size of a packet's data. */
  readonly packetBytesMax: number;
  /** For a whole dial: initLimit ticks, or connectToLearnerMasterLimit. */
  readonly dialTimeoutMs: Millis;
  /** Of these, for one look-up of a name or one address. */
  readonly cnxTimeoutMs: Millis;
  /**
   * multiAddress.reachabilityCheckTimeoutMs: after which the next address of the leader is tried as
   * well; undefined: they are tried one after the other.
   */
  readonly reachabilityCheckTimeoutMs?: Millis | undefined;
  /** initLimit ticks: limit for the first packet of a new connection. */
  readonly firstPacketTimeoutMs: Millis;
  /** Number of tries to listen; 0 = no limit. */
  readonly bindTriesMax: number;
  /** Limit of connections that have not sent a packet. */
  readonly halfOpenMax: number;
  /** Waiting output above which a channel reports that it is full. */
  readonly outputHighWaterBytes: number;
  /** Limit of what may wait after the output of one turn; above it the channel is reset. */
  readonly queuedBytesMax: number;
  /**
   * Limit of what may wait for all channels together; above it channels are reset, those of unknown
   * servers first.
   */
  readonly waitingBytesMax: number;
  /**
   * Bytes for several channels are held once from this size on. Fewer are copied, which costs less
   * than a piece of its own.
   */
  readonly sharedBytesMin: number;
  /** Packets of one channel before another gets its turn. */
  readonly packetsPerQuantum: number;
}

export const learnerPortDefaults: LearnerPortOptions = {
  packetBytesMax: 2 * 0xfffff,
  dialTimeoutMs: 20_000,
  cnxTimeoutMs: 5000,
  firstPacketTimeoutMs: 20_000,
  bindTriesMax: 3,
  halfOpenMax: 256,
  outputHighWaterBytes: 1024 * 1024,
  queuedBytesMax: 64 * 1024 * 1024,
  waitingBytesMax: 128 * 1024 * 1024,
  sharedBytesMin: 4096,
  packetsPerQuantum: 1024,
};
