/** How members of a group relate to their znodes, in the formats of several clients. */
import type { ClientView } from '@tskeeper/client';

/** See `GroupOptions.naming`. */
export type GroupNaming = 'plain' | 'party' | 'shallowParty';

interface Naming {
  /** The name of the znode to create. */
  readonly childName: (name: string, zk: ClientView) => string;
  /** Whether the client prepends a guid. */
  readonly isProtected: boolean;
  /** Whether the data of the znode are the name of the member. */
  readonly isNameData: boolean;
  /** Whether the name of the znode contains everything. */
  readonly isShallow: boolean;
  readonly includes: (child: string) => boolean;
  readonly memberName: (child: string, data: Uint8Array | null) => string;
}

const party = '__party__';

export const namings: Readonly<Record<GroupNaming, Naming>> = {
  plain: {
    childName: (name) => name,
    isProtected: false,
    isNameData: false,
    isShallow: false,
    includes: () => true,
    memberName: (child) => child,
  },
  // kazoo looks for the word anywhere in the name.
  party: {
    childName: () => party,
    isProtected: true,
    isNameData: true,
    isShallow: false,
    includes: (child) => child.includes(party),
    memberName: (_child, data) => new TextDecoder().decode(data ?? undefined),
  },
  // For kazoo the name of the member begins after the first dash, so a guid with dashes is not
  // possible. The session id is unique.
  shallowParty: {
    childName: (name, zk) => `${BigInt.asUintN(64, zk.sessionId).toString(16).padStart(32, '0')}-${name}`,
    isProtected: false,
    isNameData: true,
    isShallow: true,
    includes: (child) => child.includes('-'),
    memberName: (child) => child.slice(child.indexOf('-') + 1),
  },
};
