/**
 * Who votes in a small world, with what weight, and who only observes. What a quorum is is written down twice: by the verifier that the servers go by,
 * and, for the invariants, by hand. One that counts wrongly must not be its own judge.
 */
import type { Sid } from '@tskeeper/protocol';
import { HierarchicalQuorum, MajorityQuorum, type QuorumVerifier } from '@tskeeper/core/internal';

/**
 * `equal`: all vote, and count alike. Of three servers: `observer`: the third observes; `weightless`: the third follows and has weight 0; `groups`: two
 * groups, of the first, which has weight 2, and the second, and of the third.
 */
export type EnsembleName = 'equal' | 'observer' | 'weightless' | 'groups';

export const ensembleNames: readonly EnsembleName[] = ['equal', 'observer', 'weightless', 'groups'];

export interface SmallEnsemble {
  readonly verifier: QuorumVerifier;
  /** Of each quorum there is one of these a part. */
  readonly smallestQuorums: readonly (readonly Sid[])[];
  readonly observers: readonly Sid[];
  /** Nobody votes for these. */
  readonly neverLead: readonly Sid[];
}

const bigServers = 3;

export function smallEnsemble(name: EnsembleName, servers: number): SmallEnsemble {
  if (name === 'equal') return equal(servers);
  if (servers !== bigServers) throw new Error(`the ensemble "${name}" is one of ${bigServers} servers`);
  return others[name]();
}

export function isQuorum({ smallestQuorums }: SmallEnsemble, sids: Iterable<Sid>): boolean {
  const set = new Set(sids);
  return smallestQuorums.some((quorum) => quorum.every((sid) => set.has(sid)));
}

function equal(servers: number): SmallEnsemble {
  const sids = Array.from({ length: servers }, (_, at) => at + 1);
  const pairs = [
    [1, 2],
    [1, 3],
    [2, 3],
  ];
  const smallestQuorums = servers === 1 ? [[1]] : pairs.filter((pair) => pair.every((sid) => sid <= servers));
  return { verifier: new MajorityQuorum(sids), smallestQuorums, observers: [], neverLead: [] };
}

const others: Readonly<Record<Exclude<EnsembleName, 'equal'>, () => SmallEnsemble>> = {
  observer: () => ({ verifier: new MajorityQuorum([1, 2]), smallestQuorums: [[1, 2]], observers: [3], neverLead: [3] }),
  weightless: () => ({
    verifier: new HierarchicalQuorum({ voters: [1, 2, 3], groups: new Map([[1, [1, 2, 3]]]), weights: new Map([[3, 0]]) }),
    smallestQuorums: [[1, 2]],
    observers: [],
    neverLead: [3],
  }),
  groups: () => ({
    verifier: new HierarchicalQuorum({
      voters: [1, 2, 3],
      groups: new Map([
        [1, [1, 2]],
        [2, [3]],
      ]),
      weights: new Map([[1, 2]]),
    }),
    smallestQuorums: [[1, 3]],
    observers: [],
    neverLead: [],
  }),
};
