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
  readonly minimalQuorums: readonly (readonly Sid[])[];
  readonly observers: readonly Sid[];
  /** Servers that can never lead. */
  readonly neverLead: readonly Sid[];
}

const variantServers = 3;

export function smallEnsemble(name: EnsembleName, servers: number): SmallEnsemble {
  if (name === 'equal') return equalVoters(servers);
  if (servers !== variantServers) throw new Error(`the ensemble "${name}" needs ${variantServers} servers`);
  return variants[name]();
}

export function isQuorum({ minimalQuorums }: SmallEnsemble, sids: Iterable<Sid>): boolean {
  const set = new Set(sids);
  return minimalQuorums.some((quorum) => quorum.every((sid) => set.has(sid)));
}

function equalVoters(servers: number): SmallEnsemble {
  const sids = Array.from({ length: servers }, (_, at) => at + 1);
  const pairs = [
    [1, 2],
    [1, 3],
    [2, 3],
  ];
  const minimalQuorums = servers === 1 ? [[1]] : pairs.filter((pair) => pair.every((sid) => sid <= servers));
  return { verifier: new MajorityQuorum(sids), minimalQuorums, observers: [], neverLead: [] };
}

const variants: Readonly<Record<Exclude<EnsembleName, 'equal'>, () => SmallEnsemble>> = {
  observer: () => ({ verifier: new MajorityQuorum([1, 2]), minimalQuorums: [[1, 2]], observers: [3], neverLead: [3] }),
  weightless: () => ({
    verifier: new HierarchicalQuorum({ voters: [1, 2, 3], groups: new Map([[1, [1, 2, 3]]]), weights: new Map([[3, 0]]) }),
    minimalQuorums: [[1, 2]],
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
    minimalQuorums: [[1, 3]],
    observers: [],
    neverLead: [],
  }),
};
