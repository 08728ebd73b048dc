/** How members of a group are told from their znodes, in the way of several clients. */
import type { ClientView } from '@tskeeper/client';

/** See `GroupOptions.naming`. */
export type GroupNaming = 'plain' | 'party' | 'shallowParty';

interface Naming {
  /** Name of the znode to be made. */
  readonly childOf: (name: string, zk: ClientView) => string;
  /** Whether the client is to put a guid in front of it. */
  readonly isProtected: boolean;
  /** Whether the name of the member is what its znode has as data. */
  readonly isNameData: boolean;
  /** Whether the name of the znode says it all. */
  readonly isShallow: boolean;
  readonly includes: (child: string) => boolean;
  readonly nameOf: (child: string, data: Uint8Array | null) => string;
}

const party = '__party__';

export const namings: Readonly<Record<GroupNaming, Naming>> = {
  plain: {
    childOf: (name) => name,
    isProtected: false,
    isNameData: false,
    isShallow: false,
    includes: () => true,
    nameOf: (child) => child,
  },
  // kazoo looks for the word anywhere in the name.
  party: {
    childOf: () => party,
    isProtected: true,
    isNameData: true,
    isShallow: false,
    includes: (child) => child.includes(party),
    nameOf: (_child, data) => new TextDecoder().decode(data ?? undefined),
  },
  // To kazoo the name of the member begins behind the first dash, so a guid with dashes will not do. No other session has this id.
  shallowParty: {
    childOf: (name, zk) => `${BigInt.asUintN(64, zk.sessionId).toString(16).padStart(32, '0')}-${name}`,
    isProtected: false,
    isNameData: true,
    isShallow: true,
    includes: (child) => child.includes('-'),
    nameOf: (child) => child.slice(child.indexOf('-') + 1),
  },
};
