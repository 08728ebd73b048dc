/**
 * The configurations that count at some server at this moment. Which servers a run may leave broken
 * depends on all of them: a server that knows two configurations needs a quorum of both.
 */
import { parseQuorumConfig } from '@tskeeper/protocol';
import { membersOf, type Members } from '../record/config-text.ts';
import { isQuorum } from '../record/quorum-rule.ts';
import type { Recording } from '../record/recording.ts';
import type { VirtualWorld } from '../world/virtual-world.ts';

export function configsInForce({ servers, recording }: VirtualWorld): readonly Members[] {
  const texts = new Set(servers.flatMap(({ knownConfigTexts }) => knownConfigTexts));
  const activated = lastActivated(recording);
  if (activated !== undefined) texts.add(activated);
  return texts.size === 0 ? [recording.ensemble] : [...texts].map((text) => membersOf(text, recording.limits.oracleSid));
}

/**
 * The latest configuration that a server has had. It counts although every server may have lost its
 * files since: it is in their logs.
 */
export function lastActivated({ peerEvents }: Pick<Recording, 'peerEvents'>): string | undefined {
  const versionOf = (text: string) => parseQuorumConfig(text).version;
  let last: string | undefined;
  for (const event of peerEvents) {
    if (event.kind === 'config' && (last === undefined || versionOf(event.text) > versionOf(last))) last = event.text;
  }
  return last;
}

/** Whether these servers are a quorum of each of the configurations. */
export function isQuorumOfAll(configs: readonly Members[], names: readonly string[]): boolean {
  return configs.every((members) => isQuorum(members, names));
}
