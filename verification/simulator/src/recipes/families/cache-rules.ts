/**
 * Rules for caches. shown: what a cache shows existed in that state, and a complete cache shows
 * nothing that was deleted before. missing: when a cache becomes complete, it has everything that
 * existed when it began to read and still exists.
 */
import type { ZnodeHistory, ZnodeLife } from '../znode-history.ts';

/** A znode as a cache showed it. */
export interface CacheEntryShown {
  readonly process: string;
  readonly path: string;
  readonly data: string | undefined;
  readonly czxid: bigint;
  readonly mzxid: bigint;
  /** The cache is complete up to this zxid at least; undefined if it may be outdated. */
  readonly seenZxid: bigint | undefined;
}

/** Everything that a cache showed when it became complete. */
export interface CacheContentsShown {
  readonly process: string;
  readonly covers: (path: string) => boolean;
  /** What its client had seen when it began to read. */
  readonly fromZxid: bigint;
  readonly toZxid: bigint;
  /** By path: the mzxid that is shown. */
  readonly shown: ReadonlyMap<string, bigint>;
}

export function checkContentsShown(surveys: readonly CacheContentsShown[], history: ZnodeHistory): string[] {
  const lastWrites = history.lives.map((life) => ({ life, mzxids: mzxidsOf(life, history) }));
  return surveys.flatMap(({ process, covers, fromZxid, toZxid, shown }) =>
    lastWrites.flatMap(({ life: { path, czxid, deletedZxid }, mzxids }) => {
      if (!covers(path) || czxid > fromZxid || deletedZxid <= toZxid) return [];
      const mzxid = mzxids.findLast((each) => each <= fromZxid)!;
      if ((shown.get(path) ?? -1n) >= mzxid) return [];
      return [
        `missing: ${process} was complete up to ${fromZxid} at ${toZxid}, but showed ${path} of ${shown.get(path)} instead of ${mzxid}`,
      ];
    }),
  );
}

function mzxidsOf({ path, czxid, deletedZxid }: ZnodeLife, { writes }: ZnodeHistory): number[] {
  return writes.filter((write) => write.path === path && write.zxid >= czxid && write.zxid < deletedZxid).map(({ zxid }) => zxid);
}

export function checkEntriesShown(sights: readonly CacheEntryShown[], history: ZnodeHistory): string[] {
  const was = new Set(history.writes.map(({ path, data, zxid }) => `${path} ${zxid} ${data}`));
  const lives = new Map(history.lives.map((life) => [`${life.path} ${life.czxid}`, life]));
  const findings = sights.flatMap(({ process, path, data, czxid, mzxid, seenZxid }) => {
    const life = lives.get(`${path} ${czxid}`);
    if (life === undefined || life.deletedZxid < mzxid || !was.has(`${path} ${mzxid} ${data}`))
      return [`shown: ${process} showed ${path} with ${data}, czxid ${czxid} and mzxid ${mzxid}, which never existed`];
    if (seenZxid === undefined || life.deletedZxid > seenZxid) return [];
    return [`shown: ${process} showed ${path} while complete up to ${seenZxid}, but it was deleted at ${life.deletedZxid}`];
  });
  return [...new Set(findings)];
}
