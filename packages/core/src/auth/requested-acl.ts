/**
 * Converts the ACL of a create or setACL into the one to be stored.
 *
 * An entry `auth` becomes one entry for each identity of the client, so a short request can expand
 * to gigabytes. The length is computed before the list is built; a list that no txn can hold is not
 * built.
 */
import { type Acl, type AclSchemes, fixupAcl } from '@tskeeper/protocol';
import type { AuthRegistry } from './auth-provider.ts';
import type { Identities } from './identities.ts';
import type { Identity } from './identity.ts';

/** Bytes of an entry on the wire: permissions and the lengths of scheme and id. */
const entryBytes = 12;

export interface StoredAcl {
  /** A placeholder if the list is too long. */
  readonly acl: readonly Acl[];
  /** Size of the entries that replace `auth`: bytes on the wire, and number. */
  readonly authExpansionBytes: number;
  readonly authExpansionEntries: number;
}

export class RequestedAcls {
  readonly #schemes: AclSchemes;

  constructor(registry: AuthRegistry) {
    this.#schemes = {
      accepts: (scheme, id) => registry.get(scheme)?.isValidId(id) ?? false,
      isAuthenticated: (scheme) => registry.get(scheme)?.provesIdentity ?? false,
    };
  }

  /**
   * The list to be stored; undefined if the reply is InvalidACL. It must not be used if
   * `authExpansionBytes` exceeds `authExpansionBytesMax`.
   */
  fixup(requested: readonly Acl[] | null, identities: Identities, authExpansionBytesMax: number): StoredAcl | undefined {
    const asksForAuth = requested?.some(({ id }) => id.scheme === 'auth') === true;
    if (!asksForAuth) {
      const acl = fixupAcl(requested, [], this.#schemes);
      return acl === undefined ? undefined : { acl, authExpansionBytes: 0, authExpansionEntries: 0 };
    }
    const proven = identities.toList().filter(({ scheme }) => this.#schemes.isAuthenticated(scheme));
    // With one identity in place of all, an entry `auth` becomes one entry, and duplicates are
    // dropped as in the final list.
    const standIn = proven.slice(0, 1);
    const short = fixupAcl(requested, standIn, this.#schemes);
    if (short === undefined) return undefined;
    const authEntries = short.filter(({ id }) => id === standIn[0]).length;
    const authExpansionEntries = authEntries * proven.length;
    const authExpansionBytes = authEntries * aclBytesOf(proven);
    if (proven.length === 1 || authExpansionBytes > authExpansionBytesMax) return { acl: short, authExpansionBytes, authExpansionEntries };
    const acl = fixupAcl(requested, proven, this.#schemes);
    return acl === undefined ? undefined : { acl, authExpansionBytes, authExpansionEntries };
  }
}

function aclBytesOf(identities: readonly Identity[]): number {
  let bytes = 0;
  for (const { scheme, id } of identities) bytes += entryBytes + Buffer.byteLength(scheme) + Buffer.byteLength(id);
  return bytes;
}
