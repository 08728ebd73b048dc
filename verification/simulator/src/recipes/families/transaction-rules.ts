/**
 * Rules for a transaction, by the history of the ensemble:
 *
 * - beginning: it begins once.
 * - vote: each site has one vote, which it asked for, except `abort` written for a site that was
 *   gone or when an operator aborted.
 * - received: a process that received the outcome has seen the votes from which it follows:
 *   `commit` if all sites have voted so, `abort` if one has.
 * - record: the recorded decision follows from the votes as well.
 * - departure: no site leaves before the decision is recorded.
 */
import type { Vote } from '@tskeeper/recipes';
import type { ZnodeHistory } from '../znode-history.ts';

/** What the participants of a transaction sent and received. */
export interface TransactionRecord {
  readonly path: string;
  readonly sites: readonly string[];
  readonly presence: boolean;
  /** Whether the call that began it returned. */
  hasBegun: boolean;
  /** Whether an operator has aborted it. */
  isAborted: boolean;
  /**
   * `site-1 commit`: the votes that programs have asked for. A site that returns may ask for
   * another.
   */
  readonly requestedVotes: Set<string>;
  readonly acknowledging: Set<string>;
  readonly done: Set<string>;
  readonly reportedOutcomes: { readonly who: string; readonly outcome: Vote; readonly seenZxid: bigint }[];
}

interface CastVote {
  readonly site: string;
  readonly vote: string;
  readonly zxid: number;
}

/** From which txn on the decision is certain; undefined while it is open. */
function decisionOf(
  { sites }: TransactionRecord,
  votes: readonly CastVote[],
): { readonly outcome: Vote; readonly zxid: number } | undefined {
  const abort = votes.find(({ vote }) => vote === 'abort');
  if (abort !== undefined) return { outcome: 'abort', zxid: abort.zxid };
  return new Set(votes.map(({ site }) => site)).size < sites.length ? undefined : { outcome: 'commit', zxid: votes.at(-1)!.zxid };
}

export function checkTransaction(record: TransactionRecord, history: ZnodeHistory): string[] {
  const { path, sites, requestedVotes, reportedOutcomes, presence, isAborted } = record;
  const findings: string[] = [];
  const begun = history.lives.filter((life) => life.path === path);
  if (begun.length > 1) findings.push(`beginning: ${path} began ${begun.length} times`);
  const votes = history.writes.flatMap(({ path: written, data, zxid }): CastVote[] => {
    const site = sites.find((each) => written === `${path}/${each}`);
    return site === undefined || data === '' ? [] : [{ site, vote: data, zxid }];
  });
  for (const { site, vote, zxid } of votes) {
    if (votes.filter((each) => each.site === site).length > 1)
      findings.push(`vote: ${site} of ${path} voted ${vote} at ${zxid}, and more than once`);
    const isInPlace = vote === 'abort' && (presence || isAborted);
    if (!isInPlace && !requestedVotes.has(`${site} ${vote}`))
      findings.push(`vote: ${site} of ${path} voted ${vote} at ${zxid}, for which it never asked`);
  }
  const decision = decisionOf(record, votes);
  for (const { who, outcome, seenZxid } of reportedOutcomes) {
    if (decision?.outcome !== outcome || BigInt(decision.zxid) > seenZxid)
      findings.push(
        `received: ${who} received ${outcome} of ${path} by ${seenZxid}, but it was ${decision?.outcome ?? 'open'} from ${decision?.zxid} on`,
      );
  }
  for (const { path: written, data, zxid } of history.writes) {
    if (written === `${path}/decision` && (decision?.outcome !== data || decision.zxid > zxid))
      findings.push(`record: ${path} was ${decision?.outcome ?? 'open'} from ${decision?.zxid} on, but ${data} was recorded at ${zxid}`);
  }
  const below = history.childrenOf(path);
  const recorded = below.find((life) => life.path === `${path}/decision`);
  for (const { path: each, deletedZxid } of below) {
    if (sites.some((site) => each === `${path}/${site}`) && deletedZxid < (recorded?.czxid ?? Infinity))
      findings.push(`departure: ${each} was gone at ${deletedZxid}, before the decision was recorded at ${recorded?.czxid}`);
  }
  return findings;
}
