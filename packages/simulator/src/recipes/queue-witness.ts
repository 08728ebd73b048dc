/**
 * What processes were told of their puts, takes and acknowledgements, held against what the ensemble has agreed on:
 *
 * - what is put is there once, and in the order in which a process has put it; what was said not to be put is never there;
 * - an item that is gone was taken by the one who says so, or acknowledged; nobody takes it a second time, and none is lost but to who does not know;
 * - an acknowledgement counts once, while the claim of who gives it lasts; one that was refused has written nothing;
 * - no two have a claim on one item at a time;
 * - a bounded queue has no more items than that.
 */
import type { SessionId } from '@tskeeper/protocol';
import type { History, ZnodeLife } from './history.ts';

export type QueueWriteKind = 'put' | 'take' | 'acknowledgement';

export interface QueueWrite {
  readonly kind: QueueWriteKind;
  readonly process: string;
  readonly session: SessionId;
  /** What was put; what was taken; what was written with an acknowledgement. */
  items: readonly string[];
  /** `open` until the call is over, and for good when nobody can say. */
  state: 'open' | 'carried out' | 'not carried out';
}

export class QueueWitness {
  readonly #path: string;
  readonly #store: string;
  readonly #maxItems: number | undefined;
  readonly #writes: QueueWrite[] = [];

  constructor(path: string, store: string, maxItems: number | undefined) {
    this.#path = path;
    this.#store = store;
    this.#maxItems = maxItems;
  }

  begins(kind: QueueWriteKind, process: string, session: SessionId, items: readonly string[]): QueueWrite {
    const write: QueueWrite = { kind, process, session, items, state: 'open' };
    this.#writes.push(write);
    return write;
  }

  judge(history: History): readonly string[] {
    const items = history.below(this.#path).filter(({ path }) => path.startsWith(`${this.#path}/queue-`));
    const results = history.below(this.#store);
    const claims = history.below(`${this.#path}-aside/claims`);
    return [
      ...this.#puts(items),
      ...this.#ends(items, results),
      ...this.#acknowledgements(results, items, claims),
      ...twoClaims(claims),
      ...this.#takenUnderClaim(items, claims),
      ...this.#bound(items),
    ];
  }

  #of(kind: QueueWriteKind): readonly QueueWrite[] {
    return this.#writes.filter((write) => write.kind === kind);
  }

  #puts(items: readonly ZnodeLife[]): string[] {
    const complaints: string[] = [];
    const last = new Map<string, number>();
    for (const { items: put, state, process } of this.#of('put')) {
      for (const item of put) {
        const there = items.filter(({ data }) => data === item);
        const fits = state === 'open' ? there.length <= 1 : there.length === (state === 'carried out' ? 1 : 0);
        if (!fits) complaints.push(`put: ${item} of ${process}, which was ${state}, is there ${there.length} times`);
        const czxid = there[0]?.czxid;
        if (czxid === undefined) continue;
        if (czxid < (last.get(process) ?? 0)) complaints.push(`order: ${item} of ${process} stands ahead of what it had put before`);
        last.set(process, czxid);
      }
    }
    return complaints;
  }

  /** How items have come to an end. */
  #ends(items: readonly ZnodeLife[], results: readonly ZnodeLife[]): string[] {
    const takes = this.#of('take');
    const complaints: string[] = [];
    for (const { path, data, goneZxid, goneBy } of items) {
      const had = takes.filter((take) => take.items.includes(data));
      const acknowledged = results.some((result) => result.czxid === goneZxid && result.data.startsWith(`${data} by `));
      if (had.length > 1) complaints.push(`twice: ${path} was had by ${had.map(({ process }) => process).join(' and ')}`);
      if (had.length === 1 && acknowledged) complaints.push(`twice: ${path} was had by ${had[0]!.process}, and acknowledged`);
      if (had.length === 1 && goneBy !== had[0]!.session) complaints.push(`taken: ${had[0]!.process} has ${path}, and did not delete it`);
      if (goneZxid === Infinity || acknowledged || had.length > 0) continue;
      if (!takes.some(({ session, state }) => session === goneBy && state === 'open'))
        complaints.push(`lost: ${path} is gone, and nobody has had it`);
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
      const ended = items.find((life) => life.data === item && life.goneZxid === czxid);
      if (ended === undefined) {
        complaints.push(`acknowledged: "${data}" was written without the end of the item`);
        continue;
      }
      const name = `${ended.path.slice(ended.path.lastIndexOf('/') + 1)}-${attempt!}`;
      const fenced = claims.some((claim) => claim.path.endsWith(`/${name}`) && claim.goneZxid === czxid && claim.session === session);
      if (!fenced) complaints.push(`fence: "${data}" was written without the claim ${name}`);
    }
    return complaints;
  }

  /** Who takes passes over what others work on. */
  #takenUnderClaim(items: readonly ZnodeLife[], claims: readonly ZnodeLife[]): string[] {
    const taken = items.filter(({ data }) => this.#of('take').some((take) => take.items.includes(data)));
    return taken.flatMap(({ path, goneZxid }) => {
      const name = path.slice(path.lastIndexOf('/') + 1);
      const claim = claims.find((each) => each.path.includes(`/${name}-`) && each.czxid < goneZxid && each.goneZxid > goneZxid);
      return claim === undefined ? [] : [`claims: ${path} was taken while ${claim.path} was there`];
    });
  }

  #bound(items: readonly ZnodeLife[]): string[] {
    const most = this.#maxItems ?? Infinity;
    return items.flatMap(({ path, czxid }) => {
      const there = items.filter((other) => other.czxid <= czxid && other.goneZxid > czxid).length;
      return there > most ? [`bound: with ${path} there were ${there} items, of ${most}`] : [];
    });
  }
}

function twoClaims(claims: readonly ZnodeLife[]): string[] {
  const itemOf = ({ path }: ZnodeLife) => path.replace(/-\d+$/, '');
  return claims.flatMap((claim, at) =>
    claims
      .slice(at + 1)
      .filter((other) => itemOf(other) === itemOf(claim) && other.czxid < claim.goneZxid)
      .map((other) => `claims: ${claim.path} and ${other.path} are there at the same time`),
  );
}
