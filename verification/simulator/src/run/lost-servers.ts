/**
 * Servers for which an operator has to write the present configuration, with ZooKeeper as well.
 *
 * A server that was away for long may know only addresses that all voters have left: it can ask none of
 * them. And if no quorum of the configuration has kept its files, no server can announce it.
 */
import type { Sid } from '@tskeeper/protocol';
import { configVersionOf, membersOf } from '../record/config-text.ts';
import { isQuorum } from '../record/quorum-rule.ts';
import { isDeadHost } from '../world/peer-ports.ts';
import type { ServerHost } from '../world/server-host.ts';

type Member = Pick<ServerHost, 'name' | 'sid' | 'knownConfigTexts'>;

/**
 * The configuration that those of `servers` need that cannot find any voter that they know among them:
 * they reach each other, and perhaps none of the rest. A server
 * that gets it no longer uses the addresses of its own files, which others may know only.
 */
export function configsForLost<T extends Member>(servers: readonly T[], all: readonly Member[]): ReadonlyMap<T, string> {
  const present = all
    .flatMap(({ knownConfigTexts }) => knownConfigTexts.slice(0, 1))
    .toSorted((a, b) => configVersionOf(b) - configVersionOf(a))[0];
  const lost = new Map<T, string>();
  if (present === undefined) return lost;
  const members = servers.map(({ name, sid, knownConfigTexts }) => ({ name, sid, knownConfigTexts }));
  for (;;) {
    const next = servers.find((server) => !lost.has(server) && isLost(server, members));
    if (next === undefined) return lost;
    lost.set(next, present);
    members.find(({ name }) => name === next.name)!.knownConfigTexts = [present];
  }
}

function isLost(server: Member, members: readonly Member[]): boolean {
  const known = server.knownConfigTexts;
  if (known.length === 0) return false;
  const isFound = ({ name, sid, knownConfigTexts }: Member) => {
    const own = new Set(knownConfigTexts.flatMap((text) => addressesIn(text, sid)));
    const isKnownIn = (text: string) =>
      membersOf(text, undefined).get(name)?.isVoter === true && addressesIn(text, sid).some((each) => own.has(each));
    return server.name !== name && known.some(isKnownIn);
  };
  const votesAlone = known.every((text) =>
    [...membersOf(text, undefined)].every(([name, { isVoter }]) => !isVoter || name === server.name),
  );
  return !votesAlone && !members.some(isFound);
}

/**
 * The servers with older files than those of `present`, unless the others are a quorum of it, or of the
 * configuration in those files.
 */
export function outdatedServers<T extends Member>(servers: readonly T[], present: string, oracleSid: Sid | undefined): readonly T[] {
  const version = configVersionOf(present);
  const isOutdated = ({ knownConfigTexts: [active] }: Member) => active !== undefined && configVersionOf(active) < version;
  const others = servers.filter((server) => !isOutdated(server)).map(({ name }) => name);
  if (isQuorum(membersOf(present, oracleSid), others)) return [];
  return servers.filter((server) => isOutdated(server) && !isQuorum(membersOf(server.knownConfigTexts[0]!, undefined), others));
}

function addressesIn(text: string, sid: number): readonly string[] {
  const [, list = ''] = new RegExp(`^server\\.${sid}=(.+?):(?:participant|observer)`, 'm').exec(text) ?? [];
  return list.split('|').filter((address) => address !== '' && !isDeadHost(address));
}
