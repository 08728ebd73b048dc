/**
 * How much is done in one step before the loop gets a turn: heartbeats, other connections and the log must not wait longer than about
 * two milliseconds. A unit is roughly a tenth of a microsecond of work. docs/internals/steps.md lists what is sliced, and how.
 */
import type { Now } from '../now.ts';

/** Units of one step, unless the options say otherwise. */
export const stepUnitsDefault = 16_384;

/** A change of one znode: looked up, changed, digested, told to nobody. */
export const unitsPerChange = 24;
/** A part of a multi decoded and judged, with what it makes of the znode and of its parent. */
export const unitsPerPart = 48;
/** An entry of an ACL made, or looked at. */
export const unitsPerAclEntry = 2;
/** A txn taken from the line, applied and answered, its changes beyond the first and the bytes of its reply left out. */
export const unitsPerTxn = 24;
/** A request decoded and judged, or a read answered, its reply left out. */
export const unitsPerRequest = 16;
/** Copied, or run through a checksum, for one unit. */
export const bytesPerUnit = 256;

/** Fewer bytes are never worth a step. */
const bytesMin = 128;

/**
 * What one step may do, by kind of work. Everything follows from one number of units: a simulator draws it small, and every kind of work
 * is then interrupted where it can be.
 */
export class StepBudget {
  readonly units: number;
  /** Proposed and not applied: with more than that no further long write is begun. */
  readonly unitsProposedMax: number;
  /** Of multis that a learner has passed on, and that are not answered: with more than that it passes on no further long one. */
  readonly multiBytesPassedOnMax: number;
  /** Znodes looked at one after the other, for no more than a number of each. */
  readonly visits: number;
  /** Names of children written, some of them far from each other in memory. */
  readonly names: number;
  /** Paths of a setWatches handled, or paths gathered. */
  readonly paths: number;
  /** Outstanding changes taken back or forgotten. */
  readonly records: number;
  /** Rows of watches cleared. */
  readonly rows: number;
  /** Ephemerals that are listed without a job. */
  readonly ephemerals: number;
  /** Containers and TTL znodes deleted. */
  readonly sweeps: number;
  /** A frame of at most so many bytes is too short to ask for more than a step of work, unless what it asks for is long itself. */
  readonly shortFrameBytes: number;
  /** Written into a reply. */
  readonly replyBytes: number;
  /** Written into a log entry, of many short texts, as ACLs are. */
  readonly entryBytes: number;
  /** Written into a snapshot. */
  readonly snapshotBytes: number;

  constructor(units: number) {
    const share = (divisor: number): number => Math.max(1, Math.floor(units / divisor));
    this.units = units;
    this.unitsProposedMax = units * 32;
    this.multiBytesPassedOnMax = units * 64;
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

/** Where a step has ended with work left over: at requests, at applying txns, at bringing a learner up to date, or at a local snapshot. */
export type StepKind = 'request' | 'commit' | 'sync' | 'snapshot';

/** Work that goes on over several steps. It yields when a step's budget is spent, and hears what time it is when it goes on. */
export type Job = Generator<void, void, Now>;

/** Runs a job up to its first pause; undefined when that finished it. */
export function start(job: Job): Job | undefined {
  return job.next().done === true ? undefined : job;
}
