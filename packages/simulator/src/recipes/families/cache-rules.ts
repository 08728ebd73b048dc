/** What must be true of what a cache shows: it was there, in that state; and what is in step has nothing that was gone before. */
import type { History } from '../history.ts';

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
