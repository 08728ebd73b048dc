/**
 * Checks the results of puts, takes and acknowledgements against the history:
 *
 * - an item that was put exists once, in the order in which its process put it; one that was
 *   reported not to be put never exists;
 * - a missing item was taken by the process that says so, or acknowledged; none is taken twice, and
 *   none is lost except to a process that does not know;
 * - an acknowledgement counts once, while the claim of its process lasts; a refused one has written
 *   nothing;
 * - an item has at most one claim at a time;
 * - a bounded queue never has more items than its bound;
 * - no process gets an item before it is due;
 * - as many items were removed by id as the call reports.
 */
import type { Millis, SessionId } from '@tskeeper/protocol';
import { parentOf } from '../record/parent-of.ts';
import type { ZnodeHistory, ZnodeLife } from './znode-history.ts';

export type QueueCallKind = 'put' | 'take' | 'acknowledgement';

export interface QueueCall {
  readonly kind: QueueCallKind;
  readonly process: string;
  readonly session: SessionId;
  /** What was put, taken, or written with an acknowledgement. */
  items: readonly string[];
  /** `open` until the call ends, and for good if its outcome is unknown. */
  state: 'open' | 'carried out' | 'not carried out';
}

/** A removal of items by id. */
export interface Removal {
  readonly process: string;
  readonly session: SessionId;
  readonly id: string;
  /** What the client had seen before. */
  readonly fromZxid: bigint;
  /** What is known when the call has ended. */
  reported: { readonly count: number; readonly toZxid: bigint } | undefined;
}

/** How a queue is stored. */
export interface QueueRules {
  readonly path: string;
  /** The parents of items: the znode of the queue, or its shards. */
  readonly parents: readonly string[];
  /** The parent of what is written with acknowledgements. */
  readonly store: string;
  readonly maxItems: number | undefined;
  /** Whether items end with the sessions that have put them. */
  readonly isEphemeral: boolean;
  /** When the item of that path is due. Default: at once. */
  readonly dueMs?: ((path: string) => Millis) | undefined;
}

export class QueueChecker {
  readonly #rules: QueueRules;
  readonly #writes: QueueCall[] = [];
  readonly removals: Removal[] = [];

  constructor(rules: QueueRules) {
    this.#rules = rules;
  }

  beginCall(kind: QueueCallKind, process: string, session: SessionId, items: readonly string[]): QueueCall {
    const write: QueueCall = { kind, process, session, items, state: 'open' };
    this.#writes.push(write);
    return write;
  }

  check(history: ZnodeHistory): readonly string[] {
    const { parents, store } = this.#rules;
    const items = parents.flatMap((parent) => history.childrenOf(parent).filter(({ path }) => path.startsWith(`${parent}/queue-`)));
    const results = history.childrenOf(store);
    const claims = parents.flatMap((parent) => history.childrenOf(this.#claimsOf(parent)));
    return [
      ...this.#checkPuts(items),
      ...this.#checkEnds(items, results),
      ...this.#acknowledgements(results, items, claims),
      ...twoClaims(claims),
      ...this.#takenUnderClaim(items, claims),
      ...this.#checkBound(items),
      ...this.#checkDueTimes(items, claims),
      ...this.#checkRemovals(items),
    ];
  }

  #claimsOf(parent: string): string {
    const { path } = this.#rules;
    return `${path}-aside/claims${parent.slice(path.length)}`;
  }

  /** The prefix of all claims on an item. */
  #claimOn(item: string): string {
    const parent = parentOf(item);
    return `${this.#claimsOf(parent)}${item.slice(parent.length)}-`;
  }

  #of(kind: QueueCallKind): readonly QueueCall[] {
    return this.#writes.filter((write) => write.kind === kind);
  }

  #checkPuts(items: readonly ZnodeLife[]): string[] {
    const complaints: string[] = [];
    const last = new Map<string, number>();
    for (const { items: put, state, process } of this.#of('put')) {
      for (const item of put) {
        const there = items.filter(({ data }) => data === item);
        const fits = state === 'open' ? there.length <= 1 : there.length === (state === 'carried out' ? 1 : 0);
        if (!fits) complaints.push(`put: ${item} of ${process}, which was ${state}, is there ${there.length} times`);
        const czxid = there[0]?.czxid;
        if (czxid === undefined) continue;
        if (czxid < (last.get(process) ?? 0)) complaints.push(`order: ${item} of ${process} is before what it had put earlier`);
        last.set(process, czxid);
      }
    }
    return complaints;
  }

  /** How items ended. */
  #checkEnds(items: readonly ZnodeLife[], results: readonly ZnodeLife[]): string[] {
    const takes = this.#of('take');
    const complaints: string[] = [];
    for (const { path, data, deletedZxid, deletedBy } of items) {
      const had = takes.filter((take) => take.items.includes(data));
      const acknowledged = results.some((result) => result.czxid === deletedZxid && result.data.startsWith(`${data} by `));
      if (had.length > 1) complaints.push(`twice: ${path} was taken by ${had.map(({ process }) => process).join(' and ')}`);
      if (had.length === 1 && acknowledged) complaints.push(`twice: ${path} was taken by ${had[0]!.process} and acknowledged`);
      if (had.length === 1 && deletedBy !== had[0]!.session)
        complaints.push(`taken: ${had[0]!.process} took ${path} but did not delete it`);
      if (deletedZxid === Infinity || acknowledged || had.length > 0) continue;
      if (this.#rules.isEphemeral && deletedBy === 'its session') continue;
      if (this.removals.some((removal) => isRemovedBy(removal, { path, deletedZxid, deletedBy }))) continue;
      if (!takes.some(({ session, state }) => session === deletedBy && state === 'open'))
        complaints.push(`lost: ${path} is gone, but no process has taken it`);
    }
    return complaints;
  }

  #acknowledgements(results: readonly ZnodeLife[], items: readonly ZnodeLife[], claims: readonly ZnodeLife[]): string[] {
    const complaints: string[] = [];
    for (const { items: written, state, process } of this.#of('acknowledgement')) {
      const count = results.filter(({ data }) => data === written[0]).length;
      const fits = state === 'open' ? count <= 1 : count === (state === 'carried out' ? 1 : 0);
      if (!fits) complaints.push(`acknowledged: ${written.join()} of ${process}, which was ${state}, is there ${count} times`);
    }
    for (const { data, czxid, session } of results) {
      const [, item, attempt] = /^(\S+) by .* attempt (-?\d+)$/.exec(data) ?? [];
      const ended = items.find((life) => life.data === item && life.deletedZxid === czxid);
      if (ended === undefined) {
        complaints.push(`acknowledged: "${data}" was written without the end of the item`);
        continue;
      }
      const path = `${this.#claimOn(ended.path)}${attempt!}`;
      const fenced = claims.some((claim) => claim.path === path && claim.deletedZxid === czxid && claim.session === session);
      if (!fenced) complaints.push(`fence: "${data}" was written without the claim ${path}`);
    }
    return complaints;
  }

  /** A taking consumer skips items that others work on. */
  #takenUnderClaim(items: readonly ZnodeLife[], claims: readonly ZnodeLife[]): string[] {
    const taken = items.filter(({ data }) => this.#of('take').some((take) => take.items.includes(data)));
    return taken.flatMap(({ path, deletedZxid }) => {
      const own = this.#claimOn(path);
      const claim = claims.find((each) => each.path.startsWith(own) && each.czxid < deletedZxid && each.deletedZxid > deletedZxid);
      return claim === undefined ? [] : [`claims: ${path} was taken while ${claim.path} was there`];
    });
  }

  /** Times are those of leaders, in whole milliseconds. */
  #checkDueTimes(items: readonly ZnodeLife[], claims: readonly ZnodeLife[]): string[] {
    const { dueMs } = this.#rules;
    if (dueMs === undefined) return [];
    const had = [
      ...items.map(({ path, deletedMs }) => ({ path, atMs: deletedMs, dueMs: dueMs(path) })),
      ...claims.map(({ path, createdMs }) => ({ path, atMs: createdMs, dueMs: dueMs(path.replace(/-\d+$/, '')) })),
    ];
    return had
      .filter((each) => each.atMs < each.dueMs)
      .map(({ path, atMs, dueMs: due }) => `early: ${path} was taken at ${atMs}, before it was due at ${due}`);
  }

  #checkRemovals(items: readonly ZnodeLife[]): string[] {
    return this.removals.flatMap((removal) => {
      const count = items.filter((item) => isRemovedBy(removal, item)).length;
      const { process, id, reported } = removal;
      if (reported === undefined || reported.count === count) return [];
      return [`removed: ${process} received the count ${reported.count} for items of ${id}, but removed ${count}`];
    });
  }

  #checkBound(items: readonly ZnodeLife[]): string[] {
    const most = this.#rules.maxItems ?? Infinity;
    return items.flatMap(({ path, czxid }) => {
      const there = items.filter((other) => other.czxid <= czxid && other.deletedZxid > czxid).length;
      return there > most ? [`bound: with ${path} there were ${there} items; the bound is ${most}`] : [];
    });
  }
}

/** Whether the item was removed by this call, or may have been. */
function isRemovedBy(
  { session, id, fromZxid, reported }: Removal,
  { path, deletedZxid, deletedBy }: Pick<ZnodeLife, 'path' | 'deletedZxid' | 'deletedBy'>,
): boolean {
  return (
    deletedBy === session &&
    path.includes(`|${id}|`) &&
    deletedZxid > fromZxid &&
    (reported === undefined || deletedZxid <= reported.toZxid)
  );
}

function twoClaims(claims: readonly ZnodeLife[]): string[] {
  const itemOf = ({ path }: ZnodeLife) => path.replace(/-\d+$/, '');
  return claims.flatMap((claim, at) =>
    claims
      .slice(at + 1)
      .filter((other) => itemOf(other) === itemOf(claim) && other.czxid < claim.deletedZxid)
      .map((other) => `claims: ${claim.path} and ${other.path} are there at the same time`),
  );
}
