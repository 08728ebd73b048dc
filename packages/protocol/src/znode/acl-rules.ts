/**
 * Converts the ACL of a create or setACL into the one to be stored; and permissions as text.
 */
import type { Acl, Id } from './acl.ts';
import { juteMaxBufferDefault, Perms } from '../constants.ts';

/** The part of a server's authentication providers that the rules need. */
export interface AclSchemes {
  /**
   * Whether a provider is registered for the scheme and accepts this id in an ACL. Not called for
   * `world`.
   */
  accepts(scheme: string, id: string): boolean;
  /**
   * Whether an identity of this scheme proves that the client has authenticated: true for digest,
   * sasl and x509, but not for ip, which every connection has.
   */
  isAuthenticated(scheme: string): boolean;
}

function sameAcl(a: Acl, b: Acl): boolean {
  return a.perms === b.perms && a.id.scheme === b.id.scheme && a.id.id === b.id.id;
}

function isDuplicate(list: readonly Acl[], index: number): boolean {
  for (let i = 0; i < index; i++) if (sameAcl(list[i]!, list[index]!)) return true;
  return false;
}

/**
 * Longest list to which `auth` may expand: more would not fit into a frame of the default size,
 * whatever the texts. Without a limit, a request with many `auth` entries, on a connection with
 * many identities, would expand to gigabytes.
 */
const entriesMax = Math.floor(juteMaxBufferDefault / 12);

/**
 * Above this an index is worth its memory: a list can fill a whole request, and comparing all pairs
 * would take seconds.
 */
const pairwiseMax = 16;

/** The list without duplicates; the first of equal entries is kept. */
function withoutDuplicates(list: readonly Acl[]): readonly Acl[] {
  if (list.length <= pairwiseMax) {
    return list.some((_, index) => isDuplicate(list, index)) ? list.filter((_, index) => !isDuplicate(list, index)) : list;
  }
  const seen = new Set<string>();
  return list.filter(({ perms, id }) => {
    const key = JSON.stringify([perms, id.scheme, id.id]);
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}

/**
 * Returns the list to be stored, or undefined if the reply is InvalidACL. In this order: a null or
 * empty list is refused; duplicates are dropped; then each entry is kept, replaced or refused.
 *
 * | scheme | result |
 * | --- | --- |
 * | null | refused |
 * | world | kept if the id is `anyone`, otherwise refused |
 * | auth | one entry for each authenticated identity, whatever the id; refused if there is none, or the list is too long |
 * | other | kept if its provider accepts the id, otherwise refused |
 */
export function fixupAcl(requested: readonly Acl[] | null, identities: readonly Id[], schemes: AclSchemes): readonly Acl[] | undefined {
  if (requested === null || requested.length === 0) return undefined;
  const fixed: Acl[] = [];
  for (const entry of withoutDuplicates(requested)) {
    const { scheme, id } = entry.id;
    if (scheme === null) return undefined;
    if (scheme === 'auth') {
      const granted = identities.filter((identity) => identity.scheme !== null && schemes.isAuthenticated(identity.scheme));
      if (granted.length === 0 || fixed.length + granted.length > entriesMax) return undefined;
      for (const identity of granted) fixed.push({ perms: entry.perms, id: identity });
    } else {
      if (id === null) return undefined;
      if (scheme === 'world' ? id !== 'anyone' : !schemes.accepts(scheme, id)) return undefined;
      fixed.push(entry);
    }
  }
  return fixed;
}

/** In the order in which ZooKeeper's tools print them. */
const letters: readonly (readonly [letter: string, bit: number])[] = [
  ['c', Perms.create],
  ['d', Perms.delete],
  ['r', Perms.read],
  ['w', Perms.write],
  ['a', Perms.admin],
];

/** `cdrwa` for all of them. Bits without a letter are omitted. */
export function permsText(perms: number): string {
  let text = '';
  for (const [letter, bit] of letters) if ((perms & bit) !== 0) text += letter;
  return text;
}

/** The permissions named by a text, in any order; undefined if it contains an unknown letter. */
export function parsePerms(text: string): number | undefined {
  let perms = 0;
  for (const letter of text) {
    const found = letters.find(([known]) => known === letter);
    if (found === undefined) return undefined;
    perms |= found[1];
  }
  return perms;
}
