/**
 * A server that was away for long may know only addresses that all voters have left: it can ask none
 * of them, in ZooKeeper neither, and its operator has to write the present configuration.
 */
import { configVersionOf, membersOf } from '../record/config-text.ts';
import { isDeadHost } from '../world/peer-ports.ts';
import type { ServerHost } from '../world/server-host.ts';

/** Whether the server cannot find any voter that it knows, and the configuration that it needs. */
export function configForLost(server: ServerHost, servers: readonly ServerHost[]): string | undefined {
  const known = server.knownConfigTexts;
  if (known.length === 0) return undefined;
  const present = servers
    .flatMap(({ knownConfigTexts }) => knownConfigTexts.slice(0, 1))
    .toSorted((a, b) => configVersionOf(b) - configVersionOf(a))[0]!;
  const isFound = ({ name, sid, knownConfigTexts }: ServerHost) => {
    const own = new Set(knownConfigTexts.flatMap((text) => addressesIn(text, sid)));
    const isKnownIn = (text: string) =>
      membersOf(text, undefined).get(name)?.isVoter === true && addressesIn(text, sid).some((each) => own.has(each));
    return server.name !== name && known.some(isKnownIn);
  };
  const votesAlone = known.every((text) =>
    [...membersOf(text, undefined)].every(([name, { isVoter }]) => !isVoter || name === server.name),
  );
  return votesAlone || servers.some(isFound) ? undefined : present;
}

function addressesIn(text: string, sid: number): readonly string[] {
  const [, list = ''] = new RegExp(`^server\\.${sid}=(.+?):(?:participant|observer)`, 'm').exec(text) ?? [];
  return list.split('|').filter((address) => address !== '' && !isDeadHost(address));
}
