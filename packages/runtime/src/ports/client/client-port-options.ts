/**
 * The settings of a client port: those that the configuration has a key for, and sizes that only a
 * simulator changes.
 */
import { stepUnitsDefault } from '@tskeeper/core/internal';
import type { Millis } from '@tskeeper/protocol';

export interface ClientPortOptions {
  /** jute.maxbuffer: the longest frame accepted. */
  readonly juteMaxBuffer: number;
  /** maxClientCnxns: connections per address; 0 = no limit. */
  readonly maxClientCnxns: number;
  /** maxCnxns, or what descriptors allow: connections in all; 0 = no limit. */
  readonly maxCnxns: number;
  /** The remedy for `maxCnxns`: the rest of a sentence that begins with "Raise". */
  readonly maxCnxnsRemedy: string;
  /** zookeeper.nio.sessionlessCnxnTimeout: how long a connection may stay without a handshake. */
  readonly sessionlessTimeoutMs: Millis;
  /** With more connections without a handshake than this, the oldest are closed early. */
  readonly halfOpenMax: number;
  /** But never one that has not had this long. See docs/decisions/half-open-connections.md. */
  readonly halfOpenGraceMs: Millis;
  /** zookeeper.largeRequestThreshold: frames longer than this count as large; -1 = none does. */
  readonly largeRequestThreshold: number;
  /** zookeeper.largeRequestMaxBytes: limit of all large requests in flight. */
  readonly largeRequestMaxBytes: number;
  /** New sessions are local (localSessionsEnabled): the throttle has a weight of its own for them. */
  readonly opensLocalSessions: boolean;
  /** Limit of input and output held for all clients. */
  readonly inFlightBytesMax: number;
  /** The work of the core in one step, in its units. */
  readonly stepUnits: number;
  /** How often a connection that is not read, and has sent nothing recently, is read a little. */
  readonly probeIntervalMs: Millis;
  /** Waiting output above which a connection is not read. */
  readonly outputHighWaterBytes: number;
  /** Output after the reply in progress above which a client that reads nothing is closed. */
  readonly queuedOutputBytesMax: number;
  readonly drainTimeoutMs: Millis;
  /**
   * Size of one piece for the network, which distinguishes a client that reads slowly from one that
   * does not read.
   */
  readonly sliceBytes: number;
  /** Frames of one connection before another gets its turn. */
  readonly framesPerQuantum: number;
  /** Frames of one turn, about two milliseconds of small reads. */
  readonly framesPerTurn: number;
  /**
   * One place in so many of `maxCnxns` is kept for addresses that have fewer than an equal share,
   * but no more than `reservedCnxnsMax`.
   */
  readonly reservedCnxnsOneIn: number;
  readonly reservedCnxnsMax: number;
  /** What a client may still send after its connection has been closed here. */
  readonly discardedBytesMax: number;
}

/** Limits that no key of the configuration sets: a simulator makes them small. */
export type ClientPortSizes = Pick<
  ClientPortOptions,
  | 'halfOpenMax'
  | 'halfOpenGraceMs'
  | 'outputHighWaterBytes'
  | 'queuedOutputBytesMax'
  | 'drainTimeoutMs'
  | 'sliceBytes'
  | 'framesPerQuantum'
  | 'framesPerTurn'
  | 'reservedCnxnsOneIn'
  | 'reservedCnxnsMax'
  | 'discardedBytesMax'
>;

export const clientPortDefaults: ClientPortOptions = {
  juteMaxBuffer: 0xfffff,
  maxClientCnxns: 60,
  maxCnxns: 0,
  maxCnxnsRemedy: 'maxCnxns to allow more',
  sessionlessTimeoutMs: 10_000,
  halfOpenMax: 250,
  halfOpenGraceMs: 1000,
  largeRequestThreshold: -1,
  largeRequestMaxBytes: 100 * 1024 * 1024,
  opensLocalSessions: false,
  inFlightBytesMax: 100 * 1024 * 1024,
  stepUnits: stepUnitsDefault,
  probeIntervalMs: 1000,
  outputHighWaterBytes: 1024 * 1024,
  queuedOutputBytesMax: 4 * 1024 * 1024,
  drainTimeoutMs: 10_000,
  sliceBytes: 1024 * 1024,
  framesPerQuantum: 256,
  framesPerTurn: 2048,
  reservedCnxnsOneIn: 16,
  reservedCnxnsMax: 64,
  discardedBytesMax: 1024 * 1024,
};
