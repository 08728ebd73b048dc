/**
 * What must be true of a transaction, by the history of the ensemble:
 *
 * - beginning: it begins once.
 * - vote: each site has one vote, and nobody has voted for what it does not want, but `abort` where it was gone or given up.
 * - told: whoever is told the outcome has seen the votes that it follows from: `commit` when all sites have voted so, `abort` when one has.
 * - record: what is written down as the decision follows from the votes as well.
 * - departure: no site goes before the decision is written down.
 */
import type { Vote } from '@tskeeper/recipes';
import type { History } from '../history.ts';

/** What was said and heard of one transaction, by those who have to do with it. */
export interface Minutes {
  readonly path: string;
  readonly sites: readonly string[];
  readonly presence: boolean;
  /** Whoever began it was told so. */
  hasBegun: boolean;
  /** Somebody lost patience. */
  isAborted: boolean;
  /** `site-1 commit`: what programs have asked to be voted. One that comes back may have another mind. */
  readonly minds: Set<string>;
  readonly acknowledging: Set<string>;
  readonly done: Set<string>;
  readonly told: { readonly who: string; readonly outcome: Vote; readonly seenZxid: bigint }[];
}

interface Cast {
  readonly site: string;
  readonly vote: string;
  readonly zxid: number;
}

/** From which txn on it is certain what is decided; undefined as long as it is not. */
function decisionOf({ sites }: Minutes, votes: readonly Cast[]): { readonly outcome: Vote; readonly zxid: number } | undefined {
  const abort = votes.find(({ vote }) => vote === 'abort');
  if (abort !== undefined) return { outcome: 'abort', zxid: abort.zxid };
  return new Set(votes.map(({ site }) => site)).size < sites.length ? undefined : { outcome: 'commit', zxid: votes.at(-1)!.zxid };
}

export function judgeTransaction(minutes: Minutes, history: History): string[] {
  const { path, sites, minds, told, presence, isAborted } = minutes;
  const findings: string[] = [];
  const begun = history.lives.filter((life) => life.path === path);
  if (begun.length > 1) findings.push(`beginning: ${path} has begun ${begun.length} times`);
  const votes = history.writes.flatMap(({ path: written, data, zxid }): Cast[] => {
    const site = sites.find((each) => written === `${path}/${each}`);
    return site === undefined || data === '' ? [] : [{ site, vote: data, zxid }];
  });
  for (const { site, vote, zxid } of votes) {
    if (votes.filter((each) => each.site === site).length > 1)
      findings.push(`vote: ${site} of ${path} has voted ${vote} at ${zxid}, and not only that`);
    const isInPlace = vote === 'abort' && (presence || isAborted);
    if (!isInPlace && !minds.has(`${site} ${vote}`))
      findings.push(`vote: ${site} of ${path} has voted ${vote} at ${zxid}, which it never wanted`);
  }
  const decision = decisionOf(minutes, votes);
  for (const { who, outcome, seenZxid } of told) {
    if (decision?.outcome !== outcome || BigInt(decision.zxid) > seenZxid)
      findings.push(
        `told: ${who} was told ${outcome} of ${path} by ${seenZxid}, and it was ${decision?.outcome ?? 'open'} from ${decision?.zxid} on`,
      );
  }
  for (const { path: written, data, zxid } of history.writes) {
    if (written === `${path}/decision` && (decision?.outcome !== data || decision.zxid > zxid))
      findings.push(
        `record: ${path} was ${decision?.outcome ?? 'open'} from ${decision?.zxid} on, and ${data} was written down at ${zxid}`,
      );
  }
  const below = history.below(path);
  const recorded = below.find((life) => life.path === `${path}/decision`);
  for (const { path: each, goneZxid } of below) {
    if (sites.some((site) => each === `${path}/${site}`) && goneZxid < (recorded?.czxid ?? Infinity))
      findings.push(`departure: ${each} was gone at ${goneZxid}, and the decision was written down at ${recorded?.czxid}`);
  }
  return findings;
}
