/**
 * Creates the verifier for the quorums of a configuration.
 */
import { isHierarchical, isParticipant, type QuorumConfig } from '@tskeeper/protocol';
import { HierarchicalQuorum } from './hierarchical-quorum.ts';
import { MajorityQuorum } from './majority-quorum.ts';
import type { QuorumVerifier } from './quorum-verifier.ts';

/**
 * Groups if there are any, otherwise a majority. An oracle is not part of a configuration: its
 * owner creates an `OracleQuorum` of the voters.
 */
export function verifierOf(config: QuorumConfig): QuorumVerifier {
  const voters = [...config.servers.values()].filter(isParticipant).map(({ sid }) => sid);
  const { groups, weights } = config;
  return isHierarchical(config) ? new HierarchicalQuorum({ voters, groups, weights }) : new MajorityQuorum(voters);
}
