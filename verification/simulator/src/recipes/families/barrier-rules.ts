/**
 * Rules for barriers that are used once. Zxids are what a client had seen by then.
 *
 * - early: a process that waits for a barrier continues only if at some moment between call and
 *   result the barrier was not there; a process that has entered a simple barrier has seen as many
 *   participants there at once as it needs.
 * - left: a process that has left a simple barrier has seen it empty since it began to leave.
 */
import type { ZnodeHistory, ZnodeLife } from '../znode-history.ts';

/** A wait that succeeded. */
export interface BarrierWait {
  readonly process: string;
  readonly fromZxid: bigint;
  readonly toZxid: bigint;
}

export function checkBarrierWaits(waits: readonly BarrierWait[], barrier: string, history: ZnodeHistory): string[] {
  const lives = history.lives.filter(({ path }) => path === barrier);
  return waits.flatMap(({ process, fromZxid, toZxid }) => {
    const inPlace = lives.find(({ czxid, deletedZxid }) => czxid <= fromZxid && deletedZxid > toZxid);
    if (inPlace === undefined) return [];
    return [`early: ${process} continued between ${fromZxid} and ${toZxid}, while the barrier of ${inPlace.czxid} was in place`];
  });
}

/** A process that has entered a simple barrier. */
export interface SimpleBarrierPassage {
  readonly process: string;
  readonly root: string;
  readonly enteredZxid: bigint;
  /** When it called `leave`. */
  leavingZxid: bigint | undefined;
  /** When `leave` resolved. */
  leftZxid: bigint | undefined;
}

export function checkSimpleBarriers(gathered: readonly SimpleBarrierPassage[], size: number, history: ZnodeHistory): string[] {
  return gathered.flatMap(({ process, root, enteredZxid, leavingZxid, leftZxid }) => {
    const lives = history.childrenOf(root);
    const findings: string[] = [];
    const wasFull = lives.some(({ czxid }) => czxid <= enteredZxid && countAt(lives, BigInt(czxid)) >= size);
    if (!wasFull) findings.push(`early: ${process} entered ${root} by ${enteredZxid}, which never had ${size} participants by then`);
    if (leavingZxid === undefined || leftZxid === undefined) return findings;
    const ends = lives
      .filter(({ deletedZxid }) => deletedZxid > leavingZxid && deletedZxid <= leftZxid)
      .map(({ deletedZxid }) => BigInt(deletedZxid));
    const wasEmpty = [leavingZxid, ...ends].some((zxid) => countAt(lives, zxid) === 0);
    if (!wasEmpty) findings.push(`left: ${process} left ${root} by ${leftZxid}, which was never empty since ${leavingZxid}`);
    return findings;
  });
}

function countAt(lives: readonly ZnodeLife[], zxid: bigint): number {
  return lives.filter(({ czxid, deletedZxid }) => czxid <= zxid && deletedZxid > zxid).length;
}
