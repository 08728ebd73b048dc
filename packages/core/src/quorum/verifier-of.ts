/** From the text of a configuration to the quorums it asks for. */
import { isHierarchical, isParticipant, type QuorumConfig } from '@tskeeper/protocol';
import { HierarchicalQuorum } from './hierarchical-quorum.ts';
import { MajorityQuorum } from './majority-quorum.ts';
import type { QuorumVerifier } from './quorum-verifier.ts';

/** Groups if there are any, else a majority. An oracle is no part of a configuration: whoever has one makes an `OracleQuorum` of the voters. */
export function verifierOf(config: QuorumConfig): QuorumVerifier {
  const voters = [...config.servers.values()].filter(isParticipant).map(({ sid }) => sid);
  const { groups, weights } = config;
  return isHierarchical(config) ? new HierarchicalQuorum({ voters, groups, weights }) : new MajorityQuorum(voters);
}
