/**
 * The voters, weights and observers of a small world. A quorum is defined twice: by the verifier
 * that the servers use, and by hand for the invariants, so that a wrong verifier cannot confirm
 * itself.
 */
import type { Sid } from '@tskeeper/protocol';
import { HierarchicalQuorum, MajorityQuorum, type QuorumVerifier } from '@tskeeper/core/internal';

/**
 * `equal`: all vote with equal weight. Of three servers: `observer`: the third observes;
 * `weightless`: the third follows with weight 0; `groups`: two groups, one of the first with weight
 * 2 and the second, the other of the third.
 */
export type EnsembleName = 'equal' | 'observer' | 'weightless' | 'groups';

export const ensembleNames: readonly EnsembleName[] = ['equal', 'observer', 'weightless', 'groups'];

export interface SmallEnsemble {
  readonly verifier: QuorumVerifier;
  /** Every quorum contains one of these. */
  readonly smallestQuorums: readonly (readonly Sid[])[];
  readonly observers: readonly Sid[];
  /** Servers that can never lead. */
  readonly neverLead: readonly Sid[];
}

const bigServers = 3;

export function smallEnsemble(name: EnsembleName, servers: number): SmallEnsemble {
  if (name === 'equal') return equal(servers);
  if (servers !== bigServers) throw new Error(`the ensemble "${name}" needs ${bigServers} servers`);
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
