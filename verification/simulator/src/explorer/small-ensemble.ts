/**
 * The voters, weights and observers of a small world. A quorum is defined twice: by the configuration
 * that the servers use, and by hand for the invariants, so that a wrong verifier cannot confirm
 * itself.
 */
import { parseQuorumConfig, type QuorumConfig, type Sid } from '@tskeeper/protocol';
import { type QuorumVerifier, verifierOf } from '@tskeeper/core/internal';

/**
 * `equal`: all vote with equal weight. Of three servers: `observer`: the third observes;
 * `weightless`: the third follows with weight 0; `groups`: two groups, one of the first with weight
 * 2 and the second, the other of the third.
 */
export type EnsembleName = 'equal' | 'observer' | 'weightless' | 'groups';

export const ensembleNames: readonly EnsembleName[] = ['equal', 'observer', 'weightless', 'groups'];

export interface SmallEnsemble {
  readonly members: QuorumConfig;
  /** The quorums of these members, as the servers count them. */
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
  return { ...countedBy(sids), minimalQuorums, observers: [], neverLead: [] };
}

function countedBy(voters: readonly Sid[], more: readonly string[] = []): Pick<SmallEnsemble, 'members' | 'verifier'> {
  const members = parseQuorumConfig([...voters.map((sid) => `server.${sid}=h${sid}:2888:3888`), ...more].join('\n'));
  return { members, verifier: verifierOf(members) };
}

const variants: Readonly<Record<Exclude<EnsembleName, 'equal'>, () => SmallEnsemble>> = {
  observer: () => ({ ...countedBy([1, 2], ['server.3=h3:2888:3888:observer']), minimalQuorums: [[1, 2]], observers: [3], neverLead: [3] }),
  weightless: () => ({
    ...countedBy([1, 2, 3], ['group.1=1:2:3', 'weight.3=0']),
    minimalQuorums: [[1, 2]],
    observers: [],
    neverLead: [3],
  }),
  groups: () => ({
    ...countedBy([1, 2, 3], ['group.1=1:2', 'group.2=3', 'weight.1=2']),
    minimalQuorums: [[1, 3]],
    observers: [],
    neverLead: [],
  }),
};
