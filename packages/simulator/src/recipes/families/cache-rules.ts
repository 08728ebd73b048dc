/**
 * What must be true of what a cache shows (shown): it was there, in that state; and what is in step has nothing that was gone before. When it comes into step
 * it has all that was there when it began to look, and is there still (missing).
 */
import type { History, ZnodeLife } from '../history.ts';

/** What a cache has shown of one znode. */
export interface Sight {
  readonly process: string;
  readonly path: string;
  readonly data: string | undefined;
  readonly czxid: bigint;
  readonly mzxid: bigint;
  /** The cache is in step with that at least. undefined: it is of the past, perhaps. */
  readonly seenZxid: bigint | undefined;
}

/** All that a cache has shown when it came into step. */
export interface Survey {
  readonly process: string;
  readonly covers: (path: string) => boolean;
  /** What its client had seen when it began to look. */
  readonly fromZxid: bigint;
  readonly toZxid: bigint;
  /** By path: the last write that is shown. */
  readonly shown: ReadonlyMap<string, bigint>;
}

export function judgeSurveys(surveys: readonly Survey[], history: History): string[] {
  const lastWrites = history.lives.map((life) => ({ life, mzxids: writesOf(life, history) }));
  return surveys.flatMap(({ process, covers, fromZxid, toZxid, shown }) =>
    lastWrites.flatMap(({ life: { path, czxid, goneZxid }, mzxids }) => {
      if (!covers(path) || czxid > fromZxid || goneZxid <= toZxid) return [];
      const mzxid = mzxids.findLast((each) => each <= fromZxid)!;
      if ((shown.get(path) ?? -1n) >= mzxid) return [];
      return [`missing: ${process} was in step with ${fromZxid} at ${toZxid}, and shown ${path} of ${shown.get(path)} instead of ${mzxid}`];
    }),
  );
}

function writesOf({ path, czxid, goneZxid }: ZnodeLife, { writes }: History): number[] {
  return writes.filter((write) => write.path === path && write.zxid >= czxid && write.zxid < goneZxid).map(({ zxid }) => zxid);
}

export function judgeSights(sights: readonly Sight[], history: History): string[] {
  const was = new Set(history.writes.map(({ path, data, zxid }) => `${path} ${zxid} ${data}`));
  const lives = new Map(history.lives.map((life) => [`${life.path} ${life.czxid}`, life]));
  const findings = sights.flatMap(({ process, path, data, czxid, mzxid, seenZxid }) => {
    const life = lives.get(`${path} ${czxid}`);
    if (life === undefined || life.goneZxid < mzxid || !was.has(`${path} ${mzxid} ${data}`))
      return [`shown: ${process} was shown ${path} with ${data}, made by ${czxid} and written by ${mzxid}, which never was`];
    if (seenZxid === undefined || life.goneZxid > seenZxid) return [];
    return [`shown: ${process} was shown ${path} in step with ${seenZxid}, and it was gone at ${life.goneZxid}`];
  });
  return [...new Set(findings)];
}
