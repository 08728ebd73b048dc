/**
 * How much work one step does before the event loop gets a turn: heartbeats, other connections and
 * the log must not wait longer than about two milliseconds. A unit is about a tenth of a
 * microsecond. docs/internals/steps.md lists what is sliced, and how.
 */
import { Reader } from '@tskeeper/protocol';
import type { Now } from './now.ts';

/** Default number of units of one step. */
export const stepUnitsDefault = 16_384;

/** A change of one znode: lookup, change and digest, without events. */
export const unitsPerChange = 24;
/** A part of a multi: decoding, validation, and the pending state of the znode and its parent. */
export const unitsPerPart = 48;
/** An entry of an ACL, created or checked. */
export const unitsPerAclEntry = 2;
/**
 * A txn taken from the queue, applied and answered, without the changes after the first and without
 * the bytes of the reply.
 */
export const unitsPerTxn = 24;
/** Writing the name of a child, which may be far from the others in memory. */
export const unitsPerName = 2;
/** Handling a path of a setWatches, or building the path of an ephemeral. */
export const unitsPerPath = 16;
/** A request decoded and validated, or a read answered, without its reply. */
export const unitsPerRequest = 16;
/** Bytes copied or checksummed for one unit. */
export const bytesPerUnit = 256;

/** Fewer bytes are never worth a step. */
const bytesMin = 128;

/**
 * What one step may do, by kind of work. All limits follow from one number of units: a simulator
 * draws it small, and every kind of work is then interrupted wherever it can be.
 */
export class StepBudget {
  readonly units: number;
  /** Limit of units proposed and not applied: above it no further long write starts. */
  readonly unitsProposedMax: number;
  /**
   * Limit of bytes of multis that a learner has forwarded and not answered: above it the learner
   * forwards no further long multi.
   */
  readonly multiBytesForwardedMax: number;
  /** Znodes visited one after the other, for at most a number of each. */
  readonly visits: number;
  /** Names of children written; some are far apart in memory. */
  readonly names: number;
  /** Paths of a setWatches handled, or paths collected. */
  readonly paths: number;
  /** Outstanding changes rolled back or forgotten. */
  readonly records: number;
  /** Rows of watches cleared. */
  readonly rows: number;
  /** Ephemerals listed without a job. */
  readonly ephemerals: number;
  /** Containers and TTL znodes deleted. */
  readonly sweeps: number;
  /**
   * A frame of at most this size needs no more than one step, unless the data it asks for is long.
   */
  readonly shortFrameBytes: number;
  /** Bytes written into a reply. */
  readonly replyBytes: number;
  /** Bytes written into a log entry of many short strings, such as ACLs. */
  readonly entryBytes: number;
  /** Bytes written into a snapshot. */
  readonly snapshotBytes: number;

  constructor(units: number) {
    const share = (divisor: number): number => Math.max(1, Math.floor(units / divisor));
    this.units = units;
    this.unitsProposedMax = units * 32;
    this.multiBytesForwardedMax = units * 64;
    this.visits = share(1);
    this.names = share(2);
    this.paths = share(16);
    this.records = share(8);
    this.rows = share(4);
    this.ephemerals = share(32);
    this.sweeps = share(256);
    this.shortFrameBytes = share(1);
    this.replyBytes = Math.max(bytesMin, units * 16);
    this.entryBytes = Math.max(bytesMin, units * 32);
    this.snapshotBytes = Math.max(bytesMin, units * 4);
  }
}

/**
 * Where a step ended with work left: requests, applying txns, synchronising a learner, or a local
 * snapshot.
 */
export type StepKind = 'request' | 'commit' | 'sync' | 'snapshot';

/**
 * Work over several steps. It yields when the budget of a step is spent and receives the current
 * time when it resumes.
 */
export type Job = Generator<void, void, Now>;

/** Runs a job up to its first pause; returns undefined if the job finished. */
export function startJob(job: Job): Job | undefined {
  return job.next().done === true ? undefined : job;
}

/** The rest of a frame, for a job that outlives it: the bytes of the frame will be reused. */
export function copyForJob(reader: Reader): Reader {
  return new Reader(Buffer.from(reader.bytes.subarray(reader.offset, reader.limit)));
}
