/**
 * Rules for barriers that are used once. Zxids are what a client had seen by then.
 *
 * - early: a process that waits for a barrier continues only if at some moment between call and
 *   result the barrier was not there; a process that has entered a simple barrier has seen as many
 *   participants there at once as it needs.
 * - left: a process that has left a simple barrier has seen it empty since it began to leave.
 */
import type { History, ZnodeLife } from '../history.ts';

/** A wait that succeeded. */
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
    return [`early: ${process} continued between ${fromZxid} and ${toZxid}, while the barrier of ${inPlace.czxid} was in place`];
  });
}

/** A process that has entered a simple barrier. */
export interface Gathered {
  readonly process: string;
  readonly root: string;
  readonly enteredZxid: bigint;
  /** When it called `leave`. */
  leavingZxid: bigint | undefined;
  /** When `leave` resolved. */
  leftZxid: bigint | undefined;
}

export function judgeGatherings(gathered: readonly Gathered[], size: number, history: History): string[] {
  return gathered.flatMap(({ process, root, enteredZxid, leavingZxid, leftZxid }) => {
    const lives = history.below(root);
    const findings: string[] = [];
    const wasFull = lives.some(({ czxid }) => czxid <= enteredZxid && thereAt(lives, BigInt(czxid)) >= size);
    if (!wasFull) findings.push(`early: ${process} entered ${root} by ${enteredZxid}, which never had ${size} participants by then`);
    if (leavingZxid === undefined || leftZxid === undefined) return findings;
    const ends = lives.filter(({ goneZxid }) => goneZxid > leavingZxid && goneZxid <= leftZxid).map(({ goneZxid }) => BigInt(goneZxid));
    const wasEmpty = [leavingZxid, ...ends].some((zxid) => thereAt(lives, zxid) === 0);
    if (!wasEmpty) findings.push(`left: ${process} left ${root} by ${leftZxid}, which was never empty since ${leavingZxid}`);
    return findings;
  });
}

function thereAt(lives: readonly ZnodeLife[], zxid: bigint): number {
  return lives.filter(({ czxid, goneZxid }) => czxid <= zxid && goneZxid > zxid).length;
}
