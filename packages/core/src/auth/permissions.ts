/**
 * Decides whether an ACL permits an operation (client-protocol: "Check of a required permission").
 *
 * One entry must have one of the requested permission bits, and match. An empty list permits
 * everything; so does a `super` identity. Short lists are scanned. In long ones possible matches
 * are looked up, so that the cost does not depend on the list, and the decision is cached with the
 * identities.
 */
import { type Acl, Perms } from '@tskeeper/protocol';
import { unitsPerAclEntry } from '../step-budget.ts';
import { type AclIndex, type AclSchemeKeys, equalityKeys } from '../tree/acl-index.ts';
import type { AclId, AclTable } from '../tree/acl-table.ts';
import type { AuthProvider, AuthRegistry } from './auth-provider.ts';
import type { Identities } from './identities.ts';

export class Permissions {
  readonly #acls: AclTable;
  readonly #registry: AuthRegistry;
  readonly #skipAcl: boolean;
  readonly #schemes: AclSchemeKeys;
  #workUnits = 0;

  constructor(acls: AclTable, registry: AuthRegistry, skipAcl: boolean) {
    this.#acls = acls;
    this.#registry = registry;
    this.#skipAcl = skipAcl;
    this.#schemes = { isKnown: (scheme) => registry.get(scheme) !== undefined, keysOf: (scheme) => registry.get(scheme)?.keys };
  }

  /** Units of work done so far, without short lists and few identities. */
  get workUnits(): number {
    return this.#workUnits;
  }

  permits(acl: AclId, perms: number, identities: Identities): boolean {
    if (this.#skipAcl || this.#acls.isOpen(acl)) return true;
    const short = this.#acls.shortAcl(acl);
    return short === undefined ? this.#matchesIndexedAcl(acl, perms, identities) : this.#matchesShortAcl(short, perms, identities);
  }

  #matchesShortAcl(acl: readonly Acl[], perms: number, identities: Identities): boolean {
    if (acl.length === 0) return true;
    for (const entry of acl) {
      if ((entry.perms & perms) === 0) continue;
      const { scheme, id } = entry.id;
      if (scheme === 'world' && id === 'anyone') return true;
      const provider = scheme === null ? undefined : this.#registry.get(scheme);
      if (provider !== undefined && this.#matches(provider, id ?? '', identities)) return true;
    }
    return identities.isSuper;
  }

  #matches(provider: AuthProvider, aclId: string, identities: Identities): boolean {
    if (provider.keys === equalityKeys) return identities.has(provider.scheme, aclId);
    const { count } = identities;
    if (count > uncountedIdentitiesMax) this.#workUnits += count;
    for (let i = 0; i < count; i++) {
      const { scheme, id } = identities.at(i);
      if (scheme === provider.scheme && provider.matches(id, aclId)) return true;
    }
    return false;
  }

  #matchesIndexedAcl(acl: AclId, perms: number, identities: Identities): boolean {
    const before = this.#acls.entriesIndexed;
    const index = this.#acls.index(acl, this.#schemes);
    this.#workUnits += (this.#acls.entriesIndexed - before) * unitsPerIndexedEntry;
    if ((index.worldPerms & perms) !== 0 || identities.isSuper) return true;
    const question = index.indexId * permsMax + perms;
    return identities.aclDecisions.get(question) ?? identities.aclDecisions.set(question, this.#lookUp(index, perms, identities));
  }

  #lookUp(index: AclIndex, perms: number, identities: Identities): boolean {
    for (let i = 0; i < identities.count; i++) {
      const { scheme, id } = identities.at(i);
      const keys = this.#registry.get(scheme)?.keys;
      if (keys === undefined) continue;
      this.#workUnits += unitsPerLookUp;
      if ((index.permsOf(scheme, id) & perms) !== 0) return true;
      for (const key of keys.identityKeys(id)) {
        this.#workUnits += unitsPerLookUp;
        if ((index.permsOfKey(scheme, key) & perms) !== 0) return true;
      }
    }
    for (const entry of index.unindexed) {
      if ((entry.perms & perms) === 0) continue;
      this.#workUnits += unitsPerAclEntry;
      if (this.#matches(this.#registry.get(entry.scheme)!, entry.id, identities)) return true;
    }
    return false;
  }
}

/** All permission bits, and one more. */
const permsMax = Perms.all + 1;
const uncountedIdentitiesMax = 8;
/** A hash and a comparison. */
const unitsPerLookUp = 2;
/** Decoding, hashing under an id and possibly a key, and storing. */
const unitsPerIndexedEntry = 10;
