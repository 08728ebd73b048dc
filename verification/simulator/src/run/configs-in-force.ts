/**
 * The configurations that count at some server at this moment. Which servers a run may leave broken
 * depends on all of them: a server that knows two configurations needs a quorum of both.
 */
import { membersOf, type Members } from '../record/config-text.ts';
import { isQuorum } from '../record/quorum-rule.ts';
import type { VirtualWorld } from '../world/virtual-world.ts';

export function configsInForce({ servers, recording }: VirtualWorld): readonly Members[] {
  const texts = new Set(servers.flatMap(({ knownConfigTexts }) => knownConfigTexts));
  return texts.size === 0 ? [recording.ensemble] : [...texts].map((text) => membersOf(text, recording.limits.oracleSid));
}

/** Whether these servers are a quorum of each of the configurations. */
export function isQuorumOfAll(configs: readonly Members[], names: readonly string[]): boolean {
  return configs.every((members) => isQuorum(members, names));
}
