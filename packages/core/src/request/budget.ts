/**
 * How much is done in one step before the loop gets a turn: heartbeats, other connections and the log must not wait longer than about
 * two milliseconds. A unit is roughly a tenth of a microsecond of work. docs/internals/steps.md lists what is sliced, and how.
 */
import type { Now } from '../now.ts';

export const stepBudget = 16_384;

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
/** Znodes looked at one after the other, for no more than a number of each. */
export const visitsPerStep = 16_384;
/** A frame of at most so many bytes is too short to ask for more than a step of work, unless what it asks for is long itself. */
export const shortFrameBytes = 16_384;

/** Work that goes on over several steps. It yields when a step's budget is spent, and hears what time it is when it goes on. */
export type Job = Generator<void, void, Now>;

/** Runs a job up to its first pause; undefined when that finished it. */
export function start(job: Job): Job | undefined {
  return job.next().done === true ? undefined : job;
}
