/**
 * What must be true of the barriers that serve once. Zxids are what a client had seen by then.
 *
 * - early: who has waited for a barrier to go goes on only if there was a moment, between the call and its end, in which it was not there; who has entered
 *   a simple barrier has seen as many there at once as it is for, at some time.
 * - left: who has left a simple barrier has seen nobody there, since it began to leave.
 */
import type { History, ZnodeLife } from '../history.ts';

/** A wait that has ended well. */
export interface Wait {
  readonly process: string;
  readonly fromZxid: bigint;
  readonly toZxid: bigint;
}

export function judgeWaits(waits: readonly Wait[], barrier: string, history: History): string[] {
  const lives = history.lives.filter(({ path }) => path === barrier);
  return waits.flatMap(({ process, fromZxid, toZxid }) => {
    const inPlace = lives.find(({ czxid, goneZxid }) => czxid <= fromZxid && goneZxid > toZxid);
    if (inPlace === undefined) return [];
    return [`early: ${process} went on between ${fromZxid} and ${toZxid}, and the barrier of ${inPlace.czxid} was in place`];
  });
}

/** A process that was let into a simple barrier. */
export interface Gathered {
  readonly process: string;
  readonly root: string;
  readonly enteredZxid: bigint;
  /** When it called `leave`. */
  leavingZxid: bigint | undefined;
  /** When that had resolved. */
  leftZxid: bigint | undefined;
}

export function judgeGatherings(gathered: readonly Gathered[], size: number, history: History): string[] {
  return gathered.flatMap(({ process, root, enteredZxid, leavingZxid, leftZxid }) => {
    const lives = history.below(root);
    const findings: string[] = [];
    const wasFull = lives.some(({ czxid }) => czxid <= enteredZxid && thereAt(lives, BigInt(czxid)) >= size);
    if (!wasFull) findings.push(`early: ${process} has entered ${root} by ${enteredZxid}, where there were never ${size} by then`);
    if (leavingZxid === undefined || leftZxid === undefined) return findings;
    const ends = lives.filter(({ goneZxid }) => goneZxid > leavingZxid && goneZxid <= leftZxid).map(({ goneZxid }) => BigInt(goneZxid));
    const wasEmpty = [leavingZxid, ...ends].some((zxid) => thereAt(lives, zxid) === 0);
    if (!wasEmpty) findings.push(`left: ${process} has left ${root} by ${leftZxid}, where somebody was at any time since ${leavingZxid}`);
    return findings;
  });
}

function thereAt(lives: readonly ZnodeLife[], zxid: bigint): number {
  return lives.filter(({ czxid, goneZxid }) => czxid <= zxid && goneZxid > zxid).length;
}
