/**
 * Decides whether an ACL permits an operation (client-protocol: "Check of a required permission").
 *
 * One entry must have one of the requested permission bits, and match. An empty list permits
 * everything; so does a `super` identity. Short lists are scanned. In long ones possible matches
 * are looked up, so that the cost does not depend on the list, and the verdict is cached with the
 * identities.
 */
import { type Acl, Perms } from '@tskeeper/protocol';
import { unitsPerAclEntry } from '../request/budget.ts';
import { type AclIndex, type AclSchemeKeys, equality } from '../tree/acl-index.ts';
import type { AclId, AclTable } from '../tree/acl-table.ts';
import type { AuthProvider, AuthRegistry } from './auth-provider.ts';
import type { Identities } from './identities.ts';

export class Permissions {
  readonly #acls: AclTable;
  readonly #registry: AuthRegistry;
  readonly #skipAcl: boolean;
  readonly #schemes: AclSchemeKeys;
  #work = 0;

  constructor(acls: AclTable, registry: AuthRegistry, skipAcl: boolean) {
    this.#acls = acls;
    this.#registry = registry;
    this.#skipAcl = skipAcl;
    this.#schemes = { isKnown: (scheme) => registry.get(scheme) !== undefined, keysOf: (scheme) => registry.get(scheme)?.keys };
  }

  /** Units of work done so far, without short lists and few identities. */
  get work(): number {
    return this.#work;
  }

  permits(acl: AclId, perms: number, identities: Identities): boolean {
    if (this.#skipAcl || this.#acls.isOpen(acl)) return true;
    const short = this.#acls.short(acl);
    return short === undefined ? this.#isFound(acl, perms, identities) : this.#isAmong(short, perms, identities);
  }

  #isAmong(acl: readonly Acl[], perms: number, identities: Identities): boolean {
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
    if (provider.keys === equality) return identities.has(provider.scheme, aclId);
    const { count } = identities;
    if (count > fewIdentities) this.#work += count;
    for (let i = 0; i < count; i++) {
      const { scheme, id } = identities.at(i);
      if (scheme === provider.scheme && provider.matches(id, aclId)) return true;
    }
    return false;
  }

  #isFound(acl: AclId, perms: number, identities: Identities): boolean {
    const before = this.#acls.entriesIndexed;
    const index = this.#acls.index(acl, this.#schemes);
    this.#work += (this.#acls.entriesIndexed - before) * unitsPerIndexedEntry;
    if ((index.worldPerms & perms) !== 0 || identities.isSuper) return true;
    const question = index.number * permsMax + perms;
    return identities.verdicts.get(question) ?? identities.verdicts.keep(question, this.#find(index, perms, identities));
  }

  #find(index: AclIndex, perms: number, identities: Identities): boolean {
    for (let i = 0; i < identities.count; i++) {
      const { scheme, id } = identities.at(i);
      const keys = this.#registry.get(scheme)?.keys;
      if (keys === undefined) continue;
      this.#work += unitsPerLookUp;
      if ((index.permsOf(scheme, id) & perms) !== 0) return true;
      for (const key of keys.identityKeys(id)) {
        this.#work += unitsPerLookUp;
        if ((index.permsOfKey(scheme, key) & perms) !== 0) return true;
      }
    }
    for (const entry of index.walked) {
      if ((entry.perms & perms) === 0) continue;
      this.#work += unitsPerAclEntry;
      if (this.#matches(this.#registry.get(entry.scheme)!, entry.id, identities)) return true;
    }
    return false;
  }
}

/** All permission bits, and one more. */
const permsMax = Perms.all + 1;
const fewIdentities = 8;
/** A hash and a comparison. */
const unitsPerLookUp = 2;
/** Decoding, hashing under an id and possibly a key, and storing. */
const unitsPerIndexedEntry = 10;
