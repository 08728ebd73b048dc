/** Configurations of servers that are known by their numbers only. */
import { parseQuorumConfig, type QuorumConfig, type Sid } from '@tskeeper/protocol';

export function membersOf(voters: readonly Sid[], observers: readonly Sid[] = [], version = 0): QuorumConfig {
  const line = (sid: Sid, role: string) => `server.${sid}=h${sid}:2888:3888:${role}`;
  const lines = [...voters.map((sid) => line(sid, 'participant')), ...observers.map((sid) => line(sid, 'observer'))];
  return parseQuorumConfig([...lines, `version=${version.toString(16)}`].join('\n'));
}
