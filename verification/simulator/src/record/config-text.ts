/**
 * Reads the text of a configuration, as it is in /zookeeper/config, in a txn and in the files of a
 * server: which servers there are, who votes, and by which rule. It shares no code with the servers.
 */
import type { Sid } from '@tskeeper/protocol';
import type { EnsembleServer } from './quorum-rule.ts';

/** The servers of a configuration by name, as in `Recording.ensemble`. */
export type Members = ReadonlyMap<string, EnsembleServer>;

export function serverNameOf(sid: Sid): string {
  return `server-${sid}`;
}

/** The version of a configuration; 0 if its text has none. */
export function configVersionOf(text: string): number {
  return Number.parseInt(/^version=([0-9a-f]+)$/m.exec(text)?.[1] ?? '0', 16);
}

/** The text without its version: equal for configurations with equal servers. */
export function membershipText(text: string): string {
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('version='))
    .sort()
    .join('\n');
}

/**
 * Every server is a name such as `server-3`; one that the text does not name is not a member.
 * `oracleSid` is the server that an oracle may let continue alone, as in `RunLimits`: with an oracle
 * groups and weights have no effect.
 */
export function membersOf(text: string, oracleSid: Sid | undefined): Members {
  const groupOf = new Map<Sid, number>();
  const weights = new Map<Sid, number>();
  for (const [, group, sids] of text.matchAll(/^group\.(\d+)=(.*)$/gm)) {
    for (const sid of sids!.split(':')) groupOf.set(Number(sid), Number(group));
  }
  for (const [, sid, weight] of text.matchAll(/^weight\.(\d+)=(\d+)$/gm)) weights.set(Number(sid), Number(weight));
  const isGrouped = oracleSid === undefined && (groupOf.size > 0 || weights.size > 0);
  const members = new Map<string, EnsembleServer>();
  for (const [, number, line] of text.matchAll(/^server\.(\d+)=(.*)$/gm)) {
    const sid = Number(number);
    const isVoter = !/:observer(?:;|$)/.test(line!);
    const place = isGrouped && isVoter ? { group: groupOf.get(sid) ?? 0, weight: weights.get(sid) ?? 1 } : {};
    members.set(serverNameOf(sid), { sid, isVoter, ...place, mayGoAlone: sid === oracleSid });
  }
  return members;
}
